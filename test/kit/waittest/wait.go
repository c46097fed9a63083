// Package waittest waits, in tests, for what another goroutine, process or server
// does in its own time: by asking again, never by sleeping for as long as it
// usually takes.
package waittest

import (
	"context"
	"testing"
	"time"
)

// every is the time between two questions.
const every = 20 * time.Millisecond

// Eventually asks again until there is no complaint. With the last one it fails
// the test when the limit is over; take one that a machine with much else to do
// stays far below.
func Eventually(t testing.TB, limit time.Duration, complaint func() error) {
	t.Helper()
	if err := Within(t.Context(), limit, complaint); err != nil {
		t.Fatalf("not within %s: %v", limit, err)
	}
}

// Within asks again until there is no complaint, and returns the last one when
// the limit or ctx is over.
func Within(ctx context.Context, limit time.Duration, complaint func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := complaint()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

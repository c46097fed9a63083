// Package waittest waits, in tests, for what another goroutine, process or server
// does in its own time: by asking again, never by sleeping for as long as it
// usually takes.
package waittest

import (
	"context"
	"errors"
	"testing"
	"time"
)

// The time between two questions. It is four times what a question took, within these
// bounds: what costs much, as a page of metrics does, leaves the machine to what it asks for.
const (
	leastPause = 20 * time.Millisecond
	mostPause  = 200 * time.Millisecond
)

// Eventually asks again until there is no complaint. With the last one it fails
// the test when the limit is over; take one that a machine with much else to do
// stays far below.
func Eventually(t testing.TB, limit time.Duration, complaint func() error) {
	t.Helper()
	if err := Within(t.Context(), limit, complaint); err != nil {
		t.Fatalf("waited for up to %s: %v", limit, err)
	}
}

// Within asks again until there is no complaint, or a final one, and returns the last
// one when the limit or ctx is over.
func Within(ctx context.Context, limit time.Duration, complaint func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		began := time.Now()
		err := complaint()
		var f final
		if err == nil || errors.As(err, &f) {
			return err
		}
		select {
		case <-time.After(min(max(4*time.Since(began), leastPause), mostPause)):
		case <-ctx.Done():
			return err
		}
	}
}

// Final makes a complaint one that waiting cannot fix.
func Final(err error) error { return final{err} }

type final struct{ error }

func (f final) Unwrap() error { return f.error }

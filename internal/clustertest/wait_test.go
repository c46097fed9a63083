package clustertest_test

import (
	"context"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen, on a machine that
// has much else to do.
const patience = 90 * time.Second

// eventually asks again until there is no complaint.
func eventually(t *testing.T, complaint func() error) {
	t.Helper()
	if err := within(t.Context(), patience, complaint); err != nil {
		t.Fatalf("not within %s: %v", patience, err)
	}
}

// within asks again until there is no complaint, and returns the last one when
// the time is over.
func within(ctx context.Context, limit time.Duration, complaint func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
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

// received waits for a signal of another goroutine.
func received(t *testing.T, signal <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(patience):
		t.Fatalf("%s: not within %s", what, patience)
	}
}

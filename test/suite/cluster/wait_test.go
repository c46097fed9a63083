package cluster_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/waittest"
)

// patience is how long a test waits for what must happen, on a machine that
// has much else to do.
const patience = 3 * time.Minute

// eventually asks again until there is no complaint.
func eventually(t *testing.T, complaint func() error) {
	t.Helper()
	waittest.Eventually(t, patience, complaint)
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

package cluster_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/waittest"
)

const (
	// longTTL is what nobody waits for in these stories.
	longTTL = 5 * time.Minute
	// soon is well below it, on a machine that has much else to do. What a
	// takeover really takes is in the log of the test.
	soon = time.Minute
)

// stuckInPoll starts a node that holds the lock of the orders, because its
// source does not answer, and one beside it that watches it.
func stuckInPoll(t *testing.T, h host, source postgresMarket) (stuck, other *daemon) {
	t.Helper()
	source.order(t, "unfinished")
	proxied, proxy := netfault.StartBefore(t, source.url)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	reading := holdRead(proxy, "orders", release)
	stuck = h.start(t, "a", settings{source: proxied, ttl: longTTL})
	received(t, reading, "the poll")
	other = h.start(t, "b", settings{ttl: longTTL}).ready(t)
	eventually(t, func() error { return other.counted(t, "observerd_liveness_active") })
	eventually(t, func() error { return other.counted(t, "scheduler_observer_lock_failed_total", `type="order"`) })
	return stuck, other
}

// takenOver waits for the order of the unfinished turn.
func takenOver(t *testing.T, m memory, began time.Time) {
	t.Helper()
	err := waittest.Within(t.Context(), soon, func() error {
		n, err := m.number(t, `SELECT count(*) FROM obs_event WHERE subject = 'unfinished'`)
		if err == nil && n == 0 {
			err = errors.New("the unfinished turn was not taken")
		}
		return err
	})
	if err != nil {
		t.Fatalf("within %s: %v", soon, err)
	}
	t.Logf("first commit of the unfinished turn after %s", time.Since(began))
}

func TestTurnOfAKilledNodeDoesNotWaitForTheTTL(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, m memory) {
		source := openPostgres(t)
		h := newHost(t, m, source.url)
		a, b := stuckInPoll(t, h, source)
		began := time.Now()
		a.Kill()
		takenOver(t, m, began)
		eventually(t, func() error { return b.counted(t, "observerd_takeovers_total", `rule="session-gone"`) })
		eventually(t, func() error {
			if b.Log.Count("Lease freed", `"from":"a"`) == 0 || b.Log.Count("Lease taken over", `"rule":"session-gone"`, `"from":"a"`) == 0 {
				return errors.New("the log does not say by which rule")
			}
			return nil
		})
		source.order(t, "afterwards")
		// The sink's lease was the dead node's too.
		checkHistory(t, m, h.sink(), source.rows(t))
	})
}

// TestTurnOfAStoppedNodeIsTakenAtOnce asks a node to stop while it reads a source that
// does not answer.
func TestTurnOfAStoppedNodeIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, m memory) {
		source := openPostgres(t)
		h := newHost(t, m, source.url)
		a, b := stuckInPoll(t, h, source)
		began := time.Now()
		if n, err := m.polling(t, "a"); err != nil || n == 0 {
			t.Fatalf("%d locks of types are held in the poll: %v", n, err)
		}
		a.signal(t, syscall.SIGTERM)
		// The locks are given back at once, however long the process then waits
		// for a source that says nothing.
		err := waittest.Within(t.Context(), shutdownTimeout, func() error {
			n, err := m.held(t, "a")
			if err == nil && n != 0 {
				err = fmt.Errorf("%d locks are held after %s", n, shutdownTimeout)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		takenOver(t, m, began)
		if code := a.ends(t, patience); code != 0 { // It has a limit of its own, and would say so.
			t.Errorf("exit code %d", code)
		}
		if n, err := m.number(t, `SELECT count(*) FROM obs_node WHERE name = 'a'`); err != nil || n != 0 {
			t.Errorf("the stopped node counts as alive %d times: %v", n, err)
		}
		checkHistory(t, m, h.sink(), source.rows(t))
		if n := b.Log.Count("Lease freed"); n != 0 {
			t.Errorf("%d leases were taken from a node that gave them back", n)
		}
	})
}

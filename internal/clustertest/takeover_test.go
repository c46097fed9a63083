package clustertest_test

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/netfault"
	"github.com/observerd/observerd/internal/pgtest"
	"github.com/observerd/observerd/internal/waittest"
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
func stuckInPoll(t *testing.T, h host, shop shop) (stuck, other *daemon) {
	t.Helper()
	shop.order(t, "unfinished")
	proxied, proxy := through(t, shop.url)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	reading := strike(proxy, func(request []byte) bool {
		return bytes.Contains(request, []byte("orders"))
	}, 1, netfault.Fault{Hold: release})
	stuck = h.start(t, "a", settings{source: proxied, ttl: longTTL.String()})
	received(t, reading, "the poll")
	other = h.start(t, "b", settings{ttl: longTTL.String()}).ready(t)
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
		shop := openShop(t)
		h := newHost(t, m, shop.url)
		a, b := stuckInPoll(t, h, shop)
		began := time.Now()
		a.kill()
		takenOver(t, m, began)
		eventually(t, func() error { return b.counted(t, "observerd_takeovers_total", `rule="session-gone"`) })
		eventually(t, func() error {
			if b.log.count("Lease freed", `"from":"a"`) == 0 || b.log.count("Lease taken over", `"rule":"session-gone"`, `"from":"a"`) == 0 {
				return errors.New("the log does not say by which rule")
			}
			return nil
		})
		shop.order(t, "afterwards")
		// The sink's lease was the dead node's too.
		checkHistory(t, m, h.sink(), shop.rows(t))
	})
}

func TestTurnOfAStoppedNodeIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, m memory) {
		shop := openShop(t)
		h := newHost(t, m, shop.url)
		a, b := stuckInPoll(t, h, shop)
		began := time.Now()
		a.signal(t, syscall.SIGTERM)
		takenOver(t, m, began)
		if code := a.ends(t, patience); code != 0 { // It has a limit of its own, and would say so.
			t.Errorf("exit code %d", code)
		}
		checkHistory(t, m, h.sink(), shop.rows(t))
		if n := b.log.count("Lease freed"); n != 0 {
			t.Errorf("%d leases were taken from a node that gave them back", n)
		}
	})
}

// TestHealthyNodesKeepTheirLeases ends the liveness sessions of two nodes again
// and again. Beside sessions that come and go, leases live by renewals: who cannot
// write for most of the second after which others count it as dead loses them by
// right. So a machine that stood still for long does not decide, but not every time.
func TestHealthyNodesKeepTheirLeases(t *testing.T) {
	t.Parallel()
	const tries, long = 3, 500 * time.Millisecond
	for try := 1; ; try++ {
		var lost int
		var stood time.Duration
		t.Run(fmt.Sprint("try ", try), func(t *testing.T) { lost, stood = endedSessions(t) })
		if lost == 0 {
			return
		}
		if stood < long || try == tries {
			t.Fatalf("healthy nodes have lost or freed %d leases; the machine stood still for %s", lost, stood)
		}
	}
}

// endedSessions ends sessions of two nodes that poll and deliver, and returns how
// many leases they have lost or freed, and for how long the machine stood still, at
// most. A round begins when both have noticed the one before: a session that was
// ended is listed for a moment more.
func endedSessions(t *testing.T) (lost int, stood time.Duration) {
	m := remember(t, pgtest.New(t))
	shop := openShop(t)
	h := newHost(t, m, shop.url)
	nodes := []*daemon{h.start(t, "a", settings{}).ready(t), h.start(t, "b", settings{}).ready(t)}
	machine := watchStalls(t)
	quiet := shop.busy(t)
	for range 10 {
		before := visible(t, nodes)
		cutLiveness(t, m, len(nodes))
		for i, d := range nodes {
			eventually(t, func() error {
				if d.log.count(comingBack) == before[i] {
					return fmt.Errorf("%s did not notice", d.name)
				}
				return nil
			})
		}
	}
	quiet()
	checkHistory(t, m, h.sink(), shop.rows(t))
	for _, d := range nodes {
		lost += d.log.count("Lease freed") + d.log.count("Lease lost")
	}
	return lost, machine.longest()
}

// comingBack is what a node says when its liveness session has ended.
const comingBack = "Others cannot see this node; coming back"

// visible waits until each node can be seen by others, and returns how often
// each has come back by then.
func visible(t *testing.T, nodes []*daemon) []int {
	t.Helper()
	back := make([]int, len(nodes))
	for i, d := range nodes {
		eventually(t, func() error {
			back[i] = d.log.count(comingBack)
			if d.log.count(`"Others can see this node"`) <= back[i] {
				return fmt.Errorf("%s cannot be seen", d.name)
			}
			return nil
		})
	}
	return back
}

// cutLiveness ends the liveness sessions of all nodes, once all of them stand.
func cutLiveness(t *testing.T, m memory, nodes int) {
	t.Helper()
	eventually(t, func() error {
		n, err := m.number(t, fmt.Sprintf(`
			WITH s AS MATERIALIZED (
			  SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE '%% liveness')
			SELECT count(pg_terminate_backend(pid)) FROM s WHERE (SELECT count(*) FROM s) = %d`, nodes))
		if err == nil && n != int64(nodes) {
			err = fmt.Errorf("%d sessions ended", n)
		}
		return err
	})
}

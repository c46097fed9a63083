//go:build nightly

package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/pgtest"
)

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
	source := openPostgres(t)
	h := newHost(t, m, source.url)
	nodes := []*daemon{h.start(t, "a", settings{}).ready(t), h.start(t, "b", settings{}).ready(t)}
	machine := watchStalls(t)
	quiet := source.busy(t)
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
	checkHistory(t, m, h.sink(), source.rows(t))
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

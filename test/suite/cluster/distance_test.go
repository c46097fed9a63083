package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestNodeFarFromItsDatabaseIsPassedOver takes one of two nodes so far from the
// coordination database that the other is always first. It makes no poll, and its
// metrics say so until it is near again.
func TestNodeFarFromItsDatabaseIsPassedOver(t *testing.T) {
	t.Parallel()
	const many = 10
	jobs := idlers()
	for i := range jobs {
		jobs[i].interval = 2 * time.Second // Room for a turn at that distance.
	}
	m := remember(t, pgtest.New(t))
	url, proxy := netfault.StartBefore(t, m.url)
	near := join(t, m, "near", jobs...)
	distant := m
	distant.url = url
	far := join(t, distant, "far", jobs...)
	polls := func() float64 { return far.count(t, "scheduler_observer_lock_acquired_total", "") }
	eventually(t, func() error {
		if polls() == 0 {
			return errNothingYet
		}
		return nil
	})
	proxy.SetImpairment(netfault.Impairment{Latency: 300 * time.Millisecond})
	var while float64
	eventually(t, func() error {
		if n := far.count(t, "observerd_turns_passed_over_since_poll", ""); n < many {
			return fmt.Errorf("passed over in %v turns", n)
		}
		while = polls()
		return nil
	})
	if n := far.count(t, "observerd_turns_passed_over_total", ""); n < many {
		t.Errorf("passed over in %v turns in all", n)
	}
	proxy.SetImpairment(netfault.Impairment{})
	eventually(t, func() error {
		if n := far.count(t, "observerd_turns_passed_over_since_poll", ""); n != 0 || polls() == while {
			return fmt.Errorf("passed over in %v turns since a poll, %v polls since", n, polls()-while)
		}
		return nil
	})
	if near.count(t, "scheduler_observer_lock_acquired_total", "") == 0 {
		t.Error("the other node did not poll")
	}
	if err := polledTwice(m.mustPolls(t)); err != nil {
		t.Error(err)
	}
}

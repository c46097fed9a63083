package cluster_test

import (
	"errors"
	"testing"
)

// TestPauseActsOnAllNodes pauses an observer of a cluster and lets it go on.
func TestPauseActsOnAllNodes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, m memory) {
		source := openPostgres(t)
		h := newHost(t, m, source.url)
		nodes := []*daemon{h.start(t, "a", settings{}).ready(t), h.start(t, "b", settings{}).ready(t)}
		eventually(t, func() error { return m.shared(t, 2, []string{"a", "b"}, 1, 2, 3) })
		h.command(t, "a", "observers", "pause", "orders")
		source.order(t, "paused")
		before := m.mustPolls(t)
		ofOrders := func(p polled) bool { return p.stream == "orders" }
		// The others go on for some turns more, and a node that was started anew
		// knows of the pause.
		nodes[1].stops(t)
		h.start(t, "b", settings{}).ready(t)
		eventually(t, func() error {
			others := func(p polled) bool { return p.stream == "tasks" }
			polls, err := m.polls(t)
			if err == nil && len(selected(polls, others)) < len(selected(before, others))+6 {
				err = errNothingYet
			}
			return err
		})
		// A poll that ran at the pause may have been noted after the look.
		if got, was := len(selected(m.mustPolls(t), ofOrders)), len(selected(before, ofOrders)); got > was+1 {
			t.Errorf("%d polls of the paused observer", got-was)
		}
		if log, err := m.logged(t); err != nil || len(lastStatus(log, "orders")) != 0 {
			t.Error(errors.Join(errors.New("a paused observer made an event"), err))
		}
		h.command(t, "b", "observers", "resume", "orders")
		checkHistory(t, m, h.sink(), source.rows(t))
		if n, err := m.number(t, `SELECT count(*) FROM obs_audit WHERE subject = 'orders'`); err != nil || n != 2 {
			t.Errorf("%d acts in the audit table: %v", n, err)
		}
	})
}

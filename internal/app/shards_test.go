package app_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/observerd/observerd/internal/config"
)

// TestNodesWithOtherShards has observers in one shard on one node and in three on another, as
// during a rolling change: both poll them at a time, and each row becomes one event.
func TestNodesWithOtherShards(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, p place) {
		const observers, orders = 8, 30
		all := make([]config.Observer, observers)
		for i := range all {
			all[i] = p.config.Observers[slices.IndexFunc(p.config.Observers, func(o config.Observer) bool { return o.Type == "order" })]
			all[i].ID = fmt.Sprintf("orders-%d", i)
		}
		p.config.Observers = all
		other := *p.config
		other.Node.Name, other.Scheduler.Types = "other", maps.Clone(p.config.Scheduler.Types)
		sharded := other.Scheduler.Types["order"]
		sharded.Shards = 3
		other.Scheduler.Types["order"] = sharded
		ready(t, p.start(t))
		before := count(t, p.open(t), `SELECT count(*) FROM orders`)
		ready(t, place{config: &other}.start(t))
		db := p.beside(t)
		polled := func(typ string) {
			t.Helper()
			polls := `SELECT count(*) FROM obs_poll WHERE type LIKE '` + typ + `'`
			before := count(t, db, polls)
			eventually(t, func() error {
				if n := count(t, db, polls) - before; n < observers {
					return fmt.Errorf("%d polls of %s", n, typ)
				}
				return nil
			})
		}
		for n := range orders {
			p.order(t, fmt.Sprintf("SHARD-%d", n))
			if n%10 == 9 {
				polled("order%")
			}
		}
		eventually(t, func() error {
			if n := count(t, db, `SELECT count(*) FROM obs_event`); n != observers*(before+orders) {
				return fmt.Errorf("%d events, want %d", n, observers*(before+orders))
			}
			return nil
		})
		polled("order")
		polled("order#%")
		if n := count(t, db, `SELECT count(*) FROM obs_event`); n != observers*(before+orders) {
			t.Errorf("%d events after further polls, want %d", n, observers*(before+orders))
		}
	})
}

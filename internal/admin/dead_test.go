package admin

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/turn"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/slowsource"
)

// TestRetryLetsPollsGoFirst has a node whose turn is due: a retry takes no step until the
// turn is taken.
func TestRetryLetsPollsGoFirst(t *testing.T) {
	t.Parallel()
	b := backfilling(t, "99", slowsource.Source{})
	b.typ.Interval = 24 * time.Hour
	o := b.typ.Observers[0]
	b.op.cfg.Scheduler.Types = map[string]config.Settings{o.Type: {Lock: config.Lock{Region: b.typ.Region, TTL: b.typ.TTL}}}
	if err := b.op.db.Nodes().Beat(t.Context(), turn.Node{BootID: "boot", Name: "a", Types: []string{"order"}}); err != nil {
		t.Fatal(err)
	}
	// steps reports whether a retry takes a step. The source hangs, which ends it.
	steps := func(ctx context.Context) bool {
		r := &deadRetry{
			op: b.op, id: o.ID, source: b.source, observer: b.observer, typ: b.typ, keys: []string{"1"}, left: map[string][]DeadRow{},
			act: lockdb.Act{Actor: "alice", Action: "retry-dead", Subject: o.ID},
		}
		err := r.run(ctx, o)
		if r.noted != errors.Is(err, errRetryTimeout) || !r.noted && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a retry that has begun (%t) ends with %v", r.noted, err)
		}
		return r.noted
	}
	short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if steps(short) {
		t.Error("the poll that is due was not let go first")
	}
	g, err := b.op.db.Leases().Acquire(t.Context(), wiring.TypeLockRequest(b.typ, "a"))
	if err != nil {
		t.Fatal(err)
	}
	now, err := b.op.db.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.op.db.Turns().TakeTurn(t.Context(), g, turn.Taken{Type: "order", At: now, Started: now, Finished: now, Node: "a", Outcome: turn.OK}); err != nil {
		t.Fatal(err)
	}
	if err := b.op.db.Leases().Release(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if !steps(t.Context()) {
		t.Error("no step after the turn was taken")
	}
}

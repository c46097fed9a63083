package schedule_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/schedule"
)

// full is a poll of that time which ends full, or at its deadline, and whatever else
// its context says.
func full(d time.Duration) poll {
	return func(ctx context.Context, _ lock.Grant) (observer.Stats, error) {
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
			time.Sleep(time.Until(deadline))
			return observer.Stats{Full: true}, nil
		}
		time.Sleep(d)
		return observer.Stats{Rows: 100, Full: true, Lag: time.Minute}, nil
	}
}

// TestBacklogIsPolledForAllOfTheInterval has an observer whose polls take more than half
// of the interval, and end full. The next one follows at once, and ends before the
// next tick: each of them is served, and by both nodes.
func TestBacklogIsPolledForAllOfTheInterval(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		var polled time.Duration
		backlog := func(ctx context.Context, g lock.Grant) (observer.Stats, error) {
			began := time.Now()
			defer func() { polled += time.Since(began) }()
			return full(11*interval/20)(ctx, g)
		}
		a := start(t, db, "a", only("order"), does("order-1", backlog))
		b := start(t, db, "b", only("order"), does("order-1", backlog))
		pass(20*interval - interval/60)
		if n := a.polls("order-1") + b.polls("order-1"); n != 40 {
			t.Errorf("%d polls in twenty intervals", n)
		}
		if share := float64(polled) / float64(20*interval); share < 0.9 {
			t.Errorf("%.2f of the time was polled", share)
		}
		equal(t, "turns", len(db.taken("order")), 20)
		if a.polls("order-1") < 14 || b.polls("order-1") < 14 {
			t.Errorf("the nodes polled %d and %d times", a.polls("order-1"), b.polls("order-1"))
		}
		for _, n := range db.noted("order-1") {
			equal(t, "lag, also of a poll that had no time for a row", n.Lag, time.Minute)
		}
	})
}

// TestBacklogOfOneNodeMissesNoTick shows that a node whose backlog takes all of its
// time is there for each tick.
func TestBacklogOfOneNodeMissesNoTick(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), does("order-1", full(7*interval/10)))
		pass(20*interval - interval/60)
		equal(t, "polls", a.polls("order-1"), 40)
		equal(t, "turns", len(db.taken("order")), 20)
	})
}

// TestBacklogIsPolledUntilTheNextTick has an observer whose polls end full. It is
// polled again and again, its neighbour is not, and the next turn is another
// node's.
func TestBacklogIsPolledUntilTheNextTick(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		backlog := full(interval / 10)
		two := observers("order", "order-1", "order-2")
		a := start(t, db, "a", only("order"), two, does("order-1", backlog))
		b := start(t, db, "b", only("order"), two, does("order-1", backlog))
		pass(20*interval - interval/20)
		if n := a.polls("order-1") + b.polls("order-1"); n < 160 || n > 200 {
			t.Errorf("%d polls in twenty intervals", n)
		}
		equal(t, "polls of the neighbour", a.polls("order-2")+b.polls("order-2"), 20)
		if a.polls("order-1") < 60 || b.polls("order-1") < 60 {
			t.Errorf("the nodes polled %d and %d times", a.polls("order-1"), b.polls("order-1"))
		}
	})
}

// TestBacklogEndsWithAFailure shows that what fails waits as ever, also in the
// middle of a backlog.
func TestBacklogEndsWithAFailure(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		polls := 0
		a := start(t, db, "a", only("order"), does("order-1", func(context.Context, lock.Grant) (observer.Stats, error) {
			if polls++; polls == 5 {
				return observer.Stats{}, errors.New("broken")
			}
			return observer.Stats{Full: polls < 8}, nil
		}))
		pass(interval / 2)
		equal(t, "polls of the first turn", a.polls("order-1"), 5)
		pass(interval)
		equal(t, "polls with the next turn", a.polls("order-1"), 8)
		equal(t, "failures", db.streams["order-1"].Failures, 0)
	})
}

// TestBacklogBesideASlowNeighbour has a neighbour whose polls take two thirds of the
// interval. The observer with the backlog is polled again meanwhile, and the lock
// is free again at the next tick.
func TestBacklogBesideASlowNeighbour(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), observers("order", "order-1", "order-2"),
			does("order-1", after(2*interval/3)), does("order-2", full(interval/10)))
		pass(10*interval - interval/60)
		equal(t, "polls of the slow one", a.polls("order-1"), 10)
		if n := a.polls("order-2"); n < 80 || n > 100 {
			t.Errorf("%d polls of the backlog in ten intervals", n)
		}
		equal(t, "turns", len(db.taken("order")), 10)
	})
}

// TestBacklogLetsOthersFirst has more observers than may be polled at a time, and
// backlogs enough to keep all places. None of them waits for a backlog to end.
func TestBacklogLetsOthersFirst(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		ids := []string{"o1", "o2", "o3", "o4", "o5"}
		var running, most atomic.Int64
		a := start(t, db, "a", only("order"), observers("order", ids...), func(o *schedule.Options) {
			o.Concurrency = 2
			for _, s := range o.Types[0].Observers {
				s.(*stream).do = func(ctx context.Context, g lock.Grant) (observer.Stats, error) {
					if n := running.Add(1); n > most.Load() {
						most.Store(n)
					}
					defer running.Add(-1)
					return full(time.Second)(ctx, g)
				}
			}
		})
		atLeast := func(want int) {
			for _, id := range ids {
				if n := a.polls(id); n < want {
					t.Errorf("%d polls of %s, want at least %d", n, id, want)
				}
			}
		}
		pass(2500 * time.Millisecond) // Six polls have begun.
		atLeast(1)
		pass(7 * time.Second) // Twenty. Of two that end at once either is the first to stand in line.
		atLeast(3)
		equal(t, "polls at a time", most.Load(), 2)
	})
}

// TestBacklogThatWaitedEndsInTime has an observer wait behind its neighbour for so
// long that its next poll would last into the next tick. It ends before that.
func TestBacklogThatWaitedEndsInTime(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), observers("order", "order-1", "order-2"),
			func(o *schedule.Options) { o.Concurrency = 1 },
			does("order-1", full(interval/3)), does("order-2", after(interval/2)))
		pass(interval - interval/60)
		equal(t, "polls of the backlog", a.polls("order-1"), 2)
		equal(t, "polls of the neighbour", a.polls("order-2"), 1)
		equal(t, "turns", len(db.taken("order")), 1)
	})
}

// TestStopEndsABacklog stops a node between two polls of a backlog.
func TestStopEndsABacklog(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), does("order-1", full(time.Second)))
		pass(5500 * time.Millisecond)
		began := time.Now()
		a.stop(t)
		if took := time.Since(began); took > time.Second {
			t.Errorf("the stop took %s, want the rest of one poll", took)
		}
		equal(t, "polls", a.polls("order-1"), 6)
		equal(t, "turns", len(db.taken("order")), 1)
	})
}

package schedule_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/turn"
)

// waits lets the only observer of the only type wait for others, and gives it the time
// for a poll.
func waits(wait func() time.Duration, pollTime time.Duration) setup {
	return func(o *schedule.Options) {
		o.Types[0].Observers[0].(*stream).waits = wait
		o.Types[0].PollTimeout = pollTime
	}
}

// Others come first for longer than a poll may take. That is no time of the poll, and
// the loop is not stuck.
func TestWaitForOthersIsNoTimeOfAPoll(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		var beats atomic.Int64
		wait := func() time.Duration { return 7 * interval }
		a := start(t, db, "a", only("order"), does("order-1", after(4*time.Second)), waits(wait, 5*time.Second), func(o *schedule.Options) {
			o.Beat = func(loop string, within time.Duration) {
				if loop == "schedule/order" && within > 0 {
					beats.Add(1)
				}
			}
		})
		pass(7*interval - time.Second)
		equal(t, "polls while others come first", a.polls("order-1"), 0)
		equal(t, "signs of life", beats.Load() >= 7, true)
		pass(6 * time.Second)
		notes := db.noted("order-1")
		if len(notes) != 1 || notes[0].Outcome != turn.OK || notes[0].Finished.Sub(notes[0].Started) != 4*time.Second {
			t.Fatalf("notes %+v", notes)
		}
		equal(t, "polls that have not ended", a.streams["order-1"].begun, 0)
	})
}

// A poll that follows one with a backlog has until the next tick, which may be
// another node's, and that holds while it waits.
func TestWaitForOthersEndsWithTheNextTick(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		waited := 0
		wait := func() time.Duration {
			if waited++; waited == 1 {
				return 0
			}
			return 2 * interval
		}
		full := func(ctx context.Context, g lock.Grant) (observer.Stats, error) {
			stats, err := after(time.Second)(ctx, g)
			stats.Full, stats.Lag = true, time.Hour
			return stats, err
		}
		a := start(t, db, "a", only("order"), does("order-1", full), waits(wait, time.Minute))
		pass(interval - time.Millisecond)
		equal(t, "polls", a.polls("order-1"), 1)
		equal(t, "turns", len(db.taken("order")), 1)
		if _, held := db.locks.Holder(request("order", "")); held {
			t.Error("the lock is held at the next tick")
		}
		notes := db.noted("order-1")
		if last := notes[len(notes)-1]; last.Outcome != turn.OK || last.Lag != time.Hour {
			t.Errorf("last note %+v", last)
		}
	})
}

func TestStopEndsTheWaitForOthers(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), waits(func() time.Duration { return time.Hour }, time.Minute))
		pass(time.Second)
		began := time.Now()
		if err := a.sched.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		equal(t, "time to stop", time.Since(began), 0)
		equal(t, "notes", len(db.noted("order-1")), 0)
		equal(t, "turns", len(db.taken("order")), 0)
		if _, held := db.locks.Holder(request("order", "")); held {
			t.Error("the lock is held")
		}
	})
}

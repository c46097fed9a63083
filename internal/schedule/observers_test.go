package schedule_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/turn"
)

func TestFailingObserverBacksOffAlone(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), observers("order", "order-1", "order-2"), does("order-1", fails(errors.New("broken"))))
		pass(60*interval + interval/2)
		var tried []int
		for _, at := range a.streams["order-1"].polls() {
			tried = append(tried, int(at.Sub(start2000())/interval))
		}
		// 1, 2, 4, 8, 16 and then 20 intervals, which are the ten minutes.
		if want := []int{0, 1, 3, 7, 15, 31, 51}; !slices.Equal(tried, want) {
			t.Errorf("polled at ticks %v, want %v", tried, want)
		}
		equal(t, "polls of the neighbour", a.polls("order-2"), 61)
		equal(t, "turns", len(db.taken("order")), 61)
	})
}

func TestObserverThatRecoversIsPolledEachTurnAgain(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		var broken atomic.Bool
		broken.Store(true)
		a := start(t, db, "a", only("order"), does("order-1", func(context.Context, lock.Grant) (observer.Stats, error) {
			if broken.Load() {
				return observer.Stats{}, errors.New("broken")
			}
			return observer.Stats{}, nil
		}))
		pass(2*interval + interval/2)
		broken.Store(false)
		pass(10 * interval)
		equal(t, "polls", a.polls("order-1"), 12) // all but the one of the backoff
		equal(t, "failures", db.streams["order-1"].Failures, 0)
	})
}

func TestBackoffEndsWithItsTickThoughTheJobComesEarly(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), does("order-1", fails(errors.New("broken"))))
		pass(interval - time.Second)
		db.set(func(m *memory) { m.skew = -300 * time.Millisecond }) // the job is set already
		pass(2 * time.Second)
		equal(t, "polls", a.polls("order-1"), 2)
	})
}

func TestSourceThatIsReachedAgainIsNoLongerReported(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		var away atomic.Bool
		away.Store(true)
		start(t, db, "a", only("order"), does("order-1", func(context.Context, lock.Grant) (observer.Stats, error) {
			if away.Load() {
				return observer.Stats{}, observer.ErrUnreachable
			}
			return observer.Stats{}, nil
		}))
		pass(interval / 2)
		reported := func() int {
			nodes, _ := db.Nodes(t.Context(), time.Minute)
			return len(nodes[0].Unreachable)
		}
		equal(t, "types reported", reported(), 1)
		away.Store(false)
		pass(interval)
		equal(t, "types reported after a poll that succeeded", reported(), 0)
	})
}

func TestCycleWaitsForNoTypeThatIsBusy(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", does("order-1", after(interval+5*time.Second)))
		pass(interval + time.Second)
		equal(t, "cycles", a.metric(t, "scheduler_observer_cycle_duration_seconds"), 1)
		equal(t, "locked", a.metric(t, "scheduler_observer_cycle_locked_count"), 2)
		pass(5 * time.Second)
		equal(t, "cycles", a.metric(t, "scheduler_observer_cycle_duration_seconds"), 2)
		equal(t, "locked", a.metric(t, "scheduler_observer_cycle_locked_count"), 3)
		pass(2 * interval)
		equal(t, "cycles", a.metric(t, "scheduler_observer_cycle_duration_seconds"), 4)
	})
}

func TestPausedObserverIsLeftOut(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		db.streams["order-1"] = turn.Stream{Stream: "order-1", Paused: true}
		a := start(t, db, "a", only("order"), observers("order", "order-1", "order-2"))
		pass(5*interval + interval/2)
		equal(t, "polls", a.polls("order-1"), 0)
		equal(t, "polls of the neighbour", a.polls("order-2"), 6)
		db.set(func(m *memory) { m.streams["order-1"] = turn.Stream{Stream: "order-1"} })
		pass(interval)
		equal(t, "polls after the pause", a.polls("order-1"), 1)
	})
}

func TestHungObserverHoldsUpNobody(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), observers("order", "order-1", "order-2"),
			does("order-1", after(time.Hour)),
			func(o *schedule.Options) { o.Types[0].PollTimeout = 5 * time.Second })
		pass(time.Second)
		equal(t, "polls of the neighbour", a.polls("order-2"), 1)
		pass(5 * time.Second)
		notes := db.noted("order-1")
		if len(notes) != 1 || notes[0].Reason != schedule.ErrPollTimeout.Error() || notes[0].Outcome != turn.Error {
			t.Errorf("notes %+v", notes)
		}
		equal(t, "turns", len(db.taken("order")), 1)
	})
}

// A poll may take any time as long as it commits, and is not taken for stuck.
func TestPollThatGetsOnIsNotEnded(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		activity, beats := schedule.NewActivity(), 0
		a := start(t, db, "a", only("order"), observers("order", "order-1"),
			does("order-1", func(ctx context.Context, g lock.Grant) (observer.Stats, error) {
				for range 30 {
					if stats, err := after(4*time.Second)(ctx, g); err != nil {
						return stats, err
					}
					activity.Committed()
				}
				return after(time.Hour)(ctx, g)
			}),
			func(o *schedule.Options) {
				o.Types[0].PollTimeout, o.Types[0].Activity = 5*time.Second, activity
				o.Beat = func(loop string, within time.Duration) {
					if loop == "schedule/order" && within > 0 {
						beats++
					}
				}
			})
		pass(124 * time.Second)
		equal(t, "polls that have ended", len(db.noted("order-1")), 0)
		equal(t, "polls", a.polls("order-1"), 1)
		equal(t, "signs of life", beats > 30, true)
		pass(2 * time.Second)
		notes := db.noted("order-1")
		if len(notes) != 1 || notes[0].Reason != schedule.ErrPollTimeout.Error() {
			t.Errorf("notes %+v", notes)
		}
	})
}

func TestObserversRunSideBySideWithinTheLimit(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		ids := []string{"o1", "o2", "o3", "o4", "o5"}
		a := newNode(t, db, "a", only("order"), observers("order", ids...), func(o *schedule.Options) {
			o.Concurrency = 2
			for _, s := range o.Types[0].Observers {
				s.(*stream).do = after(time.Second)
			}
		})
		if err := a.sched.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.quit)
		pass(2500 * time.Millisecond)
		polled := 0
		for _, id := range ids {
			polled += a.polls(id)
		}
		equal(t, "polls after two rounds", polled, 5)
		equal(t, "turns after two rounds", len(db.taken("order")), 0)
		pass(time.Second)
		equal(t, "turns after three rounds", len(db.taken("order")), 1)
	})
}

func TestStopIsSafeTwiceAndBeforeStart(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		n := newNode(t, db, "a")
		for range 2 {
			if err := n.sched.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := n.sched.Start(t.Context()); err == nil {
			t.Error("a scheduler that was stopped can be started")
		}
		n.quit()
		b := start(t, db, "b")
		if err := b.sched.Start(t.Context()); err == nil {
			t.Error("a scheduler can be started twice")
		}
		b.quit()
		if err := b.sched.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestStopGivesUpOnAPollThatDoesNotEnd(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		letGo := make(chan struct{})
		a := newNode(t, db, "a", only("order"), does("order-1", hang(letGo)))
		if err := a.sched.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		began := time.Now()
		if err := a.sched.Stop(context.Background()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stop: %v", err)
		}
		equal(t, "patience", time.Since(began), schedule.DefaultShutdownTimeout)
		if err := a.keeper.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, held := db.locks.Holder(request("order", "")); held {
			t.Error("the keeper did not take the lock back")
		}
		close(letGo)
		pass(time.Second)
		equal(t, "turns", len(db.taken("order")), 0)
		a.sched.ShutGocronDown()
	})
}

package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/turn"
)

func window(text string) schedule.Window { return config.Observer{NotBetween: text}.Window() }

// timed gives an observer of the type order its own timing.
func timed(id string, own schedule.Timing) setup {
	return func(o *schedule.Options) {
		for i := range o.Types {
			if o.Types[i].Name == "order" {
				o.Types[i].Timings = map[string]schedule.Timing{id: own}
			}
		}
	}
}

// closed gives the type order a time of day in which it is not polled.
func closed(text string) setup {
	return func(o *schedule.Options) {
		for i := range o.Types {
			if o.Types[i].Name == "order" {
				o.Types[i].NotBetween = window(text)
			}
		}
	}
}

// turnsOf are the turns that an observer has had, in intervals since the beginning.
func turnsOf(db *memory, id string) (had []int) {
	for _, n := range db.noted(id) {
		had = append(had, int(n.At.Sub(start2000())/interval))
	}
	return slices.Compact(had)
}

// TestEachThirdTurn has an observer with three times the delay of its type, while nodes
// die and come back, and the database's clock is never quite where they think.
func TestEachThirdTurn(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		setups := []setup{only("order"), observers("order", "order-1", "order-2"), timed("order-2", schedule.Timing{Delay: 3 * interval})}
		nodes := []*node{start(t, db, "a", setups...), start(t, db, "b", setups...), start(t, db, "c", setups...)}
		pass(interval / 2)
		for i := range 90 {
			db.set(func(m *memory) { m.skew = time.Duration(i%5-2) * 40 * time.Millisecond })
			if i%4 == 3 {
				at := i / 4 % 3
				nodes[at].crash()
				pass(interval / 3)
				nodes[at] = start(t, db, nodes[at].name, setups...)
				pass(interval * 2 / 3)
				continue
			}
			pass(interval)
		}
		had := turnsOf(db, "order-2")
		for i := range had[1:] {
			if had[i+1]-had[i] != 3 {
				t.Errorf("polled in the turns %v", had)
				break
			}
		}
		equal(t, "turns of the observer", len(had), 31)
		equal(t, "turns of its neighbour", len(turnsOf(db, "order-1")), 91)
	})
}

// TestDelayWaitsForNoNodeToCount shows that an observer whose turn nobody took has the
// first one after it, and the delay counts from there.
func TestDelayWaitsForNoNodeToCount(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		setups := []setup{only("order"), timed("order-1", schedule.Timing{Delay: 4 * interval})}
		a := start(t, db, "a", setups...)
		pass(5*interval + interval/2)
		a.crash()
		pass(4 * interval) // The turn 8 is nobody's.
		start(t, db, "b", setups...)
		pass(6 * interval)
		if had, want := turnsOf(db, "order-1"), []int{0, 4, 9, 13}; !slices.Equal(had, want) {
			t.Errorf("polled in the turns %v, want %v", had, want)
		}
	})
}

// TestDelayAfterAnotherInterval changes the interval of the type, so that the ticks are
// others; and the database's clock goes back by hours.
func TestDelayAfterAnotherInterval(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), timed("order-1", schedule.Timing{Delay: 3 * interval}))
		pass(4*interval + interval/2) // Polled at 0 and 90 s.
		a.quit()
		a = start(t, db, "a", only("order"), every(40*time.Second), timed("order-1", schedule.Timing{Delay: 80 * time.Second}))
		pass(3 * interval) // The ticks are 120, 160, 200 s.
		notes := db.noted("order-1")
		equal(t, "turn after another interval", notes[len(notes)-1].At.Sub(start2000()), 160*time.Second)
		before := a.polls("order-1")
		db.set(func(m *memory) { m.skew = -5 * time.Hour })
		pass(2 * time.Minute)
		if a.polls("order-1") == before {
			t.Error("not polled after the clock went back")
		}
	})
}

// TestBacklogDoesNotWaitForTheDelay has a poll that leaves rows unread: the next turn of
// the type is the observer's, until all are read.
func TestBacklogDoesNotWaitForTheDelay(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		left := 40
		start(t, db, "a", only("order"), timed("order-1", schedule.Timing{Delay: 10 * interval}),
			does("order-1", func(ctx context.Context, g lock.Grant) (observer.Stats, error) {
				if left--; left > 0 {
					return full(interval/10)(ctx, g)
				}
				return observer.Stats{}, nil
			}))
		pass(20*interval - interval/2)
		if had, want := turnsOf(db, "order-1"), []int{0, 1, 2, 3, 13}; !slices.Equal(had, want) {
			t.Errorf("polled in the turns %v, want %v", had, want)
		}
	})
}

// TestFailureWaitsForTheDelay shows that an observer which fails is not tried more
// often than one that succeeds; one that recovers is tried at once.
func TestFailureWaitsForTheDelay(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		var fixed atomic.Bool
		a := start(t, db, "a", only("order"), timed("order-1", schedule.Timing{Delay: 3 * interval}), does("order-1", fails(errors.New("broken"))),
			func(o *schedule.Options) { o.Types[0].Observers[0].(*stream).recovered = fixed.Load })
		pass(22*interval + interval/2)
		if had, want := turnsOf(db, "order-1"), []int{0, 3, 9, 21}; !slices.Equal(had, want) {
			t.Errorf("polled in the turns %v, want %v", had, want)
		}
		fixed.Store(true)
		pass(interval)
		equal(t, "polls after it recovered", a.polls("order-1"), 5)
	})
}

// TestNoLockInTheWindow has a type that is not polled for five minutes. No node takes
// its lock, and the first poll begins when the window ends, between two ticks.
func TestNoLockInTheWindow(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		setups := []setup{only("order", "wes"), closed("01:05-01:10 Europe/Berlin"), every(45 * time.Second)}
		a, b := start(t, db, "a", setups...), start(t, db, "b", setups...)
		pass(4*time.Minute + 59*time.Second)
		taken, attempts := len(db.taken("order")), db.locks.Attempts(request("order", "").Key)
		equal(t, "turns before", taken, 7)
		equal(t, "suspended", a.metric(t, "observerd_observer_suspended{observer=order-1,type=order}"), 0)
		pass(2 * time.Second)
		equal(t, "suspended", a.metric(t, "observerd_observer_suspended{observer=order-1,type=order}"), 1)
		equal(t, "suspended", a.metric(t, "observerd_observer_suspended{observer=wes-1,type=wes}"), 0)
		pass(4*time.Minute + 58*time.Second)
		equal(t, "turns in the window", len(db.taken("order"))-taken, 0)
		equal(t, "attempts in the window", db.locks.Attempts(request("order", "").Key)-attempts, 0)
		equal(t, "turns of another type", len(db.taken("wes")), 14)
		equal(t, "loops that hang", len(a.loops.Stuck()), 0)
		pass(2 * time.Second)
		equal(t, "turns when it has ended", len(db.taken("order"))-taken, 1)
		equal(t, "attempts", db.locks.Attempts(request("order", "").Key)-attempts, 1)
		polled := slices.Concat(a.streams["order-1"].polls(), b.streams["order-1"].polls())
		last := slices.MaxFunc(polled, time.Time.Compare)
		if late := last.Sub(start2000().Add(10 * time.Minute)); late < 0 || late > 100*time.Millisecond {
			t.Errorf("polled %s after the end of the window", late)
		}
		pass(30 * time.Second)
		equal(t, "turns with the next tick", len(db.taken("order"))-taken, 2)
	})
}

// TestWindowByTheClockOfTheDatabase has nodes whose own clocks are an hour behind.
func TestWindowByTheClockOfTheDatabase(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		db.skew = time.Hour
		start(t, db, "a", only("order"), closed("01:00-01:10 UTC"))
		pass(10*time.Minute - time.Second)
		equal(t, "turns in the window", len(db.taken("order")), 0)
		pass(2 * time.Second)
		equal(t, "turns after it", len(db.taken("order")), 1)
	})
}

// TestEveryTickInTheWindow has a type that is polled once a day, at midnight, where it
// may not be polled: it is polled when the window ends. So does an observer whose delay
// is a day.
func TestEveryTickInTheWindow(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), every(24*time.Hour), closed("22:00-06:00 UTC"))
		b := start(t, db, "b", only("order"), every(24*time.Hour), closed("22:00-06:00 UTC"))
		pass(5*24*time.Hour - time.Minute)
		polled := slices.Concat(a.streams["order-1"].polls(), b.streams["order-1"].polls())
		equal(t, "polls in five days", len(polled), 5)
		for _, at := range polled {
			equal(t, "time of day", at.Truncate(time.Second).Format(time.TimeOnly), "06:00:00")
		}
	})
}

// TestObserverSkipsItsWindow has a neighbour that is polled in the window.
func TestObserverSkipsItsWindow(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		start(t, db, "a", only("order"), observers("order", "order-1", "order-2"),
			timed("order-2", schedule.Timing{Delay: 4 * interval, NotBetween: window("00:01-00:05 UTC")}))
		pass(20*interval + interval/2)
		if had, want := turnsOf(db, "order-2"), []int{0, 10, 14, 18}; !slices.Equal(had, want) {
			t.Errorf("polled in the turns %v, want %v", had, want)
		}
		equal(t, "turns of the neighbour", len(turnsOf(db, "order-1")), 21)
		equal(t, "turns", len(db.taken("order")), 21)
	})
}

// TestPollEndsInTheWindow has a poll that runs when the window begins: it ends well. It
// leaves rows unread, which wait for the end of the window; so does an observer that
// waits for others at its source, and one that waits for a free worker.
func TestPollEndsInTheWindow(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		// In the turn of 0:30, until 1:10.
		long := func() time.Duration {
			if now := time.Since(start2000()); now >= interval && now < time.Minute {
				return 40 * time.Second
			}
			return 0
		}
		a := newNode(t, db, "a", only("order"), observers("order", "order-1", "order-2", "order-3"), closed("00:01-00:10 UTC"),
			does("order-1", func(context.Context, lock.Grant) (observer.Stats, error) {
				d := long()
				time.Sleep(d)
				return observer.Stats{Full: d > 0, Lag: d}, nil
			}),
			func(o *schedule.Options) { o.Concurrency = 2 })
		a.streams["order-2"].waits = long
		if err := a.sched.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.quit)
		pass(9 * time.Minute)
		for id, s := range a.streams {
			for _, at := range s.polls() {
				if !at.Before(start2000().Add(time.Minute)) {
					t.Errorf("%s is polled at %s", id, at)
				}
			}
		}
		notes := db.noted("order-1")
		last := notes[len(notes)-1]
		if last.Outcome != turn.OK || !last.Finished.After(start2000().Add(time.Minute)) {
			t.Errorf("the last poll ended in %s, at %s", last.Outcome, last.Finished)
		}
		if _, held := db.locks.Holder(request("order", "")); held {
			t.Error("the lock is held in the window")
		}
		before := a.polls("order-1")
		pass(2 * time.Minute)
		for _, id := range []string{"order-2", "order-3"} {
			equal(t, "first turn after 0:00 of "+id, turnsOf(db, id)[1], 20)
		}
		if a.polls("order-1") == before {
			t.Error("not polled after the window")
		}
	})
}

// TestNextPoll compares what is foretold with what comes true.
func TestNextPoll(t *testing.T) {
	for _, c := range []struct {
		delay    time.Duration
		ofType   string
		ofItsOwn string
		shift    time.Duration
	}{
		{},
		{delay: 3 * interval},
		{shift: 7 * time.Second, delay: 2 * interval},
		{ofType: "00:02-00:05 UTC"},
		{ofType: "00:02-00:05 UTC", delay: 5 * interval},
		{ofItsOwn: "00:02-00:05 UTC", shift: 4 * time.Second},
		{ofType: "00:02-00:05 UTC", ofItsOwn: "00:04-00:08 UTC", delay: 2 * interval},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			story(t, func(t *testing.T, db *memory) {
				var typ schedule.Type
				start(t, db, "a", only("order"), timed("order-1", schedule.Timing{Delay: c.delay, NotBetween: window(c.ofItsOwn)}), closed(c.ofType),
					func(o *schedule.Options) { o.Types[0].Shift = c.shift; typ = o.Types[0] })
				pass(interval / 2)
				for range 40 {
					var last turn.Stream
					db.set(func(m *memory) { last = m.streams["order-1"] })
					next := schedule.NextPoll(typ, "order-1", last, time.Now())
					before := len(db.noted("order-1"))
					pass(time.Until(next) - time.Millisecond)
					equal(t, "polls before "+next.String(), len(db.noted("order-1")), before)
					pass(100 * time.Millisecond)
					equal(t, "polls at "+next.String(), len(db.noted("order-1")), before+1)
				}
			})
		})
	}
}

package schedule_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/turn"
)

// connections sets how many turns are admitted at a time.
func connections(n int) setup {
	return func(o *schedule.Options) { o.Connections = n }
}

func TestAsManyTurnsBeginAsThereAreConnections(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := newNode(t, db, "a", connections(2))
		a.db.beforeTurn = func() error { time.Sleep(time.Second); return nil }
		if err := a.sched.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer a.quit()
		pass(time.Second / 2)
		equal(t, "looks", a.db.looked(), 2)
		equal(t, "waiting", a.metric(t, "observerd_turns_waiting"), 1)
		pass(2 * time.Second) // The third is let in later, and looks before it tries as well.
		equal(t, "looks", a.db.looked(), 4)
		equal(t, "waiting", a.metric(t, "observerd_turns_waiting"), 0)
		pass(2 * time.Second)
		for _, typ := range types {
			equal(t, "polls of "+typ, a.polls(typ+"-1"), 1)
			equal(t, "attempts at "+typ, db.locks.Attempts(typ+"-observer-poll"), 1)
			equal(t, "not admitted", a.metric(t, "observerd_turns_not_admitted_total{type="+typ+"}"), 0)
		}
	})
}

func TestSlowPollsKeepNobodyFromBeginning(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", connections(1), does("order-1", after(20*time.Second)), does("wes-1", after(20*time.Second)))
		pass(time.Second)
		for _, typ := range types {
			equal(t, "polls of "+typ, a.polls(typ+"-1"), 1)
		}
	})
}

// TestWhoeverIsNotAdmittedIsNoOutage has the database take 9 s for each look, of
// which a turn needs two a second after its tick: the third turn is not let in during the interval.
func TestWhoeverIsNotAdmittedIsNoOutage(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := newNode(t, db, "a", connections(1))
		a.db.beforeTurn = func() error { time.Sleep(9 * time.Second); return nil }
		pass(time.Second)
		if err := a.sched.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(interval + 5*time.Second)
		polls, late := 0, 0.0
		for _, typ := range types {
			polls += a.polls(typ + "-1")
			late += a.metric(t, "observerd_turns_not_admitted_total{type="+typ+"}")
		}
		equal(t, "polls", polls, 1)
		equal(t, "not admitted", late, 1)
		equal(t, "told", a.log.count("level=DEBUG", "Lock not acquired", "not admitted in time"), 1)
		equal(t, "waiting", a.metric(t, "observerd_turns_waiting"), 2) // It, and the first one's next.
		a.quit()
		equal(t, "not admitted before the stop", a.log.count("level=DEBUG", "not admitted in time"), 3)
		equal(t, "warnings", a.log.count("level=WARN"), 0)
	})
}

// TestTurnIsTriedAgainAfterAReadThatFailed under the lock, before anything was polled.
func TestTurnIsTriedAgainAfterAReadThatFailed(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := newNode(t, db, "a", only("order"))
		reads := 0
		a.db.beforeTurn = func() error {
			if reads++; reads == 1 {
				return errors.New("the connection was lost")
			}
			return nil
		}
		if err := a.sched.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer a.quit()
		pass(5 * time.Second)
		equal(t, "polls", a.polls("order-1"), 1)
		equal(t, "turns", len(db.taken("order")), 1)
	})
}

func TestBusyConnectionsAreNoOutage(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := newNode(t, db, "a", only("order"))
		var busy atomic.Bool
		busy.Store(true)
		a.db.beforeTurn = func() error {
			if busy.Load() {
				return turn.ErrBusy
			}
			return nil
		}
		if err := a.sched.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer a.quit()
		pass(10 * time.Second)
		equal(t, "polls", a.polls("order-1"), 0)
		busy.Store(false)
		pass(2 * time.Second)
		equal(t, "polls", a.polls("order-1"), 1)
		equal(t, "outage", a.log.count("does not answer"), 0)
		equal(t, "errors", a.metric(t, "observerd_lock_errors_total{operation=acquire,type=order}"), 0)
	})
}

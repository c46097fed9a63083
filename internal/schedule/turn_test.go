package schedule_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
)

var types = []string{"order", "inventory", "wes"}

func TestSingleNodeTakesAllTypes(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a")
		pass(time.Second)
		for _, typ := range types {
			equal(t, "polls of "+typ, a.polls(typ+"-1"), 1)
			equal(t, "acquired", a.metric(t, "scheduler_observer_lock_acquired_total{type="+typ+"}"), 1)
			equal(t, "acquired by node", a.metric(t, "scheduler_observer_lock_acquired_by_node_total{node=a,type="+typ+"}"), 1)
			equal(t, "failed", a.metric(t, "scheduler_observer_lock_failed_total{type="+typ+"}"), 0)
			equal(t, "polls ok", a.metric(t, "scheduler_observer_polls_total{outcome=ok,type="+typ+"}"), 1)
			equal(t, "polls lost", a.metric(t, "scheduler_observer_polls_total{outcome=lost,type="+typ+"}"), 0)
			equal(t, "durations", a.metric(t, "scheduler_observer_polling_duration_seconds{type="+typ+"}"), 1)
			equal(t, "rows", a.metric(t, "observerd_rows_read_total{observer="+typ+"-1,type="+typ+"}"), 3)
			equal(t, "events", a.metric(t, "observerd_events_written_total{observer="+typ+"-1,type="+typ+"}"), 2)
			equal(t, "poison", a.metric(t, "observerd_poison_rows_total{type="+typ+"}"), 1)
			equal(t, "lag", a.metric(t, "observerd_horizon_lag_seconds{observer="+typ+"-1}"), 1)
			if _, held := db.locks.Holder(request(typ, "")); held {
				t.Errorf("lock of %s was not released", typ)
			}
		}
		equal(t, "cycles", a.metric(t, "scheduler_observer_cycle_duration_seconds"), 1)
		equal(t, "locked", a.metric(t, "scheduler_observer_cycle_locked_count"), 3)
		equal(t, "skipped", a.metric(t, "scheduler_observer_cycle_skipped_count"), 0)
		for line, n := range map[string]int{
			`level=INFO msg="Starting scheduled polling cycle for all observer types"`: 1,
			`level=INFO msg="Lock acquired"`:                                           3,
			`level=INFO msg="Completed polling"`:                                       3,
			`level=DEBUG msg="Lock released"`:                                          3,
			`level=INFO msg="Polling cycle completed for all observer types"`:          1,
		} {
			equal(t, line, a.log.count(line, "node=a"), n)
		}
		pass(10 * interval)
		for _, typ := range types {
			equal(t, "turns of "+typ, len(db.taken(typ)), 11)
		}
	})
}

func TestSecondNodeSkipsWhileTheFirstHolds(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		slow := func() setup { return does("order-1", after(10*time.Second)) }
		nodes := []*node{start(t, db, "a", only("order"), slow())}
		pass(time.Second) // Two that begin at the same time need not see each other, and may both try.
		nodes = append(nodes, start(t, db, "b", only("order"), slow()))
		pass(4 * time.Second)
		holder, _ := db.locks.Holder(request("order", ""))
		pass(24 * time.Second)
		for _, n := range nodes {
			if n.name == holder.Node {
				equal(t, "polls of the holder", n.polls("order-1"), 1)
				continue
			}
			equal(t, "polls of the other", n.polls("order-1"), 0)
			equal(t, "failed", n.metric(t, "scheduler_observer_lock_failed_total{type=order}"), 1)
			equal(t, "log", n.log.count("level=DEBUG", "Lock not acquired", "another node is polling", "holder="+holder.Node), 1)
		}
		equal(t, "turns", len(db.taken("order")), 1)
		equal(t, "attempts", db.locks.Attempts("order-observer-poll"), 1)
	})
}

func TestMixedLocksCallTheRightObservers(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		if _, err := db.locks.Acquire(t.Context(), request("inventory", "java")); err != nil {
			t.Fatal(err)
		}
		a := start(t, db, "a")
		pass(interval - 100*time.Millisecond)
		equal(t, "orders", a.polls("order-1"), 1)
		equal(t, "inventory", a.polls("inventory-1"), 0)
		equal(t, "wes", a.polls("wes-1"), 1)
		equal(t, "locked", a.metric(t, "scheduler_observer_cycle_locked_count"), 2)
		equal(t, "skipped", a.metric(t, "scheduler_observer_cycle_skipped_count"), 1)
		equal(t, "failed", a.metric(t, "scheduler_observer_lock_failed_total{type=inventory}"), 1)
		equal(t, "attempts", db.locks.Attempts("inventory-observer-poll"), 2) // the holder's, and ours at the tick
		pass(interval)
		equal(t, "attempts while it was held before", db.locks.Attempts("inventory-observer-poll"), 2)
		pass(time.Minute - interval) // its lease has ended
		equal(t, "inventory later", a.polls("inventory-1"), 1)
	})
}

func TestFailureInAPollReleasesAndSparesTheNeighbours(t *testing.T) {
	failures := map[string]poll{
		"an error": fails(errors.New("table is gone")),
		"a panic":  func(context.Context, lock.Grant) (observer.Stats, error) { panic("table is gone") },
	}
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, db *memory) {
				a := start(t, db, "a", observers("order", "order-1", "order-2"), does("order-1", failure))
				pass(time.Second)
				equal(t, "log", a.log.count("level=ERROR", "Error during polling", "observer=order-1", "table is gone"), 1)
				equal(t, "neighbour", a.polls("order-2"), 1)
				equal(t, "other type", a.polls("wes-1"), 1)
				equal(t, "errors", a.metric(t, "scheduler_observer_polls_total{outcome=error,type=order}"), 1)
				if _, held := db.locks.Holder(request("order", "")); held {
					t.Error("lock was not released")
				}
				turns, notes := db.taken("order"), db.noted("order-1")
				if len(turns) != 1 || len(notes) != 1 {
					t.Fatalf("turns %+v, notes %+v", turns, notes)
				}
				equal(t, "turn", turns[0].Outcome, turn.Error)
				equal(t, "note", notes[0].Outcome, turn.Error)
				equal(t, "failures", notes[0].Failures, 1)
				equal(t, "left", notes[0].Left, false)
			})
		})
	}
}

func TestInterruptionWhileWaitingForTheLock(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		if _, err := db.locks.Acquire(t.Context(), request("order", "java")); err != nil {
			t.Fatal(err)
		}
		a := start(t, db, "a", only("order"))
		pass(5 * time.Second)
		began := time.Now()
		a.quit()
		equal(t, "time to stop", time.Since(began), 0)
		equal(t, "log", a.log.count("level=WARN", "Interrupted while waiting for lock", "lock=order-observer-poll"), 1)
		equal(t, "polls", a.polls("order-1"), 0)
	})
}

func TestTurnTakenBetweenLookAndLockIsNotRepeated(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := newNode(t, db, "a", only("order"))
		a.db.beforeAcquire = func() {
			db.set(func(m *memory) { m.turns["order"] = turn.Taken{Type: "order", At: time.Now()} })
		}
		if err := a.sched.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.quit)
		pass(time.Second)
		equal(t, "polls", a.polls("order-1"), 0)
		equal(t, "log", a.log.count("level=DEBUG", "Lock not acquired", "turn taken"), 1)
		if _, held := db.locks.Holder(request("order", "")); held {
			t.Error("lock was not released")
		}
	})
}

func TestPollThatOutlastsTheIntervalSkipsTicks(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), does("order-1", after(interval+5*time.Second)))
		pass(4*interval - time.Second)
		equal(t, "turns", len(db.taken("order")), 2)
		equal(t, "polls at a time", a.streams["order-1"].most, 1)
		for i, at := range a.streams["order-1"].polls() {
			equal(t, "start", at.Sub(start2000()), time.Duration(2*i)*interval)
		}
	})
}

func TestLeaseLostInThePoll(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), does("order-1", after(time.Hour)))
		pass(time.Second)
		g, _ := db.locks.Holder(request("order", ""))
		db.locks.Expire(g)
		pass(25 * time.Second) // the renewal finds out after a third of the TTL
		equal(t, "lost", a.metric(t, "scheduler_observer_polls_total{outcome=lost,type=order}"), 1)
		equal(t, "turns", len(db.taken("order")), 0)
		equal(t, "log", a.log.count("level=ERROR", "Error during polling", "outcome=lost"), 1)
	})
}

func TestFencedPollTakesNoTurn(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), does("order-1", fails(lock.ErrFenced)))
		pass(time.Second)
		equal(t, "fenced", a.metric(t, "scheduler_observer_polls_total{outcome=fenced,type=order}"), 1)
		equal(t, "turns", len(db.taken("order")), 0)
	})
}

// TestPollThatAnOperatorInterruptsIsNoFailure covers a pause or a reset in the
// middle of a poll: it refuses the commit, and must not lead to a backoff that
// undoes the reset.
func TestPollThatAnOperatorInterruptsIsNoFailure(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), does("order-1", fails(observer.ErrConflict)))
		pass(time.Second)
		equal(t, "fenced", a.metric(t, "scheduler_observer_polls_total{outcome=fenced,type=order}"), 1)
		equal(t, "turns", len(db.taken("order")), 1)
		notes := db.noted("order-1")
		equal(t, "notes", len(notes), 1)
		equal(t, "failures", notes[0].Failures, 0)
		equal(t, "backoff", notes[0].RetryAt.IsZero(), true)
		equal(t, "errors in the log", a.log.count("level=ERROR"), 0)
	})
}

func TestStaleHolderNotesNothing(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), does("order-1", func(_ context.Context, g lock.Grant) (observer.Stats, error) {
			db.locks.Expire(g)
			return observer.Stats{}, nil
		}))
		pass(time.Second)
		equal(t, "fenced", a.metric(t, "scheduler_observer_polls_total{outcome=fenced,type=order}"), 1)
		equal(t, "turns", len(db.taken("order")), 0)
		equal(t, "notes", len(db.noted("order-1")), 0)
	})
}

func start2000() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

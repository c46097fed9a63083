package schedule_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/schedule"
)

// spread is the distance between the first and the last type in these tests.
const spread = 12 * time.Second

// shifted lets each type fire later than the one before, in the order of types.
func shifted() setup {
	return func(o *schedule.Options) {
		for i := range o.Types {
			for k, name := range types {
				if o.Types[i].Name == name {
					o.Types[i].Shift = time.Duration(k) * spread / 2
				}
			}
		}
	}
}

func TestShiftedTypesFollowEachOther(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		db.skew = 3700 * time.Millisecond
		a := start(t, db, "a", shifted())
		pass(10*interval + interval/2)
		for k, typ := range types {
			for _, at := range a.streams[typ+"-1"].polls()[1:] {
				after := at.Add(db.skew).Sub(at.Add(db.skew).Truncate(interval))
				equal(t, "time from a tick to the poll of "+typ, after, time.Duration(k)*spread/2)
			}
			for _, taken := range db.taken(typ) {
				equal(t, "turn of "+typ, taken.At, taken.At.Truncate(interval))
			}
			noTurnTwice(t, db, typ, interval)
		}
	})
}

// TestShiftedTypesAreOneCycle wants the log and the metrics to show what is
// due for one tick as one cycle.
func TestShiftedTypesAreOneCycle(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		// The poll of the last type is still under way at the next tick.
		a := start(t, db, "a", shifted(), does("wes-1", after(interval-spread+time.Second)))
		pass(interval + interval/2)
		begun := a.log.count("Starting scheduled polling cycle")
		over := a.metric(t, "scheduler_observer_cycle_duration_seconds")
		pass(10 * interval)
		equal(t, "cycles begun", a.log.count("Starting scheduled polling cycle")-begun, 10)
		equal(t, "cycles completed", a.metric(t, "scheduler_observer_cycle_duration_seconds")-over, 10)
		equal(t, "types in the last", a.metric(t, "scheduler_observer_cycle_locked_count"), 3)
	})
}

func TestNodesShareShiftedTypes(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		nodes := []*node{start(t, db, "a", shifted()), start(t, db, "b", shifted()), start(t, db, "c", shifted())}
		settle()
		for range 4 {
			for name, polls := range delta(nodes, interval) {
				equal(t, "types of "+name, total(polls), 1)
			}
		}
	})
}

// TestShiftMayChangeOnARunningCluster restarts one node after the other with
// another shift, there and back, so that for a while they differ.
func TestShiftMayChangeOnARunningCluster(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		nodes := []*node{start(t, db, "a"), start(t, db, "b"), start(t, db, "c")}
		settle()
		for _, setups := range [][]setup{{shifted()}, nil} {
			for i, n := range nodes {
				n.quit()
				nodes[i] = start(t, db, n.name, setups...)
				pass(5*interval + 7*time.Second)
			}
		}
		for _, typ := range types {
			noTurnTwice(t, db, typ, interval)
			if n := len(db.taken(typ)); n < 30 {
				t.Errorf("%d turns of %s: the test proves little", n, typ)
			}
			polls := 0
			for _, note := range db.noted(typ + "-1") {
				polls++
				equal(t, "turn of a poll of "+typ, note.At, note.At.Truncate(interval))
			}
			equal(t, "polls of "+typ, polls, len(db.taken(typ)))
		}
	})
}

// TestNodesWithDifferentShiftsDoNoHarm lets them differ for good.
func TestNodesWithDifferentShiftsDoNoHarm(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		early, late := start(t, db, "a"), start(t, db, "b", shifted())
		pass(20*interval + interval/2)
		for _, typ := range types {
			noTurnTwice(t, db, typ, interval)
			turns := len(db.taken(typ))
			if turns < 21 || turns > 22 { // One may begin with the tick before.
				t.Errorf("%d turns of %s, want 21", turns, typ)
			}
			equal(t, "polls of "+typ, early.polls(typ+"-1")+late.polls(typ+"-1"), turns)
		}
		early.crash()
		pass(20 * interval)
		for _, typ := range types {
			noTurnTwice(t, db, typ, interval)
		}
	})
}

package schedule_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/turn"
)

// settle lets all nodes see each other: they started at the same time, each
// believing itself alone. It ends in the middle between two ticks.
func settle() { pass(interval + interval/2) }

// delta returns by how much each node's polls of each type grow in a time.
func delta(nodes []*node, d time.Duration) map[string]map[string]int {
	grown := make(map[string]map[string]int)
	for _, n := range nodes {
		grown[n.name] = make(map[string]int)
		for _, typ := range types {
			grown[n.name][typ] = -n.polls(typ + "-1")
		}
	}
	pass(d)
	for _, n := range nodes {
		for _, typ := range types {
			grown[n.name][typ] += n.polls(typ + "-1")
		}
	}
	return grown
}

func total(polls map[string]int) (n int) {
	for _, p := range polls {
		n += p
	}
	return n
}

func TestTwoNodesShareThreeTypes(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		nodes := []*node{start(t, db, "a"), start(t, db, "b")}
		settle()
		for range 4 {
			polls := delta(nodes, interval)
			a, b := total(polls["a"]), total(polls["b"])
			if a+b != 3 || a == 0 || b == 0 {
				t.Errorf("a polled %d types and b %d, want two and one", a, b)
			}
		}
	})
}

func TestThreeNodesPollOneTypeEach(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		nodes := []*node{start(t, db, "a"), start(t, db, "b"), start(t, db, "c")}
		settle()
		for range 4 {
			for name, polls := range delta(nodes, interval) {
				equal(t, "types of "+name, total(polls), 1)
			}
		}
	})
}

func TestTwoNodesOverAHundredCycles(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		nodes := []*node{start(t, db, "a"), start(t, db, "b")}
		settle()
		sums := map[string]map[string]int{"a": {}, "b": {}}
		for range 100 {
			for name, polls := range delta(nodes, interval) {
				// One or two of three types, in each cycle.
				if n := total(polls); n < 1 || n > 2 {
					t.Errorf("%s polled %d of three types in a cycle", name, n)
				}
				for typ, n := range polls {
					sums[name][typ] += n
				}
			}
		}
		for _, typ := range types {
			equal(t, "polls of "+typ, sums["a"][typ]+sums["b"][typ], 100) // without the lock: 200
			for name := range sums {
				if n := sums[name][typ]; n < 45 || n > 55 {
					t.Errorf("%s polled %s %d times of 100", name, typ, n)
				}
			}
			noTurnTwice(t, db, typ, interval)
		}
	})
}

// noTurnTwice looks for turns that were taken twice, or left out.
func noTurnTwice(t *testing.T, db *memory, typ string, step time.Duration) {
	t.Helper()
	turns := db.taken(typ)
	for i := range turns[1:] {
		if d := turns[i+1].At.Sub(turns[i].At); d != step {
			t.Errorf("turn of %s at %s follows that at %s", typ, turns[i+1].At, turns[i].At)
		}
	}
}

func TestTurnsOfAKilledNodeAreTakenOver(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a, b := start(t, db, "a"), start(t, db, "b")
		settle()
		b.crash()
		for name, polls := range delta([]*node{a}, 20*interval) {
			equal(t, "polls of "+name, total(polls), 60)
		}
		again := start(t, db, "b")
		settle()
		for name, polls := range delta([]*node{a, again}, 20*interval) {
			equal(t, "polls after the return of b, by "+name, total(polls), 30)
		}
		for _, typ := range types {
			noTurnTwice(t, db, typ, interval)
		}
	})
}

func TestLockOfANodeThatCrashedInAPollEndsWithItsTTL(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), does("order-1", after(time.Hour)))
		pass(time.Second)
		a.crash()
		b := start(t, db, "b", only("order"))
		pass(58 * time.Second)
		equal(t, "polls while the lease lives", b.polls("order-1"), 0)
		pass(2*time.Second + interval/10)
		equal(t, "polls when it has ended", b.polls("order-1"), 1)
	})
}

func TestIntervalMayChange(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a, b := start(t, db, "a"), start(t, db, "b")
		pass(10*interval + interval/2)
		restart := func(d time.Duration, rounds int) {
			a.quit()
			b.quit()
			a, b = start(t, db, "a", every(d)), start(t, db, "b", every(d))
			pass(time.Duration(rounds) * d)
		}
		restart(2*interval, 10)
		restart(interval, 10)
		for _, typ := range types {
			turns := db.taken(typ)
			if n := len(turns); n < 30 || n > 32 {
				t.Errorf("%s was polled %d times, want about ten a phase", typ, n)
			}
			for i := range turns[1:] {
				if d := turns[i+1].At.Sub(turns[i].At); d <= 0 || d > 2*interval {
					t.Errorf("turn of %s at %s follows that at %s", typ, turns[i+1].At, turns[i].At)
				}
			}
		}
	})
}

func TestNodesWithDifferentIntervalsDoNoHarm(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		start(t, db, "a", only("order"))
		start(t, db, "b", only("order"), every(2*interval))
		pass(20*interval + interval/2)
		noTurnTwice(t, db, "order", interval)
		equal(t, "turns", len(db.taken("order")), 21)
	})
}

func TestNodeThatCannotReachASourceLosesNoTurn(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		two := func() setup { return observers("order", "order-1", "order-2") }
		a := start(t, db, "a", only("order"), two(), does("order-1", fails(observer.ErrUnreachable)))
		b := start(t, db, "b", only("order"), two())
		settle()
		tried := a.polls("order-1")
		pass(30 * interval)
		noTurnTwice(t, db, "order", interval)
		for _, id := range []string{"order-1", "order-2"} {
			polled := make(map[time.Time]int)
			for _, note := range db.noted(id) {
				if note.Outcome == turn.OK {
					polled[note.At]++
				}
			}
			if len(polled) < 31 {
				t.Errorf("%s was polled in %d of 31 turns", id, len(polled))
			}
			for at, n := range polled {
				equal(t, "polls of "+id+" at "+at.String(), n, 1)
			}
		}
		if n := a.polls("order-1") - tried; n < 1 || n > 4 {
			t.Errorf("a tried its unreachable source %d times in 30 turns, want now and then", n)
		}
		if b.polls("order-1") < 30 {
			t.Error("b did not take over")
		}
		equal(t, "backoff", db.streams["order-1"].Failures, 0)
	})
}

func TestAttemptsPerPollStayNearOne(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		var nodes []*node
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
			nodes = append(nodes, start(t, db, name, does("order-1", after(5*time.Second))))
		}
		settle()
		before := make(map[string]int)
		for _, typ := range types {
			before[typ] = db.locks.Attempts(typ + "-observer-poll")
		}
		polls := delta(nodes, 50*interval)
		for _, typ := range types {
			done := 0
			for _, p := range polls {
				done += p[typ]
			}
			equal(t, "polls of "+typ, done, 50)
			if tried := db.locks.Attempts(typ+"-observer-poll") - before[typ]; tried > 55 {
				t.Errorf("%d attempts at the lock of %s for 50 polls", tried, typ)
			}
		}
		for name, p := range polls {
			equal(t, "polls of "+name, total(p), 15)
		}
	})
}

// TestManyNodesLeaveTurnsToTheFirst counts the looks and attempts of twenty nodes whose turns come
// every second. The turns go on when four neighbours die unseen.
func TestManyNodesLeaveTurnsToTheFirst(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		var nodes []*node
		for i := range 20 {
			nodes = append(nodes, start(t, db, fmt.Sprintf("n%02d", i), only("order"), every(time.Second)))
		}
		settle()
		pass(time.Second / 2)
		looked := func() (n int) {
			for _, node := range nodes {
				n += node.db.looked()
			}
			return n
		}
		looks, turns, attempts := looked(), len(db.taken("order")), db.locks.Attempts("order-observer-poll")
		pass(100 * time.Second)
		equal(t, "turns", len(db.taken("order"))-turns, 100)
		if n := looked() - looks; n > 700 { // Of each turn those of the first three, one of them under the lock, and a fifth of the others'.
			t.Errorf("%d looks at 100 turns", n)
		}
		if n := db.locks.Attempts("order-observer-poll") - attempts; n > 110 {
			t.Errorf("%d attempts at 100 turns", n)
		}
		for _, n := range nodes[5:9] {
			n.crash()
		}
		before := time.Now()
		pass(30 * time.Second)
		for _, taken := range db.taken("order") {
			if taken.Finished.Before(before) {
				continue
			}
			if gap := taken.Finished.Sub(before); gap > 3*time.Second {
				t.Errorf("no turn for %s", gap)
			}
			before = taken.Finished
		}
		if gap := time.Since(before); gap > 3*time.Second {
			t.Errorf("no turn for the last %s", gap)
		}
	})
}

// TestAbleNodesStandBehindOthers has many nodes that leave their turns to the next, for a reason
// that changes no rank or one that others learn of late. None of the turns is missed.
func TestAbleNodesStandBehindOthers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		nodes, able int
		often       time.Duration
		reason      error
	}{
		{20, 1, time.Second, observer.ErrOtherDefinition},
		{6, 3, time.Second, observer.ErrOtherDefinition},
		{20, 1, 4 * time.Second, observer.ErrOtherDefinition},
		{20, 1, time.Second, observer.ErrUnreachable},
		{20, 2, 2 * time.Second, observer.ErrUnreachable},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			story(t, func(t *testing.T, db *memory) {
				var nodes []*node
				for i := range test.nodes {
					do := fails(test.reason)
					if i >= test.nodes-test.able {
						do = nil
					}
					nodes = append(nodes, start(t, db, fmt.Sprintf("n%02d", i), only("order"), every(test.often), does("order-1", do)))
				}
				polls := func() (n int) {
					for _, able := range nodes[test.nodes-test.able:] {
						n += able.polls("order-1")
					}
					return n
				}
				settle()
				pass(2600 * time.Millisecond) // Behind the polls of a tick, and before the next, of each interval.
				before := polls()
				pass(60 * test.often)
				equal(t, "polls", polls()-before, 60)
			})
		})
	}
}

func TestPollAbandonedAtAStopIsTakenByAnother(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", only("order"), does("order-1", after(time.Hour)))
		pass(time.Second)
		b := start(t, db, "b", only("order"))
		pass(5 * time.Second)
		a.quit()
		pass(4 * time.Second)
		equal(t, "polls of b", b.polls("order-1"), 1)
		equal(t, "log", a.log.count("level=INFO", "Scheduler stopped", "released=[order-observer-poll]"), 1)
		for outcome := range map[turn.Outcome]bool{turn.Error: true, turn.Lost: true} {
			equal(t, string(outcome), a.metric(t, "scheduler_observer_polls_total{outcome="+string(outcome)+",type=order}"), 0)
		}
	})
}

func TestDatabaseThatIsAwayIsWaitedFor(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		fall := func(down bool) {
			db.set(func(m *memory) { m.down = down })
			db.locks.Fail(map[bool]error{true: errDown}[down])
		}
		fall(true)
		a := start(t, db, "a")
		for range 20 {
			pass(interval)
			equal(t, "stuck loops", len(a.loops.Stuck()), 0)
		}
		fall(false)
		pass(6 * time.Second)
		for _, typ := range types {
			equal(t, "polls of "+typ, a.polls(typ+"-1"), 1)
		}
		fall(true)
		for range 20 {
			pass(interval)
			equal(t, "stuck loops", len(a.loops.Stuck()), 0)
		}
		fall(false)
		pass(interval)
		for _, typ := range types {
			if a.polls(typ+"-1") < 2 {
				t.Errorf("%s is not polled any more", typ)
			}
		}
		equal(t, "told of it", a.log.count("level=WARN", "Coordination database cannot be used"), 2)
		equal(t, "told of its return", a.log.count("level=INFO", "Coordination database answers again"), 2)
	})
}

// TestHalfADatabaseIsToldOnce has a database that answers all but the acquisition of a lock, as
// with a full disk, or all but the read under it, as where a session has locked obs_cursor.
func TestHalfADatabaseIsToldOnce(t *testing.T) {
	for name, fail := range map[string]func(*memory, error){
		"acquisition": func(m *memory, err error) { m.locks.Fail(err) },
		"read":        func(m *memory, err error) { m.set(func(m *memory) { m.unread = err }) },
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, db *memory) {
				fail(db, errDown)
				nodes := []*node{start(t, db, "a", only("order")), start(t, db, "b", only("order"))}
				pass(20 * interval)
				for _, n := range nodes {
					equal(t, "told of it", n.log.count("level=WARN", "Coordination database cannot be used"), 1)
					equal(t, "told of its return too early", n.log.count("Coordination database answers again"), 0)
				}
				fail(db, nil)
				pass(2 * interval)
				for _, n := range nodes {
					equal(t, "told of its return", n.log.count("level=INFO", "Coordination database answers again"), 1)
				}
			})
		})
	}
}

func TestClockOfTheDatabaseDecides(t *testing.T) {
	for name, skew := range map[string]time.Duration{
		"ahead": 3700 * time.Millisecond, "behind": -13 * time.Second, "an hour": time.Hour + 123*time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, db *memory) {
				db.skew = skew
				a := start(t, db, "a", only("order"))
				pass(10 * interval)
				for _, at := range a.streams["order-1"].polls()[1:] {
					equal(t, "distance to a tick", at.Add(skew).Sub(at.Add(skew).Truncate(interval)), 0)
				}
				noTurnTwice(t, db, "order", interval)
			})
		})
	}
}

func TestPollingGoesOnWhenTheClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"back": -time.Hour, "forth": time.Hour, "a little": -500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, db *memory) {
				a := start(t, db, "a", only("order"))
				pass(5*interval + interval/2)
				before := a.polls("order-1")
				db.set(func(m *memory) { m.skew = jump })
				pass(10 * interval)
				if n := a.polls("order-1") - before; n < 9 || n > 11 {
					t.Errorf("%d polls in ten intervals", n)
				}
				// The first turn after the jump overwrites what the jump made absurd.
				ignored := map[bool]float64{true: 1}[jump == -time.Hour]
				equal(t, "ignored turns", a.metric(t, "observerd_future_turns_ignored_total{type=order}"), ignored)
				equal(t, "log", a.log.count("level=WARN", "Turn in the future ignored"), int(ignored))
			})
		})
	}
}

func TestNodeThatIsSwitchedOffOnlyBeats(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		off := start(t, db, "a", func(o *schedule.Options) { o.Enabled = false })
		b := start(t, db, "b")
		settle()
		polls := delta([]*node{off, b}, 10*interval)
		equal(t, "polls of the node that is off", total(polls["a"]), 0)
		equal(t, "polls of the other", total(polls["b"]), 30)
		nodes, _ := db.Nodes(t.Context(), time.Minute)
		if len(nodes) != 2 {
			t.Fatalf("nodes %+v", nodes)
		}
		for _, n := range nodes {
			equal(t, "types of "+n.Name, len(n.Types), map[string]int{"a": 0, "b": 3}[n.Name])
		}
		equal(t, "live nodes", b.metric(t, "observerd_live_nodes"), 2)
		b.quit()
		nodes, _ = db.Nodes(t.Context(), time.Minute)
		equal(t, "nodes after b has left", len(nodes), 1)
	})
}

// hang is a poll that is deaf to its context until it is let go.
func hang(letGo <-chan struct{}) poll {
	return func(ctx context.Context, _ lock.Grant) (observer.Stats, error) {
		<-letGo
		return observer.Stats{}, context.Cause(ctx)
	}
}

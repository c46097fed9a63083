package schedule_test

import (
	"sync/atomic"
	"testing"
	"time"
)

// passedOver is in how many turns of all types the node was first in line and
// another took them.
func (n *node) passedOver(t *testing.T) (turns float64) {
	t.Helper()
	for _, typ := range types {
		turns += n.metric(t, "observerd_turns_passed_over_total{type="+typ+"}")
	}
	return turns
}

const (
	passedOverSince = "observerd_turns_passed_over_since_poll"
	passedOverLine  = "Other nodes take the turns in which this node is first in line"
	pollsAgainLine  = "This node polls again"
)

// distant lets each look at a turn, and each attempt at a lock, of the node take as long
// as is stored. Call it before the node starts.
func distant(n *node) *atomic.Int64 {
	takes := new(atomic.Int64)
	n.db.beforeTurn = func() error { time.Sleep(time.Duration(takes.Load())); return nil }
	n.db.beforeAcquire = func() { time.Sleep(time.Duration(takes.Load())) }
	return takes
}

// TestNodeThatOthersAreAlwaysAheadOfSaysSo gives one of two nodes a way to the
// database that is longer than the grace of the next in line.
func TestNodeThatOthersAreAlwaysAheadOfSaysSo(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a := start(t, db, "a", every(time.Second), only("order"))
		b := newNode(t, db, "b", every(time.Second), only("order"))
		takes := distant(b)
		if err := b.sched.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer b.quit()
		pass(10*time.Second + 500*time.Millisecond)
		equal(t, "turns of b that a took before", b.metric(t, passedOverSince), 0)
		takes.Store(int64(300 * time.Millisecond))
		before, passed := b.polls("order-1"), b.metric(t, "observerd_turns_passed_over_total{type=order}")
		pass(18 * time.Second) // b is first in each second turn.
		equal(t, "polls of b", b.polls("order-1")-before, 0)
		equal(t, "turns of b that a took", b.metric(t, passedOverSince), 9)
		equal(t, "lines", b.log.count(passedOverLine), 0)
		pass(22 * time.Second)
		equal(t, "polls of b", b.polls("order-1")-before, 0)
		equal(t, "turns of b that a took", b.metric(t, passedOverSince), 20)
		equal(t, "all of them", b.metric(t, "observerd_turns_passed_over_total{type=order}")-passed, 20)
		equal(t, "lines", b.log.count("level=WARN", passedOverLine, "turns=10", "type=order", "look=300ms"), 1)
		equal(t, "lines of the end", b.log.count(pollsAgainLine), 0)
		takes.Store(0)
		pass(10 * time.Second)
		equal(t, "polls of b", b.polls("order-1")-before, 5)
		equal(t, "turns of b that a took", b.metric(t, passedOverSince), 0)
		equal(t, "lines", b.log.count(passedOverLine), 1)
		equal(t, "lines of the end", b.log.count("level=INFO", pollsAgainLine, "turns=20"), 1)
		equal(t, "turns of a that b took", a.log.count(passedOverLine), 0)
	})
}

// TestHealthyNodesAreNotPassedOver has polls that take a part of the interval, longer
// than all of it, and nodes that come in the middle of one.
func TestHealthyNodesAreNotPassedOver(t *testing.T) {
	for name, took := range map[string]time.Duration{
		"short": time.Millisecond, "half": interval / 2, "longer than the interval": 2*interval + interval/3,
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, db *memory) {
				var nodes []*node
				for _, name := range []string{"a", "b", "c"} {
					nodes = append(nodes, start(t, db, name, does("order-1", after(took))))
					pass(interval + interval/3)
				}
				pass(interval)
				before := make(map[*node]float64)
				for _, n := range nodes {
					before[n] = n.passedOver(t)
				}
				pass(100 * interval)
				for _, n := range nodes {
					equal(t, "turns of "+n.name+" that another took", n.passedOver(t)-before[n], 0)
					equal(t, "lines of "+n.name, n.log.count(passedOverLine)+n.log.count(pollsAgainLine), 0)
				}
			})
		})
	}
}

// TestNodeThatComesLaterIsNotPassedOver lets it begin in the middle of a turn that is
// over.
func TestNodeThatComesLaterIsNotPassedOver(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		start(t, db, "z")
		pass(interval / 2)
		for range 6 { // It is first in line for one or two of the types.
			b := start(t, db, "b")
			pass(interval / 4)
			equal(t, "turns of b that another took", b.passedOver(t), 0)
			b.quit()
			pass(interval + 3*interval/4)
		}
	})
}

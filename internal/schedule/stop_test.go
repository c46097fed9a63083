package schedule_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestStopInTheFirstMomentOfATurnIsNoticed covers a node that stops while the
// others still wait for their places behind it: the next in line need not wait
// for its own, and does not meet those behind it at the lock.
func TestStopInTheFirstMomentOfATurnIsNoticed(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		var nodes []*node
		told := make(map[*node]*obituary)
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			o := &obituary{}
			n := start(t, db, name, only("order"), does("order-1", after(5*time.Second)), reads(o))
			told[n] = o
			nodes = append(nodes, n)
		}
		settle()
		pass(interval/2 + 10*time.Millisecond)
		stopped, others := favourite(t, nodes)
		tried := db.locks.Attempts("order-observer-poll")
		stopped.quit()
		for _, n := range others {
			told[n].tell()
		}
		synctest.Wait()
		favourite(t, others)
		pass(10 * time.Second)
		equal(t, "attempts at the lock", db.locks.Attempts("order-observer-poll")-tried, 1)
		noTurnTwice(t, db, "order", interval)
	})
}

// TestTurnThatIsTakenWhileOthersWaitInLineIsLeftAlone wakes those who wait when
// the turn is over: nobody tries.
func TestTurnThatIsTakenWhileOthersWaitInLineIsLeftAlone(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		told := []*obituary{{}, {}, {}}
		var nodes []*node
		for i, name := range []string{"a", "b", "c"} {
			nodes = append(nodes, start(t, db, name, only("order"), reads(told[i])))
		}
		settle()
		tried := db.locks.Attempts("order-observer-poll")
		pass(interval/2 + 10*time.Millisecond)
		for _, o := range told {
			o.tell()
		}
		synctest.Wait()
		waits := 0
		for _, n := range nodes {
			waits += n.log.count("Lock not acquired", "turn taken", "tick="+time.Now().Truncate(interval).UTC().Format("2006-01-02T15:04:05.000Z"))
		}
		equal(t, "nodes that have stood back at once", waits, 2)
		pass(interval / 2)
		equal(t, "attempts at the lock", db.locks.Attempts("order-observer-poll")-tried, 1)
	})
}

// TestStopDuringASignOfLifeLeavesNoGhost stops a node whose sign of life is under
// way. The database carries an abandoned statement out all the same, and would
// do so after the node's farewell.
func TestStopDuringASignOfLifeLeavesNoGhost(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		n := newNode(t, db, "a")
		n.db.beatTakes = 100 * time.Millisecond
		if err := n.sched.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		pass(50 * time.Millisecond)
		n.quit()
		pass(time.Second)
		equal(t, "nodes that count as alive", len(db.nodes), 0)
	})
}

// TestStopSucceedsWithoutTheDatabase stops a node that cannot sign off: who stops it during an
// outage has nothing to repair.
func TestStopSucceedsWithoutTheDatabase(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		n := start(t, db, "a")
		pass(interval)
		db.set(func(m *memory) { m.down = true })
		if err := n.sched.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		equal(t, "told of it", n.log.count("level=WARN", "Node not signed off"), 1)
		db.set(func(m *memory) { m.down = false })
	})
}

// TestStopDoesNotWaitForASignOfLifeThatHangs covers a database that takes a
// statement and does not answer.
func TestStopDoesNotWaitForASignOfLifeThatHangs(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		n := newNode(t, db, "a")
		n.db.beatTakes = time.Hour
		if err := n.sched.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		began := time.Now()
		n.quit()
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("stopped after %s", took)
		}
		pass(time.Hour)
	})
}

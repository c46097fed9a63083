package schedule_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/schedule"
)

// obituary is what a node knows of others' deaths, as a test tells it.
type obituary struct {
	mu   sync.Mutex
	gone map[string]bool
	wake chan struct{}
}

// reads gives the node an obituary.
func reads(o *obituary) setup {
	o.gone, o.wake = make(map[string]bool), make(chan struct{})
	return func(options *schedule.Options) { options.Liveness = o }
}

func (o *obituary) Gone(bootID string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gone[bootID]
}

func (o *obituary) Freed(lock.Request) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.wake
}

// tell says that the nodes are dead, and that locks may have become free.
func (o *obituary) tell(dead ...*node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range dead {
		o.gone[n.boot] = true
	}
	close(o.wake)
	o.wake = make(chan struct{})
}

// hangs is a poll that ends with its lease.
func hangs() setup { return does("order-1", after(time.Hour)) }

// favourite returns the node that polls at present, and the others.
func favourite(t *testing.T, nodes []*node) (polls *node, others []*node) {
	t.Helper()
	for _, n := range nodes {
		if s := n.streams["order-1"]; s.runs() {
			polls = n
			continue
		}
		others = append(others, n)
	}
	if polls == nil {
		t.Fatal("nobody polls")
	}
	return polls, others
}

func (s *stream) runs() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running > 0
}

// standbys starts nodes whose polls hang, and waits until one polls and the others
// wait in the middle of an interval.
func standbys(t *testing.T, db *memory, names ...string) (nodes []*node, told map[*node]*obituary) {
	t.Helper()
	told = make(map[*node]*obituary)
	for _, name := range names {
		o := &obituary{}
		n := start(t, db, name, only("order"), hangs(), reads(o))
		told[n] = o
		nodes = append(nodes, n)
	}
	settle()
	return nodes, told
}

func TestTurnOfADeadNodeIsTakenAtOnce(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		nodes, told := standbys(t, db, "a", "b", "c", "d", "e")
		dead, others := favourite(t, nodes)
		g, _ := db.locks.Holder(request("order", ""))
		dead.crash()
		db.locks.Expire(g)
		tried := db.locks.Attempts("order-observer-poll")
		for _, n := range others {
			told[n].tell(dead)
		}
		synctest.Wait()
		next, _ := favourite(t, others)
		if next == dead {
			t.Error("the dead node polls")
		}
		pass(10 * time.Second)
		equal(t, "attempts at the lock", db.locks.Attempts("order-observer-poll")-tried, 1)
	})
}

// TestNextInLineIsDeadToo lets two nodes die. Those that wait behind them are
// told of it one after the other.
func TestNextInLineIsDeadToo(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		nodes, told := standbys(t, db, "a", "b", "c", "d", "e")
		first, others := favourite(t, nodes)
		g, _ := db.locks.Holder(request("order", ""))
		first.crash()
		db.locks.Expire(g)
		// Nobody knows who comes next until one has: it dies before it is told.
		for _, n := range others {
			told[n].mu.Lock()
			told[n].gone[first.boot] = true
			told[n].mu.Unlock()
		}
		for _, n := range others[:2] {
			n.crash()
		}
		for _, n := range others[2:] {
			told[n].tell(others[:2]...)
		}
		synctest.Wait()
		favourite(t, others[2:])
	})
}

func TestFavouriteThatDiedWithoutALeaseIsSkipped(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		a, b := &obituary{}, &obituary{}
		nodes := []*node{start(t, db, "a", only("order"), reads(a)), start(t, db, "b", only("order"), reads(b))}
		settle()
		nodes[0].crash()
		b.tell(nodes[0])
		from := len(nodes[1].streams["order-1"].polls())
		pass(3 * interval)
		polls := nodes[1].streams["order-1"].polls()[from:]
		equal(t, "polls", len(polls), 3)
		for _, at := range polls {
			if late := at.Sub(at.Truncate(interval)); late > 100*time.Millisecond {
				t.Errorf("a turn of the dead node began %s late", late)
			}
		}
	})
}

// TestStopInAPollIsNoticed covers a node that gives its lock back in the middle
// of a turn: with news of it at once, without them within a second.
func TestStopInAPollIsNoticed(t *testing.T) {
	for name, informed := range map[string]bool{"told": true, "not told": false} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, db *memory) {
				a := start(t, db, "a", only("order"), hangs())
				pass(time.Second)
				o := &obituary{}
				setups := []setup{only("order")}
				if informed {
					setups = append(setups, reads(o))
				}
				b := start(t, db, "b", setups...)
				pass(20 * time.Second)
				a.quit()
				if informed {
					o.tell()
				} else {
					pass(time.Second)
				}
				synctest.Wait()
				pass(10 * time.Millisecond)
				equal(t, "polls of b", b.polls("order-1"), 1)
			})
		})
	}
}

// TestHolderDiesJustBeforeTheNextTick covers the end of an interval, in which
// standbys must not have gone home.
func TestHolderDiesJustBeforeTheNextTick(t *testing.T) {
	story(t, func(t *testing.T, db *memory) {
		nodes, told := standbys(t, db, "a", "b")
		dead, others := favourite(t, nodes)
		g, _ := db.locks.Holder(request("order", ""))
		pass(interval/2 - 1500*time.Millisecond)
		dead.crash()
		db.locks.Expire(g)
		told[others[0]].tell(dead)
		synctest.Wait()
		if !others[0].streams["order-1"].runs() {
			t.Error("the turn was left to the next tick")
		}
	})
}

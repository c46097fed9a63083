package schedule_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/test/kit/fairness"
)

// goalScore is how evenly a hundred cycles are to be shared; goalAttempts is
// how many attempts at locks a poll may cost.
const (
	goalScore    = 95
	goalAttempts = 1.1
)

// crowd is a cluster of the matrix.
type crowd struct {
	db       *memory
	nodes    []*node
	types    []string
	eligible fairness.Eligible
}

// polling replaces the types of a node; each has one observer.
func polling(types []string) setup {
	return func(o *schedule.Options) {
		o.Logger, o.Types = nil, nil
		for _, typ := range types {
			o.Types = append(o.Types, schedule.Type{
				Name: typ, Interval: interval, Request: request(typ, o.Node.Name), Wait: time.Second,
				Observers: []schedule.Observer{&stream{id: typ + "-1", do: after(200 * time.Millisecond)}},
			})
		}
	}
}

// gather starts a cluster. polls says which node polls which type.
func gather(t *testing.T, db *memory, nodes, types int, polls func(node, typ int) bool) *crowd {
	t.Helper()
	c := &crowd{db: db, eligible: make(fairness.Eligible)}
	for i := range types {
		c.types = append(c.types, fmt.Sprintf("t%02d", i))
	}
	for n := range nodes {
		var mine []string
		name := fmt.Sprintf("n%02d", n)
		for i, typ := range c.types {
			if polls(n, i) {
				mine = append(mine, typ)
				c.eligible[typ] = append(c.eligible[typ], name)
			}
		}
		c.nodes = append(c.nodes, start(t, db, name, polling(mine)))
	}
	return c
}

func all(int, int) bool { return true }

// cycle is the number of the present tick.
func cycle() int64 { return time.Now().UnixNano() / int64(interval) }

// turns are all polls so far.
func (c *crowd) turns() (polls []fairness.Poll) {
	for _, typ := range c.types {
		for _, taken := range c.db.taken(typ) {
			polls = append(polls, fairness.Poll{Type: typ, Node: taken.Node, Cycle: taken.At.UnixNano() / int64(interval)})
		}
	}
	return polls
}

func (c *crowd) attempts() (n int) {
	for _, typ := range c.types {
		n += c.db.locks.Attempts(typ + "-observer-poll")
	}
	return n
}

// judge lets a hundred cycles pass and wants them shared evenly, all types
// together and each by itself, at hardly more than one attempt a poll.
func (c *crowd) judge(t *testing.T) {
	t.Helper()
	const cycles = 100
	from, before := cycle()+1, c.attempts()
	pass(cycles * interval)
	shares := fairness.Share(c.turns(), c.eligible, from, from+cycles)
	equal(t, "polls", shares.Sum(), cycles*len(c.types))
	if got := shares.Overall(); got < goalScore {
		t.Errorf("score %.1f: %v", got, shares.Nodes())
	}
	if typ, got := shares.Worst(); got < goalScore {
		t.Errorf("score of %s %.1f: %v", typ, got, shares.Polls[typ])
	}
	if got := float64(c.attempts()-before) / float64(shares.Sum()); got > goalAttempts {
		t.Errorf("%.2f attempts at locks for each poll", got)
	}
}

func TestBalance(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{2, 3, 10} {
		for _, types := range []int{3, 10, 50} {
			t.Run(fmt.Sprintf("%d nodes, %d types", nodes, types), func(t *testing.T) {
				story(t, func(t *testing.T, db *memory) {
					c := gather(t, db, nodes, types, all)
					settle()
					c.judge(t)
				})
			})
		}
	}
}

// TestBalanceOfTypesThatSomeNodesLack leaves each type to about two thirds of
// the nodes, in different combinations.
func TestBalanceOfTypesThatSomeNodesLack(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{2, 3, 10} {
		for _, types := range []int{3, 10, 50} {
			t.Run(fmt.Sprintf("%d nodes, %d types", nodes, types), func(t *testing.T) {
				story(t, func(t *testing.T, db *memory) {
					c := gather(t, db, nodes, types, func(node, typ int) bool { return (node+typ)%3 != 0 || node == typ%nodes })
					settle()
					c.judge(t)
				})
			})
		}
	}
}

// TestBalanceReturns lets a node come, one go, one die and one come back under
// its name, and wants even shares again within a cycle or two of the moment at
// which the others can know of it.
func TestBalanceReturns(t *testing.T) {
	t.Parallel()
	for _, size := range []int{2, 3, 10} {
		t.Run(fmt.Sprintf("%d nodes", size), func(t *testing.T) {
			story(t, func(t *testing.T, db *memory) {
				c := gather(t, db, size, 10, all)
				settle()
				again := func(what string, change func()) {
					t.Helper()
					at := cycle() + 1
					change()
					pass(interval * time.Duration(3*size+6))
					from, ok := fairness.EvenAgain(c.turns(), c.eligible, at, cycle())
					if lag := from - at; !ok || lag > 2 {
						t.Errorf("%s: even again after %d cycles (%v)", what, lag, ok)
					}
				}
				again("one comes", func() { c.add(t, "x") })
				again("one goes", func() { c.drop(0).quit() })
				again("one dies", func() { c.drop(len(c.nodes) - 1).crash() })
				again("it comes back", func() { c.add(t, "x") })
			})
		})
	}
}

func (c *crowd) add(t *testing.T, name string) {
	t.Helper()
	c.nodes = append(c.nodes, start(t, c.db, name, polling(c.types)))
	for _, typ := range c.types {
		c.eligible[typ] = append(c.eligible[typ], name)
	}
}

// drop takes a node out of the cluster's books; the caller ends it.
func (c *crowd) drop(i int) *node {
	n := c.nodes[i]
	c.nodes = slices.Delete(c.nodes, i, i+1)
	for _, typ := range c.types {
		c.eligible[typ] = slices.DeleteFunc(c.eligible[typ], func(name string) bool { return name == n.name })
	}
	return n
}

package schedule

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/turn"
)

// deadAfter is the number of heartbeats after which a silent node is dead.
const deadAfter = 3

// unreachableIntervals is for how many intervals a node ranks last for a type after
// it could not reach a source. Then it has its rank again and tries: a node that
// ranked last for ever would never try.
const unreachableIntervals = 10

// membership knows the live nodes, and what this node publishes about itself.
type membership struct {
	node  turn.Node
	store members

	mu          sync.Mutex
	others      []turn.Node
	unreachable map[string]time.Time // type, and until when it ranks last for it
	differs     map[string]bool      // observers that the others define in another way
}

func newMembership(node turn.Node, store members) *membership {
	node.Types = slices.Sorted(slices.Values(node.Types))
	return &membership{node: node, store: store, unreachable: make(map[string]time.Time), differs: make(map[string]bool)}
}

// beat records that this node is alive and reads the other live nodes.
func (m *membership) beat(ctx context.Context, heartbeat time.Duration) error {
	if err := m.store.Beat(ctx, m.self()); err != nil {
		return err
	}
	nodes, err := m.store.Nodes(ctx, deadAfter*heartbeat)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.others = nodes
	return nil
}

// self returns the row that this node publishes.
func (m *membership) self() turn.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.unreachable, func(_ string, until time.Time) bool { return !time.Now().Before(until) })
	node := m.node
	node.Unreachable = slices.Sorted(maps.Keys(m.unreachable))
	node.Outdated = slices.Sorted(maps.Keys(m.differs))
	return node
}

// nodes returns the live nodes, as last read.
func (m *membership) nodes() []turn.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.others
}

// size returns the number of live nodes, this one included.
func (m *membership) size() int { return len(withSelf(m.nodes(), m.self())) }

// reached notes whether a poll of the type reached all its sources.
func (m *membership) reached(typ Type, yes bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if yes {
		delete(m.unreachable, typ.Name)
		return
	}
	m.unreachable[typ.Name] = time.Now().Add(unreachableIntervals * typ.Interval)
}

// outdated notes whether the others define an observer in another way.
func (m *membership) outdated(observer string, yes bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if yes {
		m.differs[observer] = true
		return
	}
	delete(m.differs, observer)
}

// position returns this node's position for tick n of the type, among the nodes that
// are not excluded.
func (m *membership) position(typ string, n int64, excluded func(bootID string) bool) position {
	return positionOf(m.nodes(), m.self(), typ, n, excluded)
}

// maxGrace is the longest wait for one node that ranks before this one.
const maxGrace = 2 * time.Second

// position is a node's position in the queue for one turn: behind rank others, of
// size nodes in all.
type position struct{ rank, size int }

// positionOf returns the node's position for tick n of a type. The nodes that poll
// the type form a ring by name and boot id; the queue begins at
// (n + index of the type) and so moves by one node with each tick and each type.
// Nodes that cannot reach a source of the type come last. Excluded nodes do not
// count, but the order of the others stays: for a node that does not know yet that
// they are excluded, the queue is the same, only longer.
func positionOf(nodes []turn.Node, self turn.Node, typ string, n int64, excluded func(bootID string) bool) position {
	able, unable := ring(nodes, self, typ)
	start := n + int64(typeIndex(nodes, self, typ))
	queue := append(rotate(able, start), rotate(unable, start)...)
	queue = slices.DeleteFunc(queue, func(node turn.Node) bool { return node.BootID != self.BootID && excluded(node.BootID) })
	rank := slices.IndexFunc(queue, func(node turn.Node) bool { return node.BootID == self.BootID })
	return position{rank: rank, size: len(queue)}
}

// wait returns the time to leave to the nodes that rank before: a grace for each,
// all together at most a quarter of the interval.
func (p position) wait(interval time.Duration) time.Duration {
	if p.rank <= 0 || p.size < 2 {
		return 0
	}
	grace := min(maxGrace, interval/4/time.Duration(p.size-1))
	return time.Duration(p.rank) * grace
}

// ring returns the nodes that poll the type: those that can reach all its sources
// and those that cannot. This node is always one of them.
func ring(nodes []turn.Node, self turn.Node, typ string) (able, unable []turn.Node) {
	for _, node := range withSelf(nodes, self) {
		switch {
		case !slices.Contains(node.Types, typ):
		case slices.Contains(node.Unreachable, typ):
			unable = append(unable, node)
		default:
			able = append(able, node)
		}
	}
	return able, unable
}

// withSelf replaces the stored row of this node by self, and sorts the nodes.
func withSelf(nodes []turn.Node, self turn.Node) []turn.Node {
	all := append(fn.Only(nodes, func(node turn.Node) bool { return node.BootID != self.BootID }), self)
	slices.SortFunc(all, func(a, b turn.Node) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.BootID, b.BootID))
	})
	return all
}

// typeIndex returns the type's index among all types of the cluster, so that nodes
// with different types agree on it.
func typeIndex(nodes []turn.Node, self turn.Node, typ string) int {
	types := slices.Concat(fn.Each(withSelf(nodes, self), func(n turn.Node) []string { return n.Types })...)
	i, _ := slices.BinarySearch(fn.Distinct(types), typ)
	return i
}

// rotate returns the nodes beginning at start, wrapped around.
func rotate(nodes []turn.Node, start int64) []turn.Node {
	if len(nodes) == 0 {
		return nil
	}
	at := int(start % int64(len(nodes)))
	return append(slices.Clone(nodes[at:]), nodes[:at]...)
}

package schedule

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/turn"
)

// deadAfter is the number of heartbeats after which a silent node is dead.
const deadAfter = 3

// unreachableIntervals is for how many intervals a node ranks last for a type
// after it could not reach a source. Then it takes its place again and so
// finds out: a node that ranks last forever would never be asked to try.
const unreachableIntervals = 10

// member is this node's place among the live ones.
type member struct {
	node  turn.Node
	store members

	mu          sync.Mutex
	others      []turn.Node
	unreachable map[string]time.Time // type, and until when it is so marked
	differs     map[string]bool      // observers that the others define in another way
}

func newMember(node turn.Node, store members) *member {
	node.Types = slices.Sorted(slices.Values(node.Types))
	return &member{node: node, store: store, unreachable: make(map[string]time.Time), differs: make(map[string]bool)}
}

// beat says that this node is alive and reads who else is.
func (m *member) beat(ctx context.Context, heartbeat time.Duration) error {
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

// self is what this node says of itself.
func (m *member) self() turn.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.unreachable, func(_ string, until time.Time) bool { return !time.Now().Before(until) })
	node := m.node
	node.Unreachable = slices.Sorted(maps.Keys(m.unreachable))
	node.Outdated = slices.Sorted(maps.Keys(m.differs))
	return node
}

// nodes are the live ones, as last read.
func (m *member) nodes() []turn.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.others
}

// size is the number of live nodes, this one included.
func (m *member) size() int { return len(withSelf(m.nodes(), m.self())) }

// reached notes whether a poll of the type reached all its sources.
func (m *member) reached(typ Type, yes bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if yes {
		delete(m.unreachable, typ.Name)
		return
	}
	m.unreachable[typ.Name] = time.Now().Add(unreachableIntervals * typ.Interval)
}

// outdated notes whether the others define an observer in another way.
func (m *member) outdated(observer string, yes bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if yes {
		m.differs[observer] = true
		return
	}
	delete(m.differs, observer)
}

// place is where this node stands in line for tick n of the type, among
// those that are not out.
func (m *member) place(typ string, n int64, out func(bootID string) bool) line {
	return standIn(m.nodes(), m.self(), typ, n, out)
}

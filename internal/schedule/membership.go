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

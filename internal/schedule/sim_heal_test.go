package schedule_test

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
)

// heal ends all faults, waits for as long as they may linger, and looks at a
// round of the rotation, or two.
func (m *simCluster) heal(t *rapid.T) {
	m.setDown(false)
	m.rate = 0
	for _, n := range m.world.living() {
		n.wire.Heal()
		n.wire.Resume()
		n.feelWell()
		for _, other := range m.world.living() {
			other.news.recant(n.boot)
		}
		if n.interval != m.interval {
			m.remove(n)
			n.leave()
			m.start(t, simPlan{Name: n.name, Types: n.types, Interval: m.interval, Informed: n.news.informed})
		}
	}
	if len(m.world.living()) == 0 {
		m.start(t, simPlan{Name: "a", Types: types[:2], Interval: m.interval})
	}
	m.tidy()
	m.sleep(m.lingers())
	m.check(t)
	m.rounds(t)
	m.check(t)
}

// tidy does what an operator does after the database's clock went back: a node
// that died before counts as alive.
func (m *simCluster) tidy() {
	living := make(map[string]bool)
	for _, n := range m.world.living() {
		living[n.boot] = true
	}
	m.world.db.set(func(db *memory) {
		maps.DeleteFunc(db.nodes, func(boot string, n turn.Node) bool { return !living[boot] && n.SeenAt.After(db.now()) })
	})
}

// lingers is how long the consequences of faults last: an orphan is carried
// out and its lease ends; the dead are not counted any more; a node that could
// not reach a source ranks last; an observer that failed waits.
func (m *simCluster) lingers() time.Duration {
	d := 2*simTTL + 2*simTTL + 3*m.interval
	m.world.db.mu.Lock()
	defer m.world.db.mu.Unlock()
	now := m.world.db.now()
	for _, s := range m.world.db.streams {
		d = max(d, min(s.RetryAt.Sub(now), observer.LongestPause)+2*m.interval)
	}
	if time.Since(m.world.unreached) < 12*30*time.Second {
		d = max(d, 13*m.interval)
	}
	return d.Truncate(m.interval) + m.interval/2 + (now.Truncate(m.interval).Add(m.interval).Sub(now))
}

// rounds judges what a healthy cluster does: each type is polled once in each
// interval, by its nodes in turn, and the lock is tried for no more than that.
func (m *simCluster) rounds(t *rapid.T) {
	size := 1
	for _, typ := range types[:2] {
		size = max(size, len(m.pollers(typ)))
	}
	rare := len(m.world.db.noted(simRare))
	before, tried := make(map[string]int), make(map[string]int)
	for _, typ := range types[:2] {
		before[typ] = len(m.world.db.taken(typ))
		tried[typ] = m.world.db.locks.Attempts(request(typ, "").Key)
	}
	m.sleep(time.Duration(size) * m.interval)
	for _, typ := range types[:2] {
		if nodes := m.pollers(typ); len(nodes) > 0 {
			turns := m.world.db.taken(typ)[before[typ]:]
			m.judgeRounds(typ, nodes, turns, size)
			lacks := func(n *simNode) bool { return !slices.Contains(n.observers[typ], simRare) }
			if typ == types[1] && !slices.ContainsFunc(nodes, lacks) {
				m.judgeRare(m.world.db.noted(simRare)[rare:], size)
			}
			if n := m.world.db.locks.Attempts(request(typ, "").Key) - tried[typ]; n > size {
				m.world.broken("%d attempts at the lock for %d turns", n, size)
			}
		}
	}
}

func (m *simCluster) judgeRounds(typ string, nodes []*simNode, turns []turn.Taken, size int) {
	if len(turns) != size {
		m.world.broken("%d turns of %s in %d intervals after the faults", len(turns), typ, size)
		return
	}
	shares := make(map[string]int)
	for i, taken := range turns {
		shares[taken.Node]++
		if taken.Outcome != turn.OK {
			m.world.broken("turn of %s after the faults ended in %s", typ, taken.Outcome)
		}
		if i > 0 && taken.At.Sub(turns[i-1].At) != m.interval {
			m.world.broken("turn of %s left out after the faults", typ)
		}
	}
	for _, n := range nodes {
		if share := shares[n.name]; share < size/len(nodes) || share > (size+len(nodes)-1)/len(nodes) {
			m.world.broken("%s had %d of %d turns of %s, with %d nodes", n.name, share, size, typ, len(nodes))
		}
	}
	m.world.tally.Count("even shares")
}

// judgeRare judges that the rare stream has had its share of the turns, each as long
// after the one before.
func (m *simCluster) judgeRare(notes []turn.StreamTaken, size int) {
	for i, note := range notes {
		if i > 0 && note.At.Sub(notes[i-1].At) != simRarity*m.interval {
			m.world.broken("%s polled after %s", simRare, note.At.Sub(notes[i-1].At))
		}
		m.world.tally.Count("rare turn")
	}
	if had := len(notes); had < size/simRarity || had > (size+simRarity-1)/simRarity {
		m.world.broken("%s had %d of %d turns after the faults", simRare, had, size)
	}
}

// pollers are the living nodes that poll the type.
func (m *simCluster) pollers(typ string) (nodes []*simNode) {
	for _, n := range m.world.living() {
		if n.polls(typ) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

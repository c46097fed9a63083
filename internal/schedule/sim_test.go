package schedule_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/test/kit/simtest"
)

// TestSimulatedClusters lets clusters of one to seven nodes live through calls
// that fail, are late or carried out behind their caller's back, nodes that
// join, leave, sleep, die or are wrongly taken for dead, a database whose clock
// runs and jumps, and sources that are out of reach. No turn is taken twice;
// and once the faults are over, none is left out and the shares are even. It
// runs alone, because gocron spins while it shuts down.
func TestSimulatedClusters(t *testing.T) {
	tally := simtest.Check(t, func(t *rapid.T, tally *simtest.Tally) {
		m := &simCluster{world: newSimWorld(tally), interval: simIntervals[1]}
		defer m.end()
		for range rapid.IntRange(1, 4).Draw(t, "nodes") {
			m.join(t)
		}
		t.Repeat(simtest.Actions{
			"": m.check, "pass": m.pass, "meet": m.meet, "fault": m.fault, "join": m.join, "kill": m.kill, "leave": m.leave,
			"pause": m.pause, "resume": m.resume, "cut": m.cut, "reconnect": m.reconnect, "slander": m.slander, "jump": m.jump,
			"drift": m.drift, "outage": m.outage, "source": m.source, "interval": m.change,
		}.Often(2, "pass").Often(5, "meet").Often(4, "fault"))
		m.heal(t)
	})
	tally.Demand(t, "stale write refused", "lease taken over", "even shares", "polls overlap after a theft", "rare turn")
}

// simCluster is the state machine.
type simCluster struct {
	world    *simWorld
	interval time.Duration // of nodes that join now
	rate     float64       // at which the database's clock gains
	started  int
	gone     []*simNode
}

// simIntervals are those of the types, the shortest first.
var simIntervals = []time.Duration{4 * time.Second, 10 * time.Second, 30 * time.Second}

var simNames = []string{"a", "b", "c", "d", "e", "f", "g"}

// node draws a living node, most often one that holds a lock, if there is one:
// there faults matter.
func (m *simCluster) node(t *rapid.T) *simNode {
	nodes := m.world.living()
	if len(nodes) == 0 {
		t.Skip("nobody is alive")
	}
	i := rapid.IntRange(-3, len(nodes)-1).Draw(t, "node")
	if i >= 0 {
		return nodes[i]
	}
	if n := m.world.holder(types[-i%2]); n != nil {
		return n
	}
	return nodes[0]
}

func (m *simCluster) check(t *rapid.T) {
	synctest.Wait()
	for _, n := range m.world.living() {
		if call := n.wire.Endless(); call != "" {
			m.world.broken("%s was called without a deadline", call)
		}
	}
	if wrong := m.world.verdict(); wrong != "" {
		t.Logf("what happened:\n%s", m.world.journal)
		t.Fatal(wrong)
	}
}

func (m *simCluster) pass(t *rapid.T) { m.sleep(simtest.Durations(3*m.interval).Draw(t, "time")) }

// meet lets time pass into the next turn.
func (m *simCluster) meet(t *rapid.T) {
	into := simtest.Durations(4*time.Second).Draw(t, "into the turn")
	now := m.world.clock.Now()
	m.sleep(now.Truncate(m.interval).Add(m.interval + into).Sub(now))
}

// sleep lets time pass, in steps in which the database's clock drifts.
func (m *simCluster) sleep(d time.Duration) {
	for d > 0 {
		step := min(d, 5*time.Second)
		time.Sleep(step)
		if m.rate != 0 {
			m.world.slew(time.Duration(float64(step) * m.rate))
		}
		d -= step
	}
}

func (m *simCluster) fault(t *rapid.T) {
	call := rapid.SampledFrom([]string{
		"acquire", "take", "release", "renew", "note", "turn", "streams", "now", "beat", "nodes", "leave", "poll", "commit",
	}).Draw(t, "call")
	faults := rapid.SliceOfN(simtest.Faults(2*simTTL), 1, 2).Draw(t, "faults")
	m.node(t).wire.Arm(call, rapid.SampledFrom([]int{1, 2, 10}).Draw(t, "times"), faults...)
}

// join starts a node with some of the types.
func (m *simCluster) join(t *rapid.T) {
	taken := make(map[string]bool)
	for _, n := range m.world.living() {
		taken[n.name] = true
	}
	for _, name := range simNames {
		if taken[name] {
			continue
		}
		p := simPlan{Name: name, Interval: m.interval, Informed: rapid.Bool().Draw(t, "informed")}
		for _, typ := range types[:2] {
			if rapid.IntRange(0, 3).Draw(t, typ) > 0 {
				p.Types = append(p.Types, typ)
			}
		}
		m.start(t, p)
		return
	}
}

func (m *simCluster) start(t *rapid.T, p simPlan) {
	m.started++
	if _, err := startSimNode(m.world, p, m.started); err != nil {
		t.Fatal(err)
	}
}

// remove takes the node off the living.
func (m *simCluster) remove(n *simNode) {
	m.world.mu.Lock()
	defer m.world.mu.Unlock()
	for i, other := range m.world.nodes {
		if other == n {
			m.world.nodes = append(m.world.nodes[:i:i], m.world.nodes[i+1:]...)
		}
	}
	m.gone = append(m.gone, n)
}

// kill kills a node. The informed hear of it a little later, and its leases are
// freed then.
func (m *simCluster) kill(t *rapid.T) {
	n := m.node(t)
	seen := rapid.Bool().Draw(t, "seen")
	m.remove(n)
	n.kill()
	if !seen {
		return
	}
	m.world.work.Go(func() {
		time.Sleep(1300 * time.Millisecond)
		m.world.bury(n)
		for _, other := range m.world.living() {
			other.news.tell(n.boot)
		}
	})
}

func (m *simCluster) leave(t *rapid.T) {
	n := m.node(t)
	m.remove(n)
	n.leave()
}

// slander lets others take a living node for dead: its leases are freed.
func (m *simCluster) slander(t *rapid.T) {
	n := m.node(t)
	m.world.journal.Note(n.name, "is taken for dead")
	m.world.bury(n)
	for _, other := range m.world.living() {
		if other != n {
			other.news.tell(n.boot)
		}
	}
}

func (m *simCluster) pause(t *rapid.T)  { m.node(t).wire.Pause() }
func (m *simCluster) resume(t *rapid.T) { m.node(t).wire.Resume() }
func (m *simCluster) cut(t *rapid.T)    { m.node(t).wire.Cut() }

func (m *simCluster) reconnect(t *rapid.T) {
	n := m.node(t)
	n.wire.Heal()
	n.feelWell()
}

func (m *simCluster) jump(t *rapid.T) {
	far := rapid.SampledFrom([]time.Duration{4 * m.interval, 4 * m.interval, time.Hour}).Draw(t, "at most")
	d := simtest.Durations(far).Draw(t, "by")
	if rapid.Bool().Draw(t, "back") {
		d = -d
	}
	m.world.jump(d)
}

// drift lets the database's clock gain or lose up to two seconds a minute.
func (m *simCluster) drift(t *rapid.T) {
	m.rate = float64(rapid.IntRange(-30, 30).Draw(t, "per mille")) / 1000
}

// outage ends or begins one of the database.
func (m *simCluster) outage(t *rapid.T) {
	down := rapid.Bool().Draw(t, "down")
	m.setDown(down)
}

func (m *simCluster) setDown(down bool) {
	m.world.db.set(func(db *memory) { db.down = down })
	m.world.db.locks.Fail(map[bool]error{true: errDown}[down])
}

// source changes how polls of a stream go on a node.
func (m *simCluster) source(t *rapid.T) {
	n := m.node(t)
	id := rapid.SampledFrom([]string{"order-1", "inventory-1", "inventory-2"}).Draw(t, "stream")
	n.feel(id, rapid.SampledFrom([]simMood{
		{}, {err: observer.ErrUnreachable}, {err: errSick}, {lags: m.interval / 2}, {lags: 2 * m.interval},
	}).Draw(t, "mood"))
}

// change changes the interval of nodes that join from now on.
func (m *simCluster) change(t *rapid.T) {
	m.interval = rapid.SampledFrom(simIntervals).Draw(t, "interval")
}

// end ends all nodes, one after the other: gocron spins while it shuts down,
// and many that do so at once are slow. Nothing of theirs may run on.
func (m *simCluster) end() {
	for _, n := range m.world.living() {
		m.remove(n)
		n.kill()
		m.world.work.Wait()
	}
	m.world.work.Wait()
	for _, n := range m.gone {
		n.wire.Settle()
	}
}

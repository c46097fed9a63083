package lock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/observerd/observerd/test/kit/simtest"
)

// TestSimulatedHolders lets processes compete for locks while calls fail, are
// late or carried out behind their caller's back, processes sleep and die, and
// the provider's clock runs and jumps. Trust never outlives the lease, a stale
// write is refused, and once the faults are over every lock is held again.
func TestSimulatedHolders(t *testing.T) {
	t.Parallel()
	tally := simtest.Check(t, func(t *rapid.T, tally *simtest.Tally) {
		m := &simHolders{world: newSimWorld(tally), ttl: rapid.SampledFrom(simTTLs).Draw(t, "ttl")}
		defer m.end()
		for i, name := range []string{"a", "b", "c"}[:rapid.IntRange(2, 3).Draw(t, "nodes")] {
			m.nodes = append(m.nodes, startSimNode(m.world, name, m.ttl, uint64(i)))
		}
		t.Repeat(simtest.Actions{
			"": m.check, "pass": m.pass, "fault": m.fault,
			"cut": m.cut, "reconnect": m.reconnect, "pause": m.pause, "resume": m.resume, "restart": m.restart,
			"keep": m.keep, "abandon": m.abandon, "renew": m.renew, "steal": m.steal, "drift": m.drift, "jump": m.jump,
		}.Often(7, "pass").Often(3, "fault"))
		m.heal(t)
	})
	tally.Demand(t, "stale write refused", "write accepted", "lease lost", "attempt failed", "taken over")
}

var (
	simKeys = []string{"order", "wes"}
	simTTLs = []time.Duration{time.Second, 5 * time.Second, time.Minute}
)

// simHolders is the state machine.
type simHolders struct {
	world *simWorld
	ttl   time.Duration
	nodes []*simNode
	gone  []*simNode // closed or killed, maybe still ending
}

func (m *simHolders) draw(t *rapid.T) (int, *simNode) {
	i := rapid.IntRange(0, len(m.nodes)-1).Draw(t, "node")
	return i, m.nodes[i]
}

func (m *simHolders) node(t *rapid.T) *simNode {
	_, n := m.draw(t)
	return n
}

func (m *simHolders) key(t *rapid.T) string { return rapid.SampledFrom(simKeys).Draw(t, "key") }

// check holds every lease that is trusted against the provider.
func (m *simHolders) check(t *rapid.T) {
	synctest.Wait()
	for _, n := range m.nodes {
		for _, h := range n.trusted() {
			h.expectLive("lease")
		}
		if call := n.wire.Endless(); call != "" {
			t.Fatalf("%s was called without a deadline", call)
		}
	}
	if wrong := m.world.verdict(); wrong != "" {
		t.Logf("what happened:\n%s", m.world.journal)
		t.Fatal(wrong)
	}
}

// fault lets calls of one kind go wrong: most often renewals, one or two in
// their own way and the rest in another.
func (m *simHolders) fault(t *rapid.T) {
	call := rapid.SampledFrom([]string{"renew", "renew", "renew", "acquire", "release", "write", "look"}).Draw(t, "call")
	longest := 2 * m.ttl
	if call == "renew" {
		longest = m.ttl
	}
	faults := rapid.SliceOfN(simtest.Faults(longest), 1, 3).Draw(t, "faults")
	m.node(t).wire.Arm(call, rapid.SampledFrom([]int{1, 20}).Draw(t, "times"), faults...)
}

func (m *simHolders) cut(t *rapid.T)       { m.node(t).wire.Cut() }
func (m *simHolders) reconnect(t *rapid.T) { m.node(t).wire.Heal() }
func (m *simHolders) pause(t *rapid.T)     { m.node(t).wire.Pause() }
func (m *simHolders) resume(t *rapid.T)    { m.node(t).wire.Resume() }
func (m *simHolders) abandon(t *rapid.T)   { m.node(t).abandon(m.key(t)) }

// renew has a process renew all its leases out of turn.
func (m *simHolders) renew(t *rapid.T) { m.node(t).keeper.RenewNow() }

// steal takes a lease away from its holder, as an operator does, or somebody
// who takes it for dead.
func (m *simHolders) steal(t *rapid.T) { m.world.steal(m.key(t)) }

// keep changes for how long a process keeps its locks.
func (m *simHolders) keep(t *rapid.T) {
	m.node(t).keepFor(rapid.SampledFrom([]time.Duration{0, m.ttl / 10, m.ttl, 10 * m.ttl}).Draw(t, "for"))
}

// restart ends a process and puts a new one in its place.
func (m *simHolders) restart(t *rapid.T) {
	i, n := m.draw(t)
	if rapid.Bool().Draw(t, "killed") {
		n.kill()
	} else {
		n.wire.Resume()
		n.close()
	}
	m.gone = append(m.gone, n)
	m.nodes[i] = startSimNode(m.world, n.name, m.ttl, uint64(100*len(m.gone)+i))
}

// drift lets the provider's clock gain or lose less than the margin allows for.
func (m *simHolders) drift(t *rapid.T) {
	m.world.clock.Drift(float64(rapid.IntRange(-30, 30).Draw(t, "per mille")) / 1000)
}

func (m *simHolders) jump(t *rapid.T) {
	d := simtest.Durations(4*m.ttl).Draw(t, "by")
	if rapid.Bool().Draw(t, "back") {
		d = -d
	}
	m.world.jump(d)
}

func (m *simHolders) pass(t *rapid.T) {
	time.Sleep(simtest.Durations(2*m.ttl).Draw(t, "time"))
}

// heal ends all faults: each lock finds a holder, who then keeps it.
func (m *simHolders) heal(t *rapid.T) {
	for _, n := range m.nodes {
		n.wire.Heal()
		n.wire.Resume()
		n.keepFor(time.Hour)
	}
	m.world.clock.Drift(0)
	// The longest that a fault has left behind: an orphan, and its TTL.
	time.Sleep(6*m.ttl + 6*time.Second)
	m.check(t)
	lost := m.world.losses()
	holders := 0
	for _, n := range m.nodes {
		holders += len(n.trusted())
	}
	if holders != len(simKeys) {
		t.Fatalf("%d holders of %d locks after the faults", holders, len(simKeys))
	}
	time.Sleep(3 * m.ttl)
	m.check(t)
	if m.world.losses() != lost {
		t.Fatal("lease lost after the faults")
	}
}

// end ends all processes; nothing of theirs may run on.
func (m *simHolders) end() {
	for _, n := range m.nodes {
		n.kill()
	}
	m.world.work.Wait()
	for _, n := range append(m.gone, m.nodes...) {
		n.wire.Settle()
	}
}

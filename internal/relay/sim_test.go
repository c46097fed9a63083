package relay_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/test/kit/simtest"
)

// TestSimulatedRelays lets relays of several nodes feed one sink while calls to
// the log, the lock and the sink fail, are late or carried out behind their
// caller's back, leases are lost, nodes sleep, die and come, streams appear and
// lose events, the log goes back to an earlier state, and the janitor cleans. The sink refuses
// events for a time, which are parked in some worlds. It has every key in order, the
// offset is never beyond it, and once the faults are over nothing is missing,
// and nothing is there twice where the sink refuses repeats.
func TestSimulatedRelays(t *testing.T) {
	t.Parallel()
	tally := simtest.Check(t, func(t *rapid.T, tally *simtest.Tally) {
		m := &simRelays{world: newSimWorld(tally, rapid.Bool().Draw(t, "refuses repeats"), rapid.Bool().Draw(t, "resumes"), rapid.Bool().Draw(t, "parks"))}
		defer m.end()
		m.join(t)
		m.join(t)
		t.Repeat(simtest.Actions{
			"": m.check, "pass": m.pass, "add": m.add, "lose": m.lose, "clean": m.clean, "fault": m.fault,
			"cut": m.cut, "reconnect": m.reconnect, "pause": m.pause, "resume": m.resume, "join": m.join, "kill": m.kill,
			"leave": m.leave, "steal": m.steal, "sink": m.sink, "forget": m.forget, "poison": m.poison, "operate": m.operate, "save": m.save, "go back": m.goBack,
		}.Often(7, "pass").Often(3, "fault").Often(2, "add"))
		m.heal(t)
	})
	tally.Demand(t, "stale acknowledgement refused", "acknowledgement of another log refused", "batch repeated", "lease lost",
		"offset moved to what the sink has", "offset moved back to what the sink has", "delivery of an earlier term refused",
		"event parked", "parked event delivered")
}

// simRelays is the state machine.
type simRelays struct {
	world   *simWorld
	started int
	gone    []*simRelay
}

func (m *simRelays) relay(t *rapid.T) *simRelay {
	if len(m.world.relays) == 0 {
		t.Skip("nobody is alive")
	}
	i := rapid.IntRange(-2, len(m.world.relays)-1).Draw(t, "relay")
	if i >= 0 {
		return m.world.relays[i]
	}
	return m.leader()
}

// leader is who holds the sink's lease, or else anybody.
func (m *simRelays) leader() *simRelay {
	g, _ := m.world.locks.Holder(lock.Request{Key: "sink", Region: "DEFAULT"})
	for _, r := range m.world.relays {
		if r.name == g.Node {
			return r
		}
	}
	return m.world.relays[0]
}

func (m *simRelays) check(t *rapid.T) {
	synctest.Wait()
	for _, r := range m.world.relays {
		if call := r.wire.Endless(); call != "" {
			m.world.broken("%s was called without a deadline", call)
		}
	}
	if wrong := m.world.verdict(); wrong != "" {
		t.Logf("what happened:\n%s", m.world.journal)
		t.Fatal(wrong)
	}
}

// pass lets time pass, with something to do in it.
func (m *simRelays) pass(t *rapid.T) {
	m.add(t)
	time.Sleep(simtest.Durations(2*simTTL).Draw(t, "time"))
}

func (m *simRelays) stream(t *rapid.T) string {
	return fmt.Sprintf("stream-%d", rapid.IntRange(0, 2).Draw(t, "stream"))
}

func (m *simRelays) add(t *rapid.T) {
	stream, n := m.stream(t), rapid.IntRange(1, 12).Draw(t, "events")
	m.world.mu.Lock()
	defer m.world.mu.Unlock()
	m.world.log.add(stream, n, false)
}

// lose leaves a gap in the log, which no relay may pass unasked.
func (m *simRelays) lose(t *rapid.T) {
	stream := m.stream(t)
	m.world.mu.Lock()
	defer m.world.mu.Unlock()
	m.world.log.add(stream, 3, true)
}

// save and goBack are a standby that lags, and a failover to it.
func (m *simRelays) save(*rapid.T) {
	m.world.mu.Lock()
	defer m.world.mu.Unlock()
	m.world.saved = m.world.log.copied()
}

func (m *simRelays) goBack(*rapid.T) {
	m.world.mu.Lock()
	defer m.world.mu.Unlock()
	if m.world.saved == nil {
		return
	}
	m.world.journal.Note("", "the log goes back")
	m.world.era++
	// What the sink had lost since, and then refused, is known to this log alone.
	for _, p := range m.world.log.parked {
		if p.Seq <= m.world.saved.offsets[p.Stream] {
			m.world.saved.dropped[p.ID] = true
		}
	}
	for id := range m.world.log.dropped {
		m.world.saved.dropped[id] = true
	}
	m.world.log, m.world.saved = m.world.saved, nil
	m.world.log.era = m.world.era
}

func (m *simRelays) clean(t *rapid.T) {
	stream := m.stream(t)
	m.world.mu.Lock()
	defer m.world.mu.Unlock()
	m.world.log.clean(stream, m.world.kept)
}

func (m *simRelays) fault(t *rapid.T) {
	call := rapid.SampledFrom([]string{
		"deliver", "deliver", "acknowledge", "acknowledge", "backlog", "read", "claim", "open", "positions", "marks", "seek", "parked", "retries", "redeliver", "unpark", "repark",
		"acquire", "renew", "release",
	}).Draw(t, "call")
	faults := rapid.SliceOfN(simtest.Faults(2*simTTL), 1, 2).Draw(t, "faults")
	m.relay(t).wire.Arm(call, rapid.SampledFrom([]int{1, 2, 10}).Draw(t, "times"), faults...)
}

func (m *simRelays) forget(t *rapid.T) { m.world.forget(m.stream(t)) }

// poison has the sink refuse some events, or take them again.
func (m *simRelays) poison(*rapid.T) {
	m.world.mu.Lock()
	defer m.world.mu.Unlock()
	m.world.poison = !m.world.poison
}

// operate has all parked events delivered, or drops the first.
func (m *simRelays) operate(t *rapid.T) {
	drop := rapid.Bool().Draw(t, "drop")
	m.world.mu.Lock()
	defer m.world.mu.Unlock()
	l := m.world.log
	if drop && len(l.parked) > 0 {
		l.dropped[l.parked[0].ID] = true
		l.parked = l.parked[1:]
	}
	l.parked = l.parked.retry()
}

func (m *simRelays) cut(t *rapid.T)    { m.relay(t).wire.Cut() }
func (m *simRelays) resume(t *rapid.T) { m.relay(t).wire.Resume() }
func (m *simRelays) pause(t *rapid.T)  { m.relay(t).wire.Pause() }

func (m *simRelays) reconnect(t *rapid.T) {
	r := m.relay(t)
	r.wire.Heal()
	r.feel(well)
}

func (m *simRelays) sink(t *rapid.T) {
	m.relay(t).feel(rapid.SampledFrom([]simMood{well, fails, partial, slow}).Draw(t, "mood"))
}

// join starts a relay, on one of four nodes at most.
func (m *simRelays) join(t *rapid.T) {
	if len(m.world.relays) >= 4 {
		return
	}
	m.started++
	startSimRelay(m.world, fmt.Sprintf("r%d", m.started), m.started, m.started%2 == 0)
}

// remove takes the relay off the living.
func (m *simRelays) remove(r *simRelay) {
	m.world.mu.Lock()
	defer m.world.mu.Unlock()
	for i, other := range m.world.relays {
		if other == r {
			m.world.relays = append(m.world.relays[:i:i], m.world.relays[i+1:]...)
		}
	}
	m.gone = append(m.gone, r)
}

func (m *simRelays) kill(t *rapid.T) {
	r := m.relay(t)
	m.remove(r)
	r.kill()
}

func (m *simRelays) leave(t *rapid.T) {
	r := m.relay(t)
	m.remove(r)
	r.leave()
}

// steal takes the lease away from the leader, who notices at the next renewal.
func (m *simRelays) steal(*rapid.T) {
	if g, held := m.world.locks.Holder(lock.Request{Key: "sink", Region: "DEFAULT"}); held {
		m.world.journal.Note(g.Node, "loses its lease to a thief")
		m.world.locks.Expire(g)
		m.world.freed()
	}
}

// heal ends all faults, gives the relays time, and looks for what is missing.
func (m *simRelays) heal(t *rapid.T) {
	for len(m.world.relays) < 2 {
		m.join(t)
	}
	for _, r := range m.world.relays {
		r.wire.Heal()
		r.wire.Resume()
		r.feel(well)
	}
	m.world.mu.Lock()
	m.world.poison = false
	m.world.mu.Unlock()
	// An orphan, its TTL, the longest pause of a relay that has just failed.
	time.Sleep(2*simTTL + 2*simTTL + time.Minute)
	for gaps, most := true, 20; gaps && most > 0; most-- {
		m.check(t)
		m.world.mu.Lock()
		m.world.log.parked = m.world.log.parked.retry()
		gaps = m.world.log.waive() || m.world.resumes && m.world.era > 0 && m.world.log.adopt() || len(m.world.log.parked) > 0
		m.world.mu.Unlock()
		time.Sleep(time.Minute)
	}
	m.check(t)
	m.complete()
	m.check(t)
}

// complete looks for what is missing, and for what is there twice. A batch is
// repeated because of a new term, or of a delivery whose answer was none; never
// because an acknowledgement failed.
func (m *simRelays) complete() {
	w := m.world
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.forgotten)
	if n := len(w.log.parked); n > 0 {
		w.brokenLocked("%d events stay parked", n)
	}
	for stream, last := range w.log.last {
		w.lacksNothing(stream, last)
		if w.log.offsets[stream] != last {
			w.brokenLocked("%s ends at %d, the offset is %d", stream, last, w.log.offsets[stream])
		}
	}
	for id, n := range w.kept {
		if n > 1 && (w.refuses || w.resumes && w.era == 0 && !w.late[id]) {
			w.brokenLocked("event stored %d times", n)
		}
	}
	causes := w.causes
	for _, r := range append(m.gone, w.relays...) {
		causes += r.wire.Bites("deliver").Count
	}
	if w.repeats > causes*simBatch {
		w.brokenLocked("%d events repeated, with %d causes", w.repeats, causes)
	}
}

// end ends all relays; nothing of theirs may run on.
func (m *simRelays) end() {
	for len(m.world.relays) > 0 {
		r := m.world.relays[0]
		m.remove(r)
		r.kill()
	}
	m.world.work.Wait()
	for _, r := range m.gone {
		r.wire.Settle()
	}
}

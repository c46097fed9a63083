package observer_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
	"github.com/observerd/observerd/test/kit/simtest"
)

// TestSimulatedPolls drives random writers, late commits and transactions that
// stay open for long, clocks that go back, sources that are restored from a
// backup, timestamps that are back-dated, and polls and sweeps that crash; it
// lets everything come to rest, and compares the event log with the source.
func TestSimulatedPolls(t *testing.T) {
	t.Parallel()
	for _, detect := range []observer.Detect{observer.DetectNew, observer.DetectChange, observer.DetectSnapshot} {
		for _, timestamp := range []string{"at", ""} {
			t.Run(fmt.Sprintf("%s/%s", detect, timestamp), func(t *testing.T) {
				t.Parallel()
				tally := simtest.Check(t, func(t *rapid.T, tally *simtest.Tally) {
					m := newModel(t, tally, detect, timestamp)
					t.Repeat(m.actions())
					m.rest()
					m.check()
				})
				demand := []string{"poll failed", "poll fenced", "late commit", "source restored", "retry found a row"}
				if timestamp != "" {
					demand = append(demand, "time went back")
				}
				if timestamp != "" && detect != observer.DetectSnapshot {
					demand = append(demand, "light poll", "step of a sweep", "sweep found a row", "several statements")
				}
				if detect != observer.DetectNew {
					demand = append(demand, "column refused")
				}
				tally.Demand(t, demand...)
			})
		}
	}
}

type model struct {
	*stage
	tally *simtest.Tally
	open  []*observertest.Tx
	// ever are the keys that were visible once.
	ever map[string]bool
	// backup is what the source is restored to, restored how often it was.
	backup   []observer.Row
	restored int
	// steps counts how often the clock went back; room is for how long nobody
	// need notice.
	steps int
	room  int64
	// sweep is the running one; 0 for none.
	sweep     int64
	backDated bool
	// added is how many columns were added.
	added int
}

func newModel(t *rapid.T, tally *simtest.Tally, detect observer.Detect, timestamp string) *model {
	m := &model{tally: tally, ever: make(map[string]bool), room: unlimited}
	m.stage = setup(t, detect, func(s *observer.Spec) {
		s.Query.Timestamp = timestamp
		s.ChunkRows = rapid.IntRange(1, 6).Draw(t, "rows a chunk")
		s.MaxChanged = rapid.IntRange(0, 8).Draw(t, "changed rows a poll, 0 for any")
		s.StatementTime = rapid.SampledFrom([]time.Duration{0, time.Nanosecond}).Draw(t, "time of a statement")
		s.MaxGone = 1
	})
	m.src.SetIdentity("db:0")
	m.src.SetClock(10_000_000)
	return m
}

// sweeps says that the observer may be swept.
func (m *model) sweeps() bool {
	return m.spec.Detect != observer.DetectSnapshot && m.spec.Query.Timestamp != ""
}

func (m *model) actions() simtest.Actions {
	actions := simtest.Actions{
		"": m.look, "put": m.put, "begin": m.begin, "put late": m.putLate, "commit": m.commit, "poll": m.crashPoll, "retry": m.crashRetry,
		"pass": m.pass, "turn back": m.turnBack, "back up": m.backUp, "restore": m.restore, "add column": m.addColumn,
	}
	if m.spec.Detect == observer.DetectSnapshot {
		actions["delete"] = m.remove
	}
	if m.sweeps() {
		actions["sweep"], actions["back-date"] = m.crashSweep, m.backDate
	}
	return actions.Often(4, "put").Often(3, "put late").Often(2, "begin").Often(8, "poll").Often(4, "pass")
}

// look notes what is visible.
func (m *model) look(*rapid.T) {
	for _, r := range m.src.Rows() {
		m.ever[r.Key] = true
	}
}

func drawKey(t *rapid.T) string   { return key(rapid.IntRange(0, 24).Draw(t, "key")) }
func drawValue(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "value")) }

func (m *model) put(t *rapid.T) { m.src.Put(drawKey(t), drawValue(t)) }

func (m *model) remove(t *rapid.T) {
	if k := drawKey(t); len(m.src.Rows()) > 1 {
		m.src.Delete(k)
	}
}

// begin begins a transaction, whose rows have its timestamp and appear at its
// end.
func (m *model) begin(*rapid.T) {
	if len(m.open) < 3 {
		m.open = append(m.open, m.src.Begin())
	}
}

func (m *model) putLate(t *rapid.T) {
	if len(m.open) == 0 {
		t.Skip("no transaction is open")
	}
	m.open[rapid.IntRange(0, len(m.open)-1).Draw(t, "transaction")].Put(drawKey(t), drawValue(t))
}

func (m *model) commit(t *rapid.T) {
	if len(m.open) == 0 {
		t.Skip("no transaction is open")
	}
	m.commitThat(rapid.IntRange(0, 2).Draw(t, "transaction"))
}

func (m *model) commitThat(i int) {
	if len(m.open) == 0 {
		return
	}
	m.tally.Count("late commit")
	i %= len(m.open)
	m.open[i].Commit()
	m.open = slices.Delete(m.open, i, i+1)
}

// rest ends all transactions and polls until nothing is new. What was
// back-dated is for a sweep to find.
func (m *model) rest() {
	for _, tx := range m.open {
		tx.Commit()
	}
	m.src.Put("last", "a")
	m.look(nil)
	m.settle()
	if m.backDated {
		m.reconcileAll()
		m.settle()
	}
}

func (m *model) settle() {
	for range 100 {
		stats, err := m.tryPoll()
		if m.accept(err); err == nil && stats.Events == 0 {
			return
		}
	}
	m.t.Fatal("never comes to rest")
}

func (m *model) reconcileAll() {
	id := m.reconcile()
	for range 1000 {
		_, err := m.stage.trySweep(id, observer.Budget{Rows: 5})
		if m.accept(err); m.db.Sweep(id).State == observer.SweepDone {
			return
		}
	}
	m.t.Fatal("the sweep never ends")
}

// addColumn leaves rows that polls read no more to a sweep.
func (m *model) addColumn(*rapid.T) {
	m.added++
	m.src.AddColumn(fmt.Sprint("c", m.added))
	m.backDated = m.backDated || m.sweeps()
}

func (m *model) check() {
	m.checkMarks()
	log := m.checkLog()
	want := m.src.Rows()
	for _, r := range want {
		versions := log[r.Key]
		if len(versions) == 0 {
			m.t.Fatalf("%s was never observed", r.Key)
		}
		last := versions[len(versions)-1]
		if m.spec.Detect == observer.DetectNew {
			if len(versions) != 1 {
				m.t.Fatalf("%s has %d events", r.Key, len(versions))
			}
			continue
		}
		if last.Change == events.ChangeGone || string(last.Data) != string(r.Data) {
			m.t.Fatalf("%s is %s, observed last as %s", r.Key, r.Data, last.Data)
		}
	}
	if m.spec.Detect == observer.DetectSnapshot && len(m.db.Live(stream)) != len(want) {
		m.t.Fatalf("%d live rows, want %d", len(m.db.Live(stream)), len(want))
	}
	for subject := range log {
		if !m.ever[subject] {
			m.t.Fatalf("%s was observed and never existed", subject)
		}
	}
}

// checkMarks fails the test when the low-water mark went back without a reason,
// or twice for one.
func (m *model) checkMarks() {
	low, back := "", 0
	for _, ch := range m.db.Chunks(stream) {
		if ch.After.Low < low {
			back++
		}
		low = ch.After.Low
	}
	if back > m.steps+m.restored {
		m.t.Fatalf("low-water mark went back %d times, the clock %d times, the source %d times", back, m.steps, m.restored)
	}
}

package observer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// TestRandomHistories drives random writers, late commits and crashing polls,
// lets everything come to rest, and compares the event log with the source.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	for _, detect := range []observer.Detect{observer.DetectNew, observer.DetectChange, observer.DetectSnapshot} {
		for _, timestamp := range []string{"at", ""} {
			t.Run(fmt.Sprintf("%s/%s", detect, timestamp), func(t *testing.T) {
				t.Parallel()
				for range 60 {
					m := newModel(t, rand.Uint64(), detect, timestamp)
					for range 150 {
						m.step()
					}
					m.rest()
					m.check()
				}
			})
		}
	}
}

type model struct {
	*stage
	seed uint64
	rand *rand.Rand
	open []*observertest.Tx
	low  string
	// ever are the keys that were visible once.
	ever map[string]bool
}

func newModel(t *testing.T, seed uint64, detect observer.Detect, timestamp string) *model {
	m := &model{seed: seed, rand: rand.New(rand.NewPCG(seed, 0)), ever: make(map[string]bool)}
	m.stage = setup(t, detect, func(s *observer.Spec) {
		s.Query.Timestamp = timestamp
		s.ChunkRows = 1 + m.rand.IntN(6)
		s.MaxChanged = m.rand.IntN(2) * (1 + m.rand.IntN(8))
		s.MaxGone = 1
	})
	return m
}

func (m *model) step() {
	switch n := m.rand.IntN(20); {
	case n < 8:
		m.src.Put(m.key(), m.value())
	case n < 11 && len(m.open) < 3:
		m.open = append(m.open, m.src.Begin())
	case n < 15 && len(m.open) > 0:
		m.open[m.rand.IntN(len(m.open))].Put(m.key(), m.value())
	case n < 17:
		m.commit()
	case n == 17 && m.spec.Detect == observer.DetectSnapshot && len(m.src.Rows()) > 1:
		m.src.Delete(m.key())
	case n >= 17:
		m.crash()
	}
	for _, r := range m.src.Rows() {
		m.ever[r.Key] = true
	}
}

func (m *model) key() string   { return key(m.rand.IntN(25)) }
func (m *model) value() string { return fmt.Sprint(m.rand.IntN(3)) }

func (m *model) commit() {
	if len(m.open) == 0 {
		return
	}
	i := m.rand.IntN(len(m.open))
	m.open[i].Commit()
	m.open = slices.Delete(m.open, i, i+1)
}

// crash polls and may end the poll anywhere: by an error, by the end of its
// context, by another poller that overtakes it, or by a death after a commit. Or else a
// writer commits within it.
func (m *model) crash() {
	ctx, cancel := context.WithCancelCause(m.t.Context())
	defer cancel(nil)
	n, how := 1+m.rand.IntN(40), m.rand.IntN(5)
	fail := func(string) error {
		if n--; n != 0 {
			return nil
		}
		switch how {
		case 0:
			return errBroken
		case 1:
			cancel(errBroken)
		case 2:
			m.db.Step = nil
			m.try(m.t.Context(), m.db.Acquire())
		case 4:
			m.commit()
		}
		return nil
	}
	st := m.db.Acquire()
	if how == 3 {
		st = &dying{st, int64(n)}
	} else {
		m.db.Step = fail
	}
	m.try(ctx, st)
	m.db.Step = nil
}

func (m *model) try(ctx context.Context, st observer.Store) {
	m.t.Helper()
	_, err := m.observer().Poll(ctx, m.src, st)
	switch {
	case err == nil, errors.Is(err, errBroken), errors.Is(err, observertest.ErrFenced):
	case errors.Is(err, observer.ErrMassDisappearance) && len(m.src.Rows()) == 0:
	default:
		m.t.Fatalf("seed %d: %v", m.seed, err)
	}
	low := m.db.Cursor(stream).Low
	if low < m.low {
		m.t.Fatalf("seed %d: low-water mark moved back from %s to %s", m.seed, m.low, low)
	}
	m.low = low
}

// rest ends all transactions and polls until nothing is new.
func (m *model) rest() {
	for _, tx := range m.open {
		tx.Commit()
	}
	m.src.Put("last", "a")
	for _, r := range m.src.Rows() {
		m.ever[r.Key] = true
	}
	for range 100 {
		if m.poll().Events == 0 {
			return
		}
	}
	m.t.Fatalf("seed %d: never comes to rest", m.seed)
}

func (m *model) check() {
	log := m.checkLog()
	want := m.src.Rows()
	for _, r := range want {
		versions := log[r.Key]
		if len(versions) == 0 {
			m.t.Fatalf("seed %d: %s was never observed", m.seed, r.Key)
		}
		last := versions[len(versions)-1]
		if m.spec.Detect == observer.DetectNew {
			if len(versions) != 1 {
				m.t.Fatalf("seed %d: %s has %d events", m.seed, r.Key, len(versions))
			}
			continue
		}
		if last.Change == events.ChangeGone || string(last.Data) != string(r.Data) {
			m.t.Fatalf("seed %d: %s is %s, observed last as %s", m.seed, r.Key, r.Data, last.Data)
		}
	}
	if m.spec.Detect == observer.DetectSnapshot && len(m.db.Live(stream)) != len(want) {
		m.t.Fatalf("seed %d: %d live rows, want %d", m.seed, len(m.db.Live(stream)), len(want))
	}
	for subject := range log {
		if !m.ever[subject] {
			m.t.Fatalf("seed %d: %s was observed and never existed", m.seed, subject)
		}
	}
}

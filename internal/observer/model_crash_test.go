package observer_test

import (
	"context"
	"errors"
	"time"

	"pgregory.net/rapid"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// The ways in which a poll may end, or not.
const (
	wayError     = "an error"
	wayEnd       = "the end of its context"
	wayDeath     = "a death after a commit"
	wayOvertaken = "another poller that overtakes it"
	wayWriter    = "a writer that commits within it"
	wayStep      = "a clock that goes back"
	wayRestore   = "a source that is restored"
)

func (m *model) crashPoll(t *rapid.T) { m.crash(t, m.try) }

// crashSweep begins a sweep or takes a step of the one that is running.
func (m *model) crashSweep(t *rapid.T) {
	if m.sweep == 0 {
		m.sweep = m.db.StartSweep(stream, observer.SweepReconcile, "", "").ID
	}
	b := observer.Budget{Rows: rapid.IntRange(0, 10).Draw(t, "rows of the step, 0 for any")}
	m.crash(t, func(ctx context.Context, st observer.Store) {
		stats, err := m.trySweep(ctx, st, b)
		m.accept(err)
		m.tally.Count("step of a sweep")
		if stats.Events > 0 {
			m.tally.Count("sweep found a row")
		}
	})
	if m.db.Sweep(m.sweep).State == observer.SweepDone {
		m.sweep = 0
	}
}

// crashRetry reads rows again by their keys.
func (m *model) crashRetry(t *rapid.T) {
	keys := rapid.SliceOfN(rapid.Custom(drawKey), 1, 4).Draw(t, "keys")
	m.crash(t, func(ctx context.Context, st observer.Store) {
		all, err := m.observer().Retry(ctx, m.src, st, keys)
		if !errors.Is(err, observer.ErrReadAnew) {
			m.accept(err)
		}
		for _, r := range all {
			if r.Outcome == observer.RetryEvent {
				m.tally.Count("retry found a row")
			}
		}
	})
}

func (m *model) trySweep(ctx context.Context, st observer.Store, b observer.Budget) (observer.Stats, error) {
	_, stats, err := m.observer().Sweep(ctx, m.src, st, m.db.Sweep(m.sweep), b)
	return stats, err
}

// crash runs a poll or a sweep. At a step that is drawn, something happens.
func (m *model) crash(t *rapid.T, run func(context.Context, observer.Store)) {
	step := rapid.IntRange(1, 40).Draw(t, "step")
	way := rapid.SampledFrom([]string{wayError, wayEnd, wayDeath, wayOvertaken, wayWriter, wayStep, wayRestore}).Draw(t, "met by")
	writer := rapid.IntRange(0, 2).Draw(t, "transaction")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	st := m.db.Acquire()
	if way == wayDeath {
		st = &dying{st, int64(step)}
	}
	m.db.Step = func(string) error {
		if step--; step != 0 {
			return nil
		}
		switch way {
		case wayError:
			return errBroken
		case wayEnd:
			cancel(errBroken)
		case wayOvertaken:
			m.db.Step = nil
			m.try(t.Context(), m.db.Acquire())
		case wayWriter:
			m.commitThat(writer)
		case wayStep:
			m.turnFarBack()
		case wayRestore:
			m.restore(nil)
		}
		return nil
	}
	run(ctx, st)
	m.db.Step = nil
}

func (m *model) try(ctx context.Context, st observer.Store) {
	m.t.Helper()
	steps, before, reads := m.steps, m.db.Cursor(stream), len(m.src.Ranges())
	stats, err := m.observer().Poll(ctx, m.src, st)
	m.accept(err)
	if err != nil {
		return
	}
	if m.steps == steps {
		m.room = unlimited // It has seen where the clock is.
	}
	if now := m.src.Ranges()[reads:]; stats.HorizonLag > time.Minute && now[0].From == before.Newest && before.Low < before.Newest {
		m.tally.Count("light poll")
	} else if len(now) > 1 && now[1].From > now[0].From {
		m.tally.Count("several statements")
	}
}

// accept fails the test for an error that nothing has caused.
func (m *model) accept(err error) {
	m.t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, errBroken):
		m.tally.Count("poll failed")
	case errors.Is(err, observertest.ErrFenced):
		m.tally.Count("poll fenced")
	case errors.Is(err, observer.ErrColumnsChanged) && m.added > 0 && m.spec.Detect != observer.DetectNew:
		m.tally.Count("column refused")
		m.db.Accept(stream)
	case errors.Is(err, observer.ErrSourceReplaced) && m.restored > 0:
	case errors.Is(err, observer.ErrMassDisappearance) && len(m.src.Rows()) == 0:
	default:
		m.t.Fatal(err)
	}
}

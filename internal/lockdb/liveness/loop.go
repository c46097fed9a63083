package liveness

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/observerd/observerd/internal/wait"
)

const loopName = "liveness"

func (m *Monitor) run(ctx context.Context) {
	defer m.opts.Beat(loopName, 0)
	defer m.settle()
	defer m.vanish(ctx)
	defer m.forget()
	for m.appear(ctx) {
		err := m.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		m.disappeared()
		if errors.Is(err, errNoLiveness) {
			m.switchOff(ctx, err)
			return
		}
		m.comeBack(ctx, err)
	}
}

const (
	// longestRest bounds the rest before this node comes back.
	longestRest = 5 * time.Second
	// lasting is how long a session must have been there to count as one that
	// something has ended, not as one that could not be.
	lasting = 5 * time.Second
)

// comeBack prepares for the next session. After the first that did not last, it
// rests: what ends sessions at once is not fixed by having more of them.
func (m *Monitor) comeBack(ctx context.Context, cause error) {
	if !m.p.lasts() {
		m.vanish(ctx)
	}
	level := slog.LevelInfo
	if time.Since(m.appeared) >= lasting {
		m.short = 0
	} else if m.short++; m.short > 1 {
		level = slog.LevelDebug
	}
	m.opts.Logger.Log(ctx, level, "Others cannot see this node; coming back", "err", cause)
	for rest := min(m.opts.Every<<min(m.short, 8)/2, longestRest); m.short > 0 && rest > 0; rest -= m.opts.Every {
		m.opts.Beat(loopName, time.Minute)
		m.signOfLife()
		if !wait.For(ctx, min(rest, m.opts.Every)) {
			return
		}
	}
}

func (m *Monitor) vanish(ctx context.Context) {
	if err := m.attempt(context.WithoutCancel(ctx), 2*m.opts.Every, m.p.vanish); err != nil {
		m.opts.Logger.Warn("Sign of life not taken back", "err", err)
	}
}

// appear tries until others can see us; false when ctx ended, or it is
// hopeless.
func (m *Monitor) appear(ctx context.Context) bool {
	for {
		err := m.attempt(ctx, 0, m.p.appear)
		switch {
		case err == nil:
			m.appeared = time.Now()
			m.unseen.End()
			m.detector.reset()
			m.judged = true
			m.shown.Store(m.p.kind())
			m.opts.Active.Set(1)
			m.opts.Logger.Debug("Others can see this node", "by", m.p.kind())
			m.settle()
			return true
		case ctx.Err() != nil:
			return false
		case errors.Is(err, errNoLiveness):
			m.settle()
			m.switchOff(ctx, err)
			return false
		}
		m.notSeen(ctx, err)
		m.settle()
		if !wait.For(ctx, m.opts.Every) {
			return false
		}
	}
}

// notSeen notes one more attempt that failed.
func (m *Monitor) notSeen(ctx context.Context, err error) {
	if m.unseen.Begin() {
		m.opts.Logger.Warn("Others cannot see this node; it keeps its leases by renewals alone", "err", err)
	}
	if m.judged && time.Since(m.lost) > m.opts.Patience {
		m.withdraw(ctx)
	}
}

// withdraw keeps other nodes from judging us, and so ends the need for signs of
// life; false when that could not be noted. New leases are not judged in any
// case.
func (m *Monitor) withdraw(ctx context.Context) bool {
	m.shown.Store("")
	m.judged = m.judged && !m.mark(ctx, "")
	return !m.judged
}

func (m *Monitor) disappeared() {
	m.lost = time.Now()
	m.forget()
	m.opts.Active.Set(0)
}

// switchOff lets this node neither be judged nor judge.
func (m *Monitor) switchOff(ctx context.Context, err error) {
	m.opts.Logger.Warn("Liveness is switched off: other nodes do not detect the death of this node, and wait for the TTL", "err", err)
	m.judged = true // an earlier session may have left rows that say so
	withdrawn := m.withdraw(ctx)
	m.vanish(ctx)
	for !withdrawn && wait.For(ctx, m.opts.Every) {
		m.signOfLife()
		withdrawn = m.withdraw(ctx)
	}
}

// watch looks until a look fails.
func (m *Monitor) watch(ctx context.Context) error {
	for {
		if err := m.look(ctx); err != nil {
			return err
		}
		if !wait.For(ctx, m.untilNext()) {
			return context.Cause(ctx)
		}
	}
}

// untilNext is the time to the next look: earlier than usual if a node can be
// judged then.
func (m *Monitor) untilNext() time.Duration {
	now := time.Now()
	if at, ok := m.detector.next(now); ok {
		return min(m.opts.Every, at.Sub(now))
	}
	return max(m.opts.Every, m.pace)
}

// attempt runs one call within its time. When it takes longer than the given
// patience, others may have lost sight of us: signs of life stand in for it.
func (m *Monitor) attempt(ctx context.Context, patience time.Duration, call func(ctx context.Context) error) error {
	m.opts.Beat(loopName, time.Minute)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- call(limited) }()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-timer.C:
			m.signOfLife()
			timer.Reset(m.opts.Every)
		}
	}
}

// signOfLife renews the leases of a node that others judge and cannot see.
func (m *Monitor) signOfLife() {
	if m.judged && !m.p.lasts() {
		m.opts.SignOfLife()
	}
}

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/access"
	"github.com/observerd/observerd/internal/wait"
	"github.com/observerd/observerd/internal/wiring"
)

// scheduled is a poller with the reconcile of its observer, as the scheduler runs it.
type scheduled struct {
	*wiring.Poller
	source *access.Source
	db     *lockdb.DB
	log    *slog.Logger

	// Of the reconcile: when it is due, in which zone, the bounds of a step, and the
	// counter of its finds.
	config config.Observer
	zone   *time.Location
	node   string
	budget observer.Budget
	// interval is the longest time between two polls.
	interval time.Duration
	backoff  *stepBackoff
	found    prometheus.Counter
}

// Begin implements schedule.Beginner.
func (s scheduled) Begin(ctx context.Context) (begun context.Context, end func(), err error) {
	return s.source.Begin(ctx)
}

// Poll implements schedule.Observer. A poll that has nothing left to do for this
// turn is followed by a step of the reconcile, if one is due.
func (s scheduled) Poll(ctx context.Context, g lock.Grant) (observer.Stats, error) {
	stats, err := s.Poller.Poll(ctx, g)
	if err != nil || s.config.ReconcileAt == "" || stats.Behind > stats.HorizonLag {
		return stats, err
	}
	s.reconcile(ctx, g, &stats)
	return stats, nil
}

// Recovered implements schedule.Recoverable: an observer whose account was refused
// need not wait for half an hour once this node has another secret, or somebody has
// resumed an observer with that account.
func (s scheduled) Recovered(ctx context.Context) bool {
	if !s.source.HasGoodAccount(ctx) {
		return false
	}
	reason, err := s.db.Streams().LastError(ctx, s.ID())
	return err == nil && strings.HasPrefix(reason, string(observer.ClassCredentials)+":")
}

const (
	// reconcileGrace is how long a step of a reconcile may take beyond its
	// budget: its first rows may be slow to come.
	reconcileGrace = 30 * time.Second
	// firstReconcile is how long after its time of day the first reconcile of
	// an observer may still begin; otherwise it would read everything at noon
	// because `reconcile-at` was written at noon.
	firstReconcile = time.Hour
)

// errReconcileTimeout is the cause of a step's context that took too long.
var errReconcileTimeout = errors.New("the step took too long")

// reconcileBudget bounds one step after a poll: at most a quarter of the interval, but
// at least a second, or nothing would ever be read.
func reconcileBudget(interval time.Duration, rate float64) observer.Budget {
	return wiring.SweepBudget(max(interval/4, time.Second), rate)
}

// reconcile takes one step of the reconcile that is due, under the lease of the
// poll, and adds it to the statistics. It is no part of the poll: when it fails, the
// poll has succeeded all the same, and a later turn tries again.
func (s scheduled) reconcile(ctx context.Context, g lock.Grant, stats *observer.Stats) {
	if s.backoff.lasts() {
		return
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.backoff.grown(s.budget.Time+reconcileGrace), errReconcileTimeout)
	defer cancel()
	sweep, due, err := s.dueReconcile(limited)
	if err != nil || !due {
		s.complain(ctx, err)
		return
	}
	before := sweep
	sweep, step, err := s.Sweep(limited, g, sweep, s.budget)
	s.backoff.record(err != nil && ctx.Err() == nil && !wiring.SweepAdvanced(before, sweep), errors.Is(err, errReconcileTimeout))
	stats.Rows += step.Rows
	stats.Events += step.Events
	stats.Poison += step.Poison
	stats.Chunks += step.Chunks
	s.found.Add(float64(step.Events))
	if step.Events > 0 {
		s.log.Warn("Reconcile found rows that polls had missed; a timestamp was set back, or written late", "observer", s.ID(), "events", step.Events)
	}
	if sweep.State == observer.SweepDone {
		s.log.Info("Reconcile completed", "observer", s.ID(), "rows", sweep.Rows, "events", sweep.Events)
	}
	s.complain(ctx, err)
}

// complain logs a failure, unless the whole poll was ended.
func (s scheduled) complain(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		s.log.Warn("Step of the reconcile failed; it is tried again later", "observer", s.ID(), "err", err)
	}
}

// dueReconcile returns the running reconcile, or begins the due one. It reports false
// when there is none.
func (s scheduled) dueReconcile(ctx context.Context) (observer.Sweep, bool, error) {
	last, err := wiring.LastSweep(ctx, s.db, s.ID(), observer.SweepReconcile)
	if err != nil || last.State == observer.SweepRunning {
		return last, err == nil, err
	}
	now, err := s.db.Now(ctx)
	if err != nil {
		return last, false, err
	}
	at, ok := s.config.ReconcileDue(now, s.zone)
	if !ok || !isDue(last, at, now, s.interval) {
		return last, false, nil
	}
	return s.beginReconcile(ctx, now)
}

// isDue reports whether a reconcile begins for the time of day that was last at that
// time. A type that is polled rarely has its next turn hours later.
func isDue(last observer.Sweep, at, now time.Time, interval time.Duration) bool {
	if last.ID == 0 {
		return now.Sub(at) < max(firstReconcile, interval)
	}
	return last.StartedAt.Before(at)
}

func (s scheduled) beginReconcile(ctx context.Context, now time.Time) (observer.Sweep, bool, error) {
	wanted := observer.Sweep{Stream: s.ID(), Kind: observer.SweepReconcile}
	cursor, err := s.db.Peek().Cursor(ctx, s.ID())
	if err != nil {
		return wanted, false, err
	}
	wanted.Before = cursor.Low
	if wanted.From, err = s.start(ctx); err != nil {
		return wanted, false, err
	}
	wanted.From = s.source.Restate(wanted.From, cursor.Marks.Form)
	if window := s.config.ReconcileWindow; window > 0 {
		q, err := observer.WithKey(ctx, s.source, wiring.Query(s.config))
		if err != nil {
			return wanted, false, err
		}
		q.Form = cursor.Marks.Form
		from, err := s.source.CursorAt(ctx, q, now.Add(-window))
		if err != nil {
			return wanted, false, fmt.Errorf("write the window as a cursor: %w", err)
		}
		if s.source.Compare(from, wanted.From) > 0 {
			wanted.From = from
		}
	}
	if s.source.Compare(wanted.From, wanted.Before) >= 0 {
		return wanted, false, nil // Nothing was observed in the window.
	}
	started, err := s.db.Sweeps().Start(ctx, wanted, lockdb.By{Actor: s.node})
	if err == nil {
		s.log.Info("Reconcile begins", "observer", s.ID(), "from", started.From, "before", started.Before)
	}
	return started, err == nil, err
}

// start is where the observer began, as earlier rows were left out on purpose; empty
// for the beginning of the source.
func (s scheduled) start(ctx context.Context) (string, error) {
	if now, at := s.config.StartAt(); !now && at.IsZero() {
		return "", nil
	}
	return s.db.Streams().Start(ctx, s.ID())
}

// How long this process pauses a reconcile whose step made no progress: least after
// the first failure, then doubled up to most.
const (
	leastBackoff = time.Minute
	mostBackoff  = time.Hour
	// mostGrown is how long a step may take at last. The type is not polled meanwhile.
	mostGrown = 10 * time.Minute
)

// stepBackoff pauses a reconcile that makes no progress: in every turn it would read
// its source for nothing and keep the lock of the type from the polls. The zero value
// is none. Polls of an observer follow each other, so that it is for one at a time.
type stepBackoff struct {
	failures int // in a row
	timeouts int // among them
	until    time.Time
}

// lasts reports whether the backoff lasts, so that no step is tried now.
func (b *stepBackoff) lasts() bool {
	return time.Now().Before(b.until)
}

// grown is the time for the next step: twice that of the step before, if that was too
// short. The rows of one timestamp are passed in one step, however many they are.
func (b *stepBackoff) grown(least time.Duration) time.Duration {
	return wait.Doubled(least, b.timeouts, max(least, mostGrown))
}

// record adds the result of a step. timeout says that a failed one had too little time.
func (b *stepBackoff) record(failed, timeout bool) {
	if !failed {
		b.failures, b.timeouts, b.until = 0, 0, time.Time{}
		return
	}
	b.until = time.Now().Add(wait.Doubled(leastBackoff, b.failures, mostBackoff))
	b.failures++
	if timeout {
		b.timeouts++
	}
}

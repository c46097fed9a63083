package schedule

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"
)

// errNotAdmitted is the reason of a turn that this node did not get to before
// the next was due, or before it stopped.
var errNotAdmitted = errors.New("not admitted in time: other turns came first")

// admission lets only as many turns at a time ask whose turn it is, and take
// their locks, as the store has connections. All the others, which are due at
// the same tick, stand in line here, in the order in which they came: in the
// store's own pool their calls would run out of time for no fault of the
// database, and those that have the lock already would stand behind them.
//
// A turn leaves before it polls. So a source that is slow admits nobody less;
// and while the polls keep the connections busy, those who are in come through
// more slowly, and few turns hold a lock without being able to work.
type admission struct {
	slots   *semaphore.Weighted
	metrics *metrics
}

func newAdmission(turns int, m *metrics) *admission {
	return &admission{slots: semaphore.NewWeighted(int64(turns)), metrics: m}
}

// enter waits for at most that time to be let in. The error is errNotAdmitted.
// Whoever was let in calls leave.
func (a *admission) enter(ctx context.Context, within time.Duration) error {
	if a.slots.TryAcquire(1) {
		return nil
	}
	a.metrics.waiting.Inc()
	defer a.metrics.waiting.Dec()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if a.slots.Acquire(ctx, 1) != nil {
		return errNotAdmitted
	}
	return nil
}

func (a *admission) leave() { a.slots.Release(1) }

// enter waits until this turn is admitted, but no longer than until the next is
// due.
func (r *run) enter(ctx context.Context) error {
	err := r.admission.enter(ctx, r.left())
	switch {
	case err == nil:
		r.admitted = true
	case ctx.Err() == nil:
		r.metrics.notAdmitted.WithLabelValues(r.typ.Name).Inc()
	case r.met:
		return interrupted(ctx)
	}
	return err
}

// leave lets the next turn in, if this one is.
func (r *run) leave() {
	if r.admitted {
		r.admitted = false
		r.admission.leave()
	}
}

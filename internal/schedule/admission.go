package schedule

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"
)

// errNotAdmitted is the reason when a turn was not admitted before the next one was
// due, or before the node stopped.
var errNotAdmitted = errors.New("not admitted in time: other turns came first")

// admission limits how many turns look at the store and take their locks at a time
// to the number of its connections. The other turns of the same tick wait here, in
// the order in which they came: in the store's own pool their calls would time out
// though the database is well, and the calls of turns that have their lock already
// would wait behind them.
//
// A turn leaves before it polls, so a slow source does not reduce admission. While
// polls keep the connections busy, admitted turns proceed more slowly, and few turns
// hold a lock without being able to work.
type admission struct {
	slots   *semaphore.Weighted
	metrics *metrics
}

// enter waits for at most that time until the turn is admitted; the caller then releases
// its slot. The error is errNotAdmitted.
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

// enter waits until this turn is admitted, but no longer than until the next is
// due.
func (r *run) enter(ctx context.Context) error {
	err := r.admission.enter(ctx, r.timeLeft())
	switch {
	case err == nil:
		r.admitted = true
	case ctx.Err() == nil:
		r.metrics.notAdmitted.WithLabelValues(r.typ.Name).Inc()
	case r.sawHeld():
		return interrupted(ctx)
	}
	return err
}

// leave makes room for the next turn, if this one is admitted.
func (r *run) leave() {
	if r.admitted {
		r.admitted = false
		r.admission.slots.Release(1)
	}
}

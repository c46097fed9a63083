package schedule

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// firstPause is the time between the first two looks at a held lock.
const firstPause = 100 * time.Millisecond

// win waits for this node's place in line and for a lock that is held, and
// takes it. The error says why it was not to be had before the next instant.
// While someone holds the lock it is only looked at: of ten nodes, one tries.
func (r *run) win(ctx context.Context) (*lock.Lease, error) {
	if !r.pause(ctx, r.member.place(r.typ.Name, r.n).wait(r.typ.Interval)) {
		return nil, interrupted(ctx)
	}
	for pause := firstPause; ; pause = min(pause*3/2, max(r.typ.Interval/10, firstPause)) {
		lease, err := r.attempt(ctx)
		reason := errPolling
		switch {
		case err == nil:
			return lease, nil
		case ctx.Err() != nil:
			return nil, interrupted(ctx)
		case errors.Is(err, errTaken):
			return nil, err
		case errors.Is(err, lock.ErrHeld):
			r.meet(err)
		default:
			reason = errNoDatabase
			r.outage.failed(loopName(r.typ.Name), err)
		}
		d := pause/2 + rand.N(pause/2)
		if d > r.left() {
			return nil, reason
		}
		if !r.pause(ctx, d) {
			return nil, interrupted(ctx)
		}
	}
}

// attempt looks, and takes the lock if it is free and the turn not taken.
func (r *run) attempt(ctx context.Context) (*lock.Lease, error) {
	state, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	r.outage.passed(loopName(r.typ.Name))
	switch {
	case r.taken(state):
		return nil, errTaken
	case state.Held:
		return nil, &lock.HeldError{Key: r.typ.Request.Key, Node: state.Holder}
	}
	return r.acquire(ctx)
}

func (r *run) acquire(ctx context.Context) (*lock.Lease, error) {
	began := time.Now()
	lease, err := r.opts.Keeper.AcquireWithin(ctx, r.typ.Request, min(r.typ.Wait, r.left()))
	r.metrics.acquire.WithLabelValues(r.typ.Name).Observe(time.Since(began).Seconds())
	if err != nil && !errors.Is(err, lock.ErrHeld) && ctx.Err() == nil {
		r.metrics.errors.WithLabelValues(r.typ.Name).Inc()
	}
	return lease, err
}

// meet tells of another holder of the lock, once a turn.
func (r *run) meet(err error) {
	if r.met {
		return
	}
	r.met = true
	r.metrics.failed.WithLabelValues(r.typ.Name).Inc()
	var held *lock.HeldError
	holder := ""
	if errors.As(err, &held) {
		holder = held.Node
	}
	r.log.Debug("Lock not acquired", "reason", errPolling.Error(), "holder", holder, "instant", r.at)
}

// left is the time until the next instant, less what its job may come early.
func (r *run) left() time.Duration {
	next := instant(r.n+1, r.typ.Interval)
	return next.Sub(r.clock.now()) - slack(r.typ.Interval)
}

// pause waits; false when ctx ended first.
func (r *run) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func interrupted(ctx context.Context) error {
	return fmt.Errorf("%w: %w", errInterrupted, context.Cause(ctx))
}

package schedule

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/turn"
)

const (
	// firstPause is the time between the first two looks at a held lock.
	firstPause = 100 * time.Millisecond
	// lastPause is the longest, where nobody tells us that the lock was freed.
	lastPause = time.Second
	// waitPause is the longest while the type's Wait is not over.
	waitPause = 500 * time.Millisecond
)

// win waits for this node's place in line and for a lock that is held, and
// takes it. The error says why it was not to be had before the next tick.
// While someone holds the lock it is only looked at: of ten nodes, one tries.
// Whoever has won is still admitted.
func (r *run) win(ctx context.Context) (*lock.Lease, error) {
	if err := r.standInLine(ctx, ""); err != nil {
		return nil, err
	}
	for pause := firstPause; ; pause = pause * 3 / 2 {
		freed := r.freed() // before the look, so that nothing is missed between them
		if err := r.enter(ctx); err != nil {
			return nil, err
		}
		lease, err := r.attempt(ctx)
		if err != nil {
			r.leave()
		}
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
		case errors.Is(err, turn.ErrBusy):
			reason = errBusy
		default:
			reason = errNoDatabase
			r.outage.failed(loopName(r.typ.Name), err)
		}
		left := r.left()
		if left <= 0 {
			return nil, reason
		}
		pause = min(pause, r.longest(freed))
		switch wait(ctx, min(pause/2+rand.N(pause/2), left), freed) {
		case ended:
			return nil, interrupted(ctx)
		case woken:
			// Whoever held the lock has had its turn.
			pause = firstPause
			if err := r.standInLine(ctx, r.holder); err != nil {
				return nil, err
			}
		}
	}
}

// freed returns the channel that tells of the type's lock; see [Liveness].
func (r *run) freed() <-chan struct{} { return r.opts.Liveness.Freed(r.typ.Request) }

// longest is the longest pause between two looks: longer where we are told of
// what happens meanwhile. Of a foreign holder we are not.
func (r *run) longest(freed <-chan struct{}) time.Duration {
	longest := max(r.typ.Interval/10, firstPause)
	if r.met && time.Since(r.metAt) < r.typ.Wait {
		longest = min(longest, waitPause)
	}
	if freed == nil || r.holder == "" {
		return min(longest, lastPause)
	}
	return longest
}

// standInLine waits for this node's place in line. The error says that the turn
// was taken meanwhile, or that ctx ended first. Nodes that are found dead, and
// the one of the given boot id, leave the line. So does the first in it when the
// lock was given back with the turn not taken, as by a node that stops: whoever
// it was has had its turn.
func (r *run) standInLine(ctx context.Context, without string) error {
	out := func(bootID string) bool { return bootID == without || r.opts.Liveness.Gone(bootID) }
	gaveUp := 0
	for began := time.Now(); ; {
		freed := r.freed()
		at := r.member.place(r.typ.Name, r.n, out)
		r.rank(at)
		d := line{place: at.place - gaveUp, size: at.size}.wait(r.typ.Interval) - time.Since(began)
		switch wait(ctx, min(d, r.left()), freed) {
		case ended:
			return interrupted(ctx)
		case passed:
			return nil
		}
		if err := r.enter(ctx); err != nil {
			return err
		}
		state, err := r.look(ctx)
		r.leave()
		switch {
		case err != nil: // The look at the lock will tell.
		case r.taken(state):
			return errTaken
		case !state.Held && at == r.member.place(r.typ.Name, r.n, out):
			gaveUp++
		}
	}
}

// rank notes where this node stands at the beginning of the turn.
func (r *run) rank(at line) {
	if !r.ranked {
		r.ranked, r.first = true, at.place == 0 && !r.typ.due(r.n).Before(r.began)
	}
}

// attempt looks, and takes the lock if it is free and the turn not taken.
func (r *run) attempt(ctx context.Context) (*lock.Lease, error) {
	state, err := r.look(ctx)
	r.holder = state.HolderBoot
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
	failpoint.Hit("lease.wanted")
	return r.acquire(ctx)
}

// acquire tries once. Whoever lost to another looks again, which is cheaper than
// to try, and does not stand in the way of the holder's commits.
func (r *run) acquire(ctx context.Context) (*lock.Lease, error) {
	began := time.Now()
	lease, err := r.opts.Keeper.Acquire(ctx, r.typ.Request)
	r.metrics.acquire.WithLabelValues(r.typ.Name).Observe(time.Since(began).Seconds())
	if err != nil && !errors.Is(err, lock.ErrHeld) && !errors.Is(err, turn.ErrBusy) && ctx.Err() == nil {
		r.metrics.errors.WithLabelValues(r.typ.Name, opAcquire).Inc()
	}
	return lease, err
}

// meet tells of another holder of the lock, once a turn.
func (r *run) meet(err error) {
	if r.met {
		return
	}
	r.met, r.metAt = true, time.Now()
	r.metrics.failed.WithLabelValues(r.typ.Name).Inc()
	var held *lock.HeldError
	holder := ""
	if errors.As(err, &held) {
		holder = held.Node
	}
	r.log.Debug("Lock not acquired", "reason", errPolling.Error(), "holder", holder, "tick", r.at)
}

// left is the time until the type fires again, less what its job may come early.
func (r *run) left() time.Duration {
	return r.typ.due(r.n+1).Sub(r.clock.now()) - slack(r.typ.Interval)
}

// waited says what has ended a wait.
type waited int

const (
	passed waited = iota // the time
	woken                // the channel was closed
	ended                // ctx
)

// wait waits for that time, or until the channel is closed; nil never is.
func wait(ctx context.Context, d time.Duration, wake <-chan struct{}) waited {
	if ctx.Err() != nil {
		return ended
	}
	if d <= 0 {
		return passed
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ended
	case <-wake:
		return woken
	case <-timer.C:
		return passed
	}
}

func interrupted(ctx context.Context) error {
	return fmt.Errorf("%w: %w", errInterrupted, context.Cause(ctx))
}

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
	"github.com/observerd/observerd/internal/wait"
)

const (
	// firstPause is the time between the first two looks at a held lock.
	firstPause = 100 * time.Millisecond
	// lastPause is the longest where [Liveness] does not notify of a freed lock.
	lastPause = time.Second
	// waitPause is the longest while the type's Wait is not over.
	waitPause = 500 * time.Millisecond
)

// acquireTurn waits for this node's rank and for a lock that is held, and takes
// the lock. The error says why that was not possible before the next tick. While
// another node holds the lock it is only looked at: of ten nodes, one tries.
// After success the turn is still admitted.
func (r *run) acquireTurn(ctx context.Context) (*lock.Lease, error) {
	if err := r.waitForWindow(ctx); err != nil {
		return nil, err
	}
	if err := r.waitForRank(ctx, ""); err != nil {
		return nil, err
	}
	for pause := firstPause; ; pause = pause * 3 / 2 {
		if err := r.waitForWindow(ctx); err != nil {
			return nil, err
		}
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
			r.noteHeld(err)
		case errors.Is(err, turn.ErrBusy):
			reason = errBusy
		default:
			reason = errNoDatabase
			r.outages.begin(loopName(r.typ.Name), err)
		}
		left := r.timeLeft()
		if left <= 0 {
			return nil, reason
		}
		pause = min(pause, r.maxPause(freed))
		switch wait.Until(ctx, min(pause/2+rand.N(pause/2), left), freed) {
		case wait.Canceled:
			return nil, interrupted(ctx)
		case wait.Notified:
			// The previous holder has had its turn.
			pause = firstPause
			if err := r.waitForRank(ctx, r.holder); err != nil {
				return nil, err
			}
		}
	}
}

const (
	// front is how many nodes of the queue look at each turn.
	front = 3
	// leftFor is for how long the others leave the turns of a type to them, once they have found
	// that one was taken.
	leftFor = 5 * time.Second
)

// isLeftToOthers reports whether this node does not look at the turn: of many nodes whose turns
// come every second, each would ask the database what the first has done. A node that has found
// a turn not taken looks again: those before it may not be able to take it.
func (r *run) isLeftToOthers() bool {
	if r.membership.position(r.typ.Name, r.n, r.opts.Liveness.Gone).rank >= front && time.Since(r.job.elsewhere) < leftFor {
		return true
	}
	r.job.elsewhere = time.Time{}
	return false
}

// freed returns the channel that notifies of the type's lock; see [Liveness].
func (r *run) freed() <-chan struct{} { return r.opts.Liveness.Freed(r.typ.Request) }

// maxPause returns the longest pause between two looks: longer where a notification
// ends it. Of a foreign holder there is none.
func (r *run) maxPause(freed <-chan struct{}) time.Duration {
	longest := max(r.typ.Interval/10, firstPause)
	if r.sawHeld() && time.Since(r.heldAt) < r.typ.Wait {
		longest = min(longest, waitPause)
	}
	if freed == nil || r.holder == "" {
		return min(longest, lastPause)
	}
	return longest
}

// waitForRank waits as long as this node's rank asks for. The error says that the
// turn was taken meanwhile, or that ctx ended first. Dead nodes and the node of the
// given boot id leave the queue. So does the first node in it when the lock was
// released with the turn not taken, as by a node that stops: it has had its turn.
func (r *run) waitForRank(ctx context.Context, without string) error {
	excluded := func(bootID string) bool { return bootID == without || r.opts.Liveness.Gone(bootID) }
	gaveUp := 0
	for began := time.Now(); ; {
		freed := r.freed()
		at := r.membership.position(r.typ.Name, r.n, excluded)
		if !r.ranked { // At the beginning of the turn.
			r.ranked, r.first = true, at.rank == 0 && !r.typ.due(r.n).Before(r.began)
		}
		d := position{rank: at.rank - gaveUp, size: at.size}.wait(r.typ.Interval) - time.Since(began)
		switch wait.Until(ctx, min(d, r.timeLeft()), freed) {
		case wait.Canceled:
			return interrupted(ctx)
		case wait.Elapsed:
			return nil
		}
		if err := r.enter(ctx); err != nil {
			return err
		}
		state, err := r.look(ctx)
		r.leave()
		switch {
		case err != nil: // The next look, for the lock, reports it.
		case r.taken(state):
			return errTaken
		case !state.Held && at == r.membership.position(r.typ.Name, r.n, excluded):
			gaveUp++
		}
	}
}

// attempt looks, and takes the lock if it is free and the turn not taken. The node that comes first
// does not look, as nobody is likely to have either.
func (r *run) attempt(ctx context.Context) (*lock.Lease, error) {
	if r.comesFirst() {
		return r.acquire(ctx)
	}
	state, err := r.look(ctx)
	r.holder = state.HolderBoot
	if err != nil {
		return nil, err
	}
	switch {
	case r.taken(state):
		return nil, errTaken
	case state.Held:
		return nil, &lock.HeldError{Key: r.typ.Request.Key, Node: state.Holder}
	}
	return r.acquire(ctx)
}

// comesFirst reports whether this node ranks first, the tick has just come, and it saw no other
// holder since the one before.
func (r *run) comesFirst() bool {
	return r.first && !r.mustLook && !r.job.held && !r.sawHeld() && r.clock.now().Sub(r.typ.due(r.n)) < firstPause
}

// acquire tries once. A node that lost to another looks again, which costs less
// than to try, and does not delay the holder's commits.
func (r *run) acquire(ctx context.Context) (*lock.Lease, error) {
	failpoint.Hit("lease.wanted")
	began := time.Now()
	lease, err := r.opts.Keeper.Acquire(ctx, r.typ.Request)
	r.metrics.acquire.WithLabelValues(r.typ.Name).Observe(time.Since(began).Seconds())
	if err != nil && !errors.Is(err, lock.ErrHeld) && !errors.Is(err, turn.ErrBusy) && ctx.Err() == nil {
		r.metrics.errors.WithLabelValues(r.typ.Name, opAcquire).Inc()
	}
	return lease, err
}

// noteHeld logs and counts that another node holds the lock, once a turn.
func (r *run) noteHeld(err error) {
	if r.sawHeld() {
		return
	}
	r.heldAt = time.Now()
	r.metrics.failed.WithLabelValues(r.typ.Name).Inc()
	holder := ""
	if held, ok := errors.AsType[*lock.HeldError](err); ok {
		holder = held.Node
	}
	r.log.Debug("Lock not acquired", "reason", errPolling.Error(), "holder", holder, "tick", r.at)
}

// timeLeft returns the time until the type fires again, less the time by which its
// job may come early.
func (r *run) timeLeft() time.Duration {
	return r.typ.due(r.n+1).Sub(r.clock.now()) - slack(r.typ.Interval)
}

func interrupted(ctx context.Context) error {
	return fmt.Errorf("%w: %w", errInterrupted, context.Cause(ctx))
}

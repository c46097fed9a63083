package schedule

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/turn"
)

// run is one turn of one type on this node.
type run struct {
	*Scheduler
	job *job
	typ Type
	n   int64     // number of the tick
	at  time.Time // the tick, on the database's clock
	log *slog.Logger
	// heldAt is when this turn first saw another holder of the lock; zero: it has not.
	heldAt time.Time
	// holder is the boot id of the lock's holder at the last look; empty for none, and
	// for a holder that is not known.
	holder       string
	futureLogged bool // a turn in the future was logged
	admitted     bool // see [admission]
	// first says that this node ranked first, once ranked. It does not in a turn that
	// was due before its jobs began.
	first, ranked bool
	mustLook      bool          // the first read under the lock has failed
	lookDuration  time.Duration // of the last look
}

func (r *run) sawHeld() bool { return !r.heldAt.IsZero() }

// turn goes through the turn (see the package's documentation). It reports whether
// this node polled.
func (r *run) turn(ctx context.Context) (polled bool) {
	if r.isLeftToOthers() {
		r.skip(errOthersFirst)
		return false
	}
	defer r.leave()
	for again := true; again; {
		polled, again = r.try(ctx)
	}
	return polled
}

// try takes the lock and polls. To be tried again is the turn whose first read was under the lock,
// and failed: the next one looks before.
func (r *run) try(ctx context.Context) (polled, again bool) {
	lease, err := r.acquireTurn(ctx)
	r.job.held = r.sawHeld()
	if err != nil {
		r.skip(err)
		return false, false
	}
	began := time.Now()
	defer r.release(ctx, lease, began)
	failpoint.Hit("lease.acquired")
	r.log.Log(ctx, r.cycles.level(false), "Lock acquired", "fence", lease.Fence())
	r.typ.Activity.lockAcquired()
	r.metrics.acquired.WithLabelValues(r.typ.Name).Inc()
	r.metrics.acquiredByNode.WithLabelValues(r.opts.Node.Name, r.typ.Name).Inc()

	state, known, err := r.readState(lease.Context())
	r.leave()
	switch {
	case errors.Is(err, errTaken):
		r.skip(err)
		return false, false
	case err != nil:
		if lease.Context().Err() == nil && !errors.Is(err, turn.ErrBusy) { // Or this node did not ask.
			r.outages.begin(loopName(r.typ.Name), err)
		}
		again, r.mustLook = r.first && !r.mustLook, true
		return false, again
	}
	r.outages.end(loopName(r.typ.Name))
	r.passedOver.reset()
	r.poll(lease, state, known)
	return true, false
}

// readState reads the state of the turn and of its observers under the lock. The
// error is errTaken when another node took the turn between the look and the lock.
func (r *run) readState(ctx context.Context) (turn.State, map[string]turn.Stream, error) {
	ids := fn.Each(r.typ.Observers, Observer.ID)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	began := time.Now()
	defer func() { r.lookDuration = time.Since(began) }()
	state, known, err := r.opts.Store.TurnAndStreams(ctx, r.typ.Name, ids)
	if err == nil && r.taken(state) {
		err = errTaken
	}
	return state, known, err
}

// The reasons for which a node skips a turn.
var (
	errTaken       = errors.New("turn taken")
	errPolling     = errors.New("another node is polling")
	errNoDatabase  = errors.New("coordination database does not answer")
	errOthersFirst = errors.New("other nodes come first")
	errBusy        = errors.New("the connections to the coordination database were busy")
	errInterrupted = errors.New("interrupted")
)

// skip notes and logs why this node does not poll.
func (r *run) skip(err error) {
	if errors.Is(err, errTaken) || errors.Is(err, errPolling) {
		r.job.elsewhere = time.Now()
	}
	if errors.Is(err, errTaken) { // A held lock says too little: its holder may wait for the database, too.
		r.outages.end(loopName(r.typ.Name))
	}
	if r.first && errors.Is(err, errTaken) {
		r.passedOver.add(r.typ.Name, r.lookDuration)
	}
	switch {
	case errors.Is(err, errInterrupted):
		r.log.Warn("Interrupted while waiting for lock", "err", err)
	case !r.sawHeld():
		r.log.Debug("Lock not acquired", "reason", err.Error(), "tick", r.at)
	}
}

// look reads the turn.
func (r *run) look(ctx context.Context) (turn.State, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	began := time.Now()
	defer func() { r.lookDuration = time.Since(began) }()
	return r.opts.Store.Turn(ctx, r.typ.Name, r.typ.Request)
}

// taken reports whether the turn was taken already. A recorded turn that lies more
// than an interval ahead comes from a clock that has gone back since, or from a
// longer interval; if it counted, the type would not be polled until then.
func (r *run) taken(s turn.State) bool {
	if s.At.Before(r.at) {
		return false
	}
	if !r.tooFarAhead(s.At, s.Now) {
		return true
	}
	if !r.futureLogged {
		r.futureLogged = true
		r.metrics.futureTurns.WithLabelValues(r.typ.Name).Inc()
		r.log.Warn("Turn in the future ignored", "recorded", s.At, "now", s.Now, "tick", r.at)
	}
	return false
}

func (r *run) tooFarAhead(at, now time.Time) bool { return at.Sub(now) > r.typ.Interval }

// release releases the lock, also when the scheduler stops.
func (r *run) release(ctx context.Context, lease *lock.Lease, began time.Time) {
	failpoint.Hit("lease.release")
	err := lease.Release(ctx)
	r.typ.Activity.lockReleased()
	held := time.Since(began)
	r.metrics.hold.WithLabelValues(r.typ.Name).Observe(held.Seconds())
	if err != nil {
		r.metrics.errors.WithLabelValues(r.typ.Name, opRelease).Inc()
		r.log.Error("Error releasing lock", "err", err, "fence", lease.Fence())
		return
	}
	r.recordRelease(r.typ.Request)
	r.log.Debug("Lock released", "fence", lease.Fence(), "held", held)
}

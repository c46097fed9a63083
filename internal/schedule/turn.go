package schedule

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/turn"
)

// run is one turn of one type on this node.
type run struct {
	*Scheduler
	typ Type
	n   int64     // number of the tick
	at  time.Time // the tick, on the database's clock
	log *slog.Logger
	met bool // another holder of the lock, and said so
	// metAt is when.
	metAt time.Time
	// holder is the boot id of whom the last look found at the lock; empty for
	// nobody, and for one that is not known.
	holder string
	odd    bool // met a turn in the future, and said so
	// admitted says that this turn was let in; see [admission].
	admitted bool
	// first says that this node was first in line, once ranked. It is not in a turn
	// that was due before its jobs began.
	first, ranked bool
	// looked is how long the last look took.
	looked time.Duration
}

// turn goes through the turn (see the package's documentation). It returns
// whether this node polled.
func (r *run) turn(ctx context.Context) bool {
	defer r.leave()
	lease, err := r.win(ctx)
	if err != nil {
		r.standBack(err)
		return false
	}
	began := time.Now()
	defer r.release(ctx, lease, began)
	failpoint.Hit("lease.acquired")
	r.log.Info("Lock acquired", "fence", lease.Fence())
	r.typ.Progress.hold()
	r.metrics.acquired.WithLabelValues(r.typ.Name).Inc()
	r.metrics.acquiredByNode.WithLabelValues(r.opts.Node.Name, r.typ.Name).Inc()

	state, known, err := r.recall(lease.Context())
	r.leave()
	switch {
	case errors.Is(err, errTaken):
		r.standBack(err)
		return false
	case err != nil:
		r.unanswered(lease.Context(), err)
		return false
	}
	r.passedOver.ends()
	r.poll(lease, state, known)
	return true
}

// recall reads under the lock what is known of the turn and its observers:
// between the look and the lock someone may have been here, for which the error
// is errTaken.
func (r *run) recall(ctx context.Context) (turn.State, map[string]turn.Stream, error) {
	state, err := r.look(ctx)
	if err == nil && r.taken(state) {
		err = errTaken
	}
	if err != nil {
		return state, nil, err
	}
	known, err := r.streams(ctx)
	return state, known, err
}

// The reasons for which a node stands back from a turn.
var (
	errTaken       = errors.New("turn taken")
	errPolling     = errors.New("another node is polling")
	errNoDatabase  = errors.New("coordination database does not answer")
	errBusy        = errors.New("the connections to the coordination database were busy")
	errInterrupted = errors.New("interrupted")
)

// standBack tells why this node does not poll.
func (r *run) standBack(err error) {
	if r.first && errors.Is(err, errTaken) {
		r.passedOver.more(r.typ.Name, r.looked)
	}
	switch {
	case errors.Is(err, errInterrupted):
		r.log.Warn("Interrupted while waiting for lock", "err", err)
	case !r.met:
		r.log.Debug("Lock not acquired", "reason", err.Error(), "tick", r.at)
	}
}

// look reads the turn.
func (r *run) look(ctx context.Context) (turn.State, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	began := time.Now()
	defer func() { r.looked = time.Since(began) }()
	return r.opts.Store.Turn(ctx, r.typ.Name, r.typ.Request)
}

// unanswered tells of a database that is away, unless it was the context that
// ended, or this node that has not asked.
func (r *run) unanswered(ctx context.Context, err error) {
	if ctx.Err() == nil && !errors.Is(err, turn.ErrBusy) {
		r.outage.failed(loopName(r.typ.Name), err)
	}
}

// taken reports whether the turn was taken already. One that lies further ahead
// than an interval was written by a clock that has gone back, or under a
// longer interval; if it counted, the type would not be polled until then.
func (r *run) taken(s turn.State) bool {
	if s.At.Before(r.at) {
		return false
	}
	if !r.absurd(s.At, s.Now) {
		return true
	}
	if !r.odd {
		r.odd = true
		r.metrics.futureTurns.WithLabelValues(r.typ.Name).Inc()
		r.log.Warn("Turn in the future ignored", "recorded", s.At, "now", s.Now, "tick", r.at)
	}
	return false
}

func (r *run) absurd(at, now time.Time) bool { return at.Sub(now) > r.typ.Interval }

// release gives the lock back, also when everything is about to stop.
func (r *run) release(ctx context.Context, lease *lock.Lease, began time.Time) {
	failpoint.Hit("lease.release")
	err := lease.Release(ctx)
	r.typ.Progress.letGo()
	held := time.Since(began)
	r.metrics.hold.WithLabelValues(r.typ.Name).Observe(held.Seconds())
	if err != nil {
		r.metrics.errors.WithLabelValues(r.typ.Name, opRelease).Inc()
		r.log.Error("Error releasing lock", "err", err, "fence", lease.Fence())
		return
	}
	r.noteRelease(r.typ.Request)
	r.log.Debug("Lock released", "fence", lease.Fence(), "held", held)
}

package schedule

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
	"github.com/observerd/observerd/internal/wait"
)

// poll polls the observers of the type, side by side, and takes the turn when all
// of them have ended, with success or not.
func (r *run) poll(lease *lock.Lease, state turn.State, known map[string]turn.Stream) {
	ctx := lease.Context()
	began, started := time.Now(), r.clock.now()
	r.typ.Activity.record(active)
	defer r.typ.Activity.record(active)
	var due []*observerPoll
	for _, o := range r.typ.Observers {
		last, condition := known[o.ID()], r.conditions.of[[2]string{r.typ.Name, o.ID()}]
		condition.stored(last, state.Now)
		if r.ready(ctx, o, last, state) {
			due = append(due, &observerPoll{
				run: r, observer: o, last: last, delay: r.typ.delay(o.ID()), condition: condition, log: r.log.With("observer", o.ID()),
			})
		}
	}
	all := r.work(ctx, lease.Grant(), due)
	all.report(r, time.Since(began))
	if all.complete() {
		r.take(ctx, lease.Grant(), started, all.outcome())
	}
}

// work polls the observers until each of them is done. An observer that is to be
// polled again goes to the end of the queue: neither a slow observer nor one with a
// backlog keeps the others from their polls.
func (r *run) work(ctx context.Context, g lock.Grant, due []*observerPoll) *results {
	all := &results{observers: len(due)}
	queue := make(chan *observerPoll, len(due)) // Room for all: to queue again never blocks.
	var open sync.WaitGroup
	for _, p := range due {
		open.Add(1)
		queue <- p
	}
	var workers sync.WaitGroup
	for range min(r.opts.Concurrency, len(due)) {
		workers.Go(func() {
			for p := range queue {
				if p.done(ctx) {
					open.Done()
					continue
				}
				if res, polled := p.poll(ctx, g); polled {
					all.add(res)
				}
				queue <- p
			}
		})
	}
	open.Wait()
	close(queue)
	workers.Wait()
	return all
}

// ready reports whether the observer is to be polled: it is not paused, has neither a
// delay nor a backoff to wait for, and was not polled by another node in this turn.
func (r *run) ready(ctx context.Context, o Observer, last turn.Stream, state turn.State) bool {
	now := fn.Later(r.at, state.Now) // the job may have come a moment early
	polled := !last.At.Before(r.at) || r.typ.tooSoon(last, o.ID(), r.at)
	polled = polled && !r.tooFarAhead(last.At, state.Now)
	return !last.Paused && !polled && !r.inBackoff(ctx, o, last, now)
}

// take records that the turn was taken. The lease's context may be about to end, so
// the write has a context of its own; the fence decides whether it counts.
func (r *run) take(ctx context.Context, g lock.Grant, started time.Time, outcome turn.Outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	err := r.opts.Store.TakeTurn(ctx, g, turn.Taken{
		Type: r.typ.Name, At: r.at, Started: started, Finished: r.clock.now(),
		Node: r.opts.Node.Name, Outcome: outcome,
	})
	failpoint.Hit("turn.taken")
	if err != nil {
		r.log.Error("Turn not taken; another node may repeat it", "err", err, "tick", r.at)
	}
}

// recovering polls and turns a panic into an error, so that a defect in one observer
// does not stop the others.
func (p *observerPoll) recovering(ctx context.Context, g lock.Grant) (stats observer.Stats, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = p.panicked(v)
		}
	}()
	return p.observer.Poll(ctx, g)
}

// ErrPollTimeout is the cause with which a poll ends that took too long.
var ErrPollTimeout = errors.New("poll exceeded its time limit")

// abandoned is the outcome of a poll that ended because the scheduler stops.
// It is neither counted nor recorded: another node takes the turn.
const abandoned turn.Outcome = "abandoned"

// observerPoll polls one observer in a turn, once or more often.
type observerPoll struct {
	*run
	observer  Observer
	last      turn.Stream // as stored before this turn
	delay     time.Duration
	log       *slog.Logger
	condition *condition
	// over says that no poll begins any more in this turn, because of the time of day.
	over bool
	// polled says that there was a poll; full that the last one succeeded and left rows
	// unread, and lag how far behind it was.
	polled, full bool
	lag          time.Duration
}

// minShare is the part of an interval that is worth another poll: one in so many.
const minShare = 16

// suspended reports whether no poll begins at this time of day.
func (p *observerPoll) suspended() bool {
	p.over = p.over || p.typ.suspended(p.observer.ID(), p.now())
	return p.over
}

// done reports whether the observer needs no further poll in this turn. A poll that
// left rows unread is followed by another until the type's next tick: that turn may
// be another node's, which must not find the lock held.
func (p *observerPoll) done(ctx context.Context) bool {
	return p.suspended() || p.polled && (!p.full || p.timeLeft() < p.typ.Interval/minShare || ctx.Err() != nil)
}

// poll polls the observer within its time limits and records the result. It reports
// false when there was no poll, because its window began while it waited.
func (p *observerPoll) poll(ctx context.Context, g lock.Grant) (result, bool) {
	poll, end, err := p.begin(ctx)
	defer end()
	if err == nil && p.suspended() {
		return result{}, false
	}
	began, started := time.Now(), p.clock.now()
	var stats observer.Stats
	if err == nil {
		limited, cancel := p.withPollTimeout(poll)
		defer cancel()
		stats, err = p.recovering(limited, g)
	} else if errors.Is(err, observer.ErrNextTick) {
		stats.Full, err = true, nil // As it was before.
	}
	if p.polled && stats.Full && stats.Rows == 0 {
		stats.Lag = p.lag // The tick came before a row that would show it.
	}
	res := result{outcome: p.outcome(ctx, err), stats: stats}
	p.membership.outdated(p.observer.ID(), res.outcome == turn.Outdated)
	p.metrics.rows.WithLabelValues(p.typ.Name, p.observer.ID()).Add(float64(stats.Rows))
	p.metrics.events.WithLabelValues(p.typ.Name, p.observer.ID()).Add(float64(stats.Events))
	p.metrics.poison.WithLabelValues(p.typ.Name).Add(float64(stats.Poison))
	p.condition.ended(stats, res.outcome, err)
	switch res.outcome {
	case turn.OK:
		p.log.Debug("Observer polled", "rows", stats.Rows, "events", stats.Events, "poison", stats.Poison, "duration", time.Since(began))
	case abandoned:
		p.log.Info("Poll abandoned; another node will take the turn", "err", err)
	case turn.Conflict:
		p.log.Info("Poll ended early: the observer was paused or reset", "err", err)
	default:
		p.log.Error("Error during polling", "err", err, "outcome", string(res.outcome), "duration", time.Since(began))
	}
	res.outcome = p.record(ctx, g, started, res, err)
	if res.outcome == turn.OK {
		p.condition.succeeded(began, p.clock.now(), stats)
	}
	p.polled, p.lag = true, stats.Lag
	p.full = res.outcome == turn.OK && stats.Full
	if p.full {
		p.last.Failures = 0
	}
	return res, true
}

// begin waits until the observer's poll may begin; the wait does not count as time of
// the poll. It returns the context of the poll: one that follows another must end
// before the next tick, with a moment left to commit and record. The caller calls end
// when the poll has ended.
func (p *observerPoll) begin(ctx context.Context) (poll context.Context, end func(), err error) {
	release := func() {}
	if p.polled {
		ctx, release = context.WithTimeoutCause(ctx, p.timeLeft(), observer.ErrNextTick)
	}
	beginner, ok := p.observer.(Beginner)
	if !ok {
		return ctx, release, nil
	}
	defer p.keepAlive()()
	poll, leave, err := beginner.Begin(ctx)
	return poll, func() { leave(); release() }, err
}

// keepAlive notes that the type's loop is alive until stop is called: a poll that waits
// for others is not stuck. The others are watched themselves.
func (p *observerPoll) keepAlive() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() {
		for wait.For(ctx, p.typ.Interval) {
			p.typ.Activity.alive()
		}
	})
	return func() {
		cancel()
		watch.Wait()
		p.typ.Activity.alive()
	}
}

// withPollTimeout returns a context that ends when nothing was committed for
// PollTimeout. A poll that commits as it goes may take any time.
func (p *observerPoll) withPollTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	began := time.Now()
	var watch sync.WaitGroup
	watch.Go(func() {
		for left := p.typ.PollTimeout; left > 0; left = p.typ.PollTimeout - min(time.Since(began), p.typ.Activity.age(active)) {
			if !wait.For(ctx, left) {
				return
			}
		}
		cancel(ErrPollTimeout)
	})
	return ctx, func() {
		cancel(context.Canceled)
		watch.Wait()
	}
}

// OutcomeOf classifies the error of a poll by itself.
func OutcomeOf(err error) turn.Outcome {
	switch {
	case err == nil:
		return turn.OK
	case errors.Is(err, lock.ErrFenced):
		return turn.Fenced
	case errors.Is(err, lock.ErrLost):
		return turn.Lost
	case errors.Is(err, observer.ErrUnreachable):
		return turn.Unreachable
	case errors.Is(err, observer.ErrOtherDefinition):
		return turn.Outdated
	}
	return turn.Error
}

// outcome classifies the error of a poll under a lease, whose context is ctx.
func (p *observerPoll) outcome(ctx context.Context, err error) turn.Outcome {
	outcome, cause := OutcomeOf(err), context.Cause(ctx)
	switch {
	case outcome == turn.OK, outcome == turn.Fenced, outcome == turn.Lost:
	case errors.Is(cause, lock.ErrLost):
		return turn.Lost
	case cause != nil:
		return abandoned
	case outcome == turn.Error && errors.Is(err, observer.ErrConflict):
		return turn.Conflict
	}
	return outcome
}

// record writes the result into the store, unless the lease is over, and returns
// the outcome that counts.
func (p *observerPoll) record(ctx context.Context, g lock.Grant, started time.Time, res result, err error) turn.Outcome {
	if res.outcome == turn.Lost || res.outcome == turn.Fenced || res.outcome == abandoned {
		return res.outcome // The store would refuse the result, or is not to have it.
	}
	t := turn.StreamTaken{
		Stream: p.observer.ID(), Type: p.typ.Name, Node: p.opts.Node.Name,
		At: p.at, Started: started, Finished: p.clock.now(), Outcome: res.outcome,
		Rows: res.stats.Rows, Events: res.stats.Events, Poison: res.stats.Poison, Lag: res.stats.Lag,
	}
	switch res.outcome {
	case turn.Error:
		t.Reason = Reason(err)
		class := observer.ClassOf(err)
		t.Failures, t.FailureClass = 1, string(class)
		if class.CountsWith(observer.Class(p.last.FailureClass)) {
			t.Failures += p.last.Failures
		}
		t.RetryAt = p.at.Add(pauseAfter(err, t.Failures, p.delay))
	case turn.Unreachable, turn.Outdated:
		t.Reason = Reason(err)
		t.Failures, t.FailureClass, t.Left = p.last.Failures, p.last.FailureClass, true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	switch err := p.opts.Store.NoteStream(ctx, g, t); {
	case errors.Is(err, lock.ErrFenced):
		p.log.Error("Error during polling", "err", err, "outcome", string(turn.Fenced))
		return turn.Fenced
	case err != nil:
		p.log.Error("Poll not recorded; it may be repeated", "err", err)
		return abandoned
	}
	return res.outcome
}

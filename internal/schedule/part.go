package schedule

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
)

// ErrPollTimeout is the cause of the end of a poll that took too long.
var ErrPollTimeout = errors.New("poll exceeded its time limit")

// abandoned is the outcome of a poll that ended because the scheduler stops.
// It is neither counted nor noted: another node takes the turn.
const abandoned turn.Outcome = "abandoned"

// part is one observer's part of a turn.
type part struct {
	*run
	observer Observer
	was      turn.Stream
	log      *slog.Logger
	// polled says that there was a poll, full that the last one went well and has left
	// rows behind, and lag is how far behind it was.
	polled, full bool
	lag          time.Duration
}

// leastLeft is the share of an interval that is worth another poll.
const leastLeft = 16

// ended reports whether the part has had its last poll. One that has left rows behind
// is followed by another until the type's next tick, which may be another node's
// and must not find the lock held.
func (p *part) ended(ctx context.Context) bool {
	return p.polled && (!p.full || p.left() < p.typ.Interval/leastLeft || ctx.Err() != nil)
}

// poll polls the observer within its time and notes what came of it.
func (p *part) poll(ctx context.Context, g lock.Grant) result {
	poll, end, err := p.begin(ctx)
	defer end()
	began, started := time.Now(), p.clock.now()
	var stats observer.Stats
	if err == nil {
		limited, cancel := p.limited(poll)
		defer cancel()
		stats, err = p.safely(limited, g)
	} else if errors.Is(err, observer.ErrNextTick) {
		stats.Full, err = true, nil // As it was before.
	}
	if p.polled && stats.Full && stats.Rows == 0 {
		stats.Lag = p.lag // The tick came before a row that would tell.
	}
	res := result{outcome: p.outcome(ctx, err), stats: stats}
	p.member.outdated(p.observer.ID(), res.outcome == turn.Outdated)
	p.count(stats, res.outcome)
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
	res.outcome = p.note(ctx, g, started, res, err)
	p.polled, p.lag = true, stats.Lag
	p.full = res.outcome == turn.OK && stats.Full
	if p.full {
		p.was.Failures = 0
	}
	return res
}

// begin waits until the observer's poll may begin, of which the poll's time takes no
// part. Its context is that of the poll: one that follows another has until the next
// tick, and a moment less for its last commit and the notes. end is called when the
// poll has ended.
func (p *part) begin(ctx context.Context) (poll context.Context, end func(), err error) {
	release := func() {}
	if p.polled {
		ctx, release = context.WithTimeoutCause(ctx, p.left(), observer.ErrNextTick)
	}
	line, ok := p.observer.(Beginner)
	if !ok {
		return ctx, release, nil
	}
	defer p.waiting()()
	poll, leave, err := line.Begin(ctx)
	return poll, func() { leave(); release() }, err
}

// waiting says that the loop is alive until the function that it returns is called:
// whoever waits is not stuck. Those for whom it waits say so themselves.
func (p *part) waiting() (over func()) {
	ticker, done := time.NewTicker(p.typ.Interval), make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				p.typ.Progress.alive()
			}
		}
	})
	return func() {
		ticker.Stop()
		close(done)
		watch.Wait()
		p.typ.Progress.alive()
	}
}

// limited is a context that ends once nothing was committed for the time of a poll.
// Polls that commit on their way may take any time.
func (p *part) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	began := time.Now()
	var watch sync.WaitGroup
	watch.Go(func() {
		for left := p.typ.PollTimeout; left > 0; {
			timer := time.NewTimer(left)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			left = p.typ.PollTimeout - min(time.Since(began), p.typ.Progress.age(active))
		}
		cancel(ErrPollTimeout)
	})
	return ctx, func() {
		cancel(context.Canceled)
		watch.Wait()
	}
}

// outcome reads the error of a poll. ctx is the lease's.
func (p *part) outcome(ctx context.Context, err error) turn.Outcome {
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		return turn.OK
	case errors.Is(err, lock.ErrFenced):
		return turn.Fenced
	case errors.Is(cause, lock.ErrLost) || errors.Is(err, lock.ErrLost):
		return turn.Lost
	case cause != nil:
		return abandoned
	case errors.Is(err, observer.ErrUnreachable):
		return turn.Unreachable
	case errors.Is(err, observer.ErrOtherDefinition):
		return turn.Outdated
	case errors.Is(err, observer.ErrConflict):
		return turn.Conflict
	}
	return turn.Error
}

func (p *part) count(stats observer.Stats, outcome turn.Outcome) {
	p.metrics.rows.WithLabelValues(p.typ.Name).Add(float64(stats.Rows))
	p.metrics.events.WithLabelValues(p.typ.Name).Add(float64(stats.Events))
	p.metrics.poison.WithLabelValues(p.typ.Name).Add(float64(stats.Poison))
	set(p.metrics.outdated, p.typ.Name, p.observer.ID(), outcome == turn.Outdated)
	if outcome == turn.OK {
		p.typ.Progress.note(succeeded(p.observer.ID()))
		p.metrics.lastSuccess.WithLabelValues(p.typ.Name, p.observer.ID()).SetToCurrentTime()
		p.metrics.horizonLag.WithLabelValues(p.observer.ID()).Set(stats.HorizonLag.Seconds())
		p.metrics.lag.WithLabelValues(p.typ.Name, p.observer.ID()).Set(stats.Lag.Seconds())
	}
}

// note writes the observer's part into the store, unless the lease is over,
// and returns the outcome that holds then.
func (p *part) note(ctx context.Context, g lock.Grant, started time.Time, res result, err error) turn.Outcome {
	if res.unnoted() {
		return res.outcome
	}
	t := turn.StreamTaken{
		Stream: p.observer.ID(), Type: p.typ.Name, Node: p.opts.Node.Name,
		At: p.at, Started: started, Finished: p.clock.now(), Outcome: res.outcome,
		Rows: res.stats.Rows, Events: res.stats.Events, Poison: res.stats.Poison, Lag: res.stats.Lag,
	}
	switch res.outcome {
	case turn.Error:
		t.Reason = Reason(err)
		t.Failures = p.was.Failures + 1
		t.RetryAt = p.at.Add(pauseAfter(err, t.Failures, p.typ.Interval))
	case turn.Unreachable, turn.Outdated:
		t.Reason = Reason(err)
		t.Failures, t.Left = p.was.Failures, true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	switch err := p.opts.Store.NoteStream(ctx, g, t); {
	case errors.Is(err, lock.ErrFenced):
		p.log.Error("Error during polling", "err", err, "outcome", string(turn.Fenced))
		return turn.Fenced
	case err != nil:
		p.log.Error("Poll not noted; it may be repeated", "err", err)
		return abandoned
	}
	return res.outcome
}

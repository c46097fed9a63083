package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/wait"
)

// errGaveUp ends a term whose sink failed too often in a row.
var errGaveUp = errors.New("the sink failed too often")

// sinkError tells an error of the sink from one of the event log.
type sinkError struct{ error }

func (e *sinkError) Unwrap() error { return e.error }

// term is the time from one acquisition of the sink's lease to its end.
type term struct {
	*Relay
	epoch int64
	// lost reports whether the lease has ended although the relay is not to stop.
	lost func() bool

	sink    sink.Sink
	log     uuid.UUID // its id, once the sink is claimed
	claimed bool
	// restored says that the sink knows a later term, and the log does not.
	restored bool
	// unsettled is what the sink has stored and the event log does not know yet. Unless the sink
	// knows its positions, it is acknowledged before anything else is delivered, so that a crash
	// repeats at most one batch of a term. later is how many batches of it wait for that.
	unsettled []events.Step
	later     int
	// after is the last stream of the last batch. The next round begins behind it, so that
	// streams with a large backlog cannot starve others.
	after string
	// streamsAtOnce bounds the streams of a batch while the sink fails; 0: it does not.
	// backlogged is how many had a backlog lately, and passed how many got through since a
	// batch failed.
	streamsAtOnce, backlogged, passed int
	// compared are the offsets of streams at which the sink's position and the log agree, all
	// of them since comparedAt; nil before the first comparison with a sink that was opened.
	compared   map[string]int64
	comparedAt time.Time
	// lagged are the streams whose lag is shown; showsNone says that it is 0 for all of them.
	lagged    map[string]bool
	showsNone bool
	// streams are those of [Options], by id, and ahead is how far the log's clock was
	// ahead of this node's when a backlog was read last.
	streams map[string]Stream
	ahead   time.Duration
	halted  map[string]halt
	parked  parked

	// noted is what was last noted of the sink; nil before the first note.
	noted      *string
	failures   int
	sinkOutage wait.Outage
	sinkHalted bool // and it was logged
	expired    bool // and was opened anew
	// pace is between attempts while the sink fails, databasePace while the event log does.
	pace, databasePace *wait.Backoff
}

// The pauses between attempts while something fails.
const (
	leastPace = 250 * time.Millisecond
	mostPace  = 15 * time.Second
	// mostRetryAfter bounds the wish of a sink that wants to be left alone.
	mostRetryAfter = time.Hour
)

// newTerm returns a term that has done nothing yet; stop ends when the relay
// is asked to stop.
func newTerm(stop context.Context, r *Relay, lease Lease) *term {
	leased := lease.Context()
	t := &term{
		Relay:  r,
		epoch:  lease.Fence(),
		lost:   func() bool { return leased.Err() != nil && stop.Err() == nil },
		lagged: make(map[string]bool), streams: make(map[string]Stream),
		halted: make(map[string]halt),
		pace:   wait.NewBackoff(leastPace, mostPace), databasePace: wait.NewBackoff(leastPace, mostPace),
	}
	for _, stream := range r.opts.Streams {
		t.lagged[stream.ID], t.streams[stream.ID] = true, stream
	}
	return t
}

// run delivers until ctx ends, a later relay has claimed the sink, or the sink
// has failed too often. It returns why.
func (t *term) run(ctx context.Context) error {
	t.metrics.leads.Set(1)
	defer t.metrics.leave()
	for {
		busy, err := t.step(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case err == nil:
			t.recovered(ctx)
			if !busy {
				t.pause(ctx, t.opts.Poll, t.wake)
			}
		case errors.Is(err, events.ErrStale):
			return err
		case errors.As(err, new(*sink.StaleError)):
			if err := t.overtaken(ctx, err); err != nil {
				return err
			}
		case errors.Is(err, sink.ErrExpired) && !t.expired:
			t.expired = true // Twice in a row, something is wrong.
			t.opts.Logger.Info("Reopening sink", "err", err)
			t.close()
		case errors.Is(err, events.ErrLogChanged):
			t.dropped(err)
			t.pause(ctx, leastPace, nil)
		default:
			if err := t.failed(ctx, err); err != nil {
				return err
			}
		}
	}
}

// step claims and opens the sink if that is still to do, and delivers one round. It
// reports false when there was nothing to deliver. The claim comes first, because it
// shows that the sink is in use: the events that it lacks are kept, however long it
// cannot be opened.
func (t *term) step(ctx context.Context) (busy bool, err error) {
	if !t.claimed {
		if err := t.claim(ctx); err != nil {
			return false, err
		}
	}
	if t.sink == nil {
		backlog, err := t.backlog(ctx) // What waits is shown, however long the sink cannot be opened.
		if err == nil {
			err = t.lookAtParked(ctx)
		}
		if err != nil || paused(backlog) {
			return false, err
		}
		if err := t.open(ctx); err != nil {
			return false, err
		}
	}
	if err := t.settle(ctx); err != nil {
		return false, err
	}
	return t.round(ctx)
}

// bounded is the context of one call to the event log or the sink, which is announced.
func (t *term) bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	t.beat(limit)
	return context.WithTimeout(ctx, limit)
}

func (t *term) open(ctx context.Context) error {
	ctx, cancel := t.bounded(ctx, t.opts.Timeout)
	defer cancel()
	opened, err := t.opts.Open(ctx, sink.Term{Log: t.log, Epoch: t.epoch, Restored: t.restored})
	if err != nil {
		return &sinkError{fmt.Errorf("open sink: %w", err)}
	}
	t.sink, t.compared = opened, nil
	if ended, ok := opened.(sink.Ended); ok {
		if last, ok := ended.Last(); ok {
			t.opts.Log.Delivered(ctx, last)
		}
	}
	return nil
}

func (t *term) claim(ctx context.Context) error {
	ctx, cancel := t.bounded(ctx, t.opts.Timeout)
	defer cancel()
	log, err := t.opts.Log.Claim(ctx, t.opts.Sink, t.epoch)
	if err != nil {
		return fmt.Errorf("claim sink: %w", err)
	}
	t.log, t.claimed = log, true
	failpoint.Hit("relay.claimed")
	return nil
}

// overtaken returns an error if the term is over. A later one would have claimed the sink
// before it fed it: where none has, the log has gone back to an earlier state.
func (t *term) overtaken(ctx context.Context, err error) error {
	if claimErr := t.claim(ctx); claimErr != nil {
		return errors.Join(err, claimErr)
	}
	t.restored = true
	return t.failed(ctx, &sinkError{err})
}

// dropped forgets what the sink has stored of a log that has changed. The term goes on
// at the offsets that the log has now, and compares them with the sink anew.
func (t *term) dropped(err error) {
	streams := fn.Each(t.unsettled, func(step events.Step) string {
		return fmt.Sprintf("%s %d to %d", step.Stream(), step.First(), step.Last())
	})
	t.opts.Logger.Warn("Event log changed, its events are delivered from the offset that it has now",
		"stored", abridged(streams), "err", err)
	t.unsettled, t.later, t.compared, t.parked = nil, 0, nil, parked{}
}

// failed waits before the next step, or ends the term.
func (t *term) failed(ctx context.Context, err error) error {
	pace := t.pace
	if !errors.As(err, new(*sinkError)) {
		t.databaseFails(ctx, err)
		pace = t.databasePace
	} else if err := t.sinkFailed(ctx, err); err != nil {
		return err
	}
	d := pace.NextBackOff()
	if after, is := errors.AsType[*sink.RetryAfter](err); is {
		d = max(d, min(after.After, mostRetryAfter))
	}
	t.pause(ctx, d, nil)
	return context.Cause(ctx)
}

// sinkFailed returns an error if the term is over. A sink that knows its positions is
// opened anew: what it has stored may be more, or less, than it has said.
func (t *term) sinkFailed(ctx context.Context, err error) error {
	t.metrics.failures.Inc()
	t.note(ctx, err.Error())
	t.endSession()
	switch after, is := errors.AsType[*sink.RetryAfter](err); {
	case errors.Is(err, sink.ErrGone):
		t.pauseSink(ctx, err)
		return nil
	case is: // Another node would not be heard either.
		if t.sinkOutage.Begin() {
			t.opts.Logger.Warn("Sink asks for a pause", "after", after.After, "err", err)
		}
		return nil
	case errors.Is(err, sink.ErrHalted):
		t.sinkOutage.Begin()
		if !t.sinkHalted {
			t.sinkHalted = true
			t.opts.Logger.Error("Sink halted", "err", err)
		}
		return nil
	}
	t.failures++
	if t.opts.GiveUp > 0 && t.failures >= t.opts.GiveUp {
		return fmt.Errorf("%w: %d times in a row, lastly: %w", errGaveUp, t.failures, err)
	}
	if t.sinkOutage.Begin() {
		t.opts.Logger.Warn("Sink fails, repeating", "err", err)
	}
	return nil
}

// endSession has a sink that knows its positions opened anew.
func (t *term) endSession() {
	if _, ok := t.sink.(sink.Resumer); ok {
		t.close()
	}
}

// pauseSink pauses a sink whose receiver wants no more. Where that fails, the next attempt
// is told the same.
func (t *term) pauseSink(ctx context.Context, why error) {
	ctx, cancel := t.bounded(ctx, stopTimeout)
	defer cancel()
	err := t.opts.Log.Pause(ctx, t.opts.Sink, why.Error(), t.epoch)
	t.opts.Logger.Error("Receiver wants no more events, sink paused", "err", errors.Join(why, err))
}

// recovered notes that a whole step went well.
func (t *term) recovered(ctx context.Context) {
	t.note(ctx, t.whyHalted())
	t.progressed()
	t.sinkHalted, t.expired = false, false
	t.databaseAnswers()
	if lasted, over := t.sinkOutage.End(); over {
		t.opts.Logger.Info("Sink works again", "after", lasted)
	}
}

// note keeps in the database why the sink fails, until it works, on whichever node. A
// note that cannot be written is written with the next step.
func (t *term) note(ctx context.Context, reason string) {
	if t.noted != nil && *t.noted == reason {
		return
	}
	ctx, cancel := t.bounded(ctx, stopTimeout)
	defer cancel()
	if err := t.opts.Log.Failed(ctx, t.opts.Sink, reason, t.epoch); err != nil {
		t.opts.Logger.Debug("The state of the sink was not noted", "err", err)
		return
	}
	t.noted = &reason
}

// progressed forgets earlier failures.
func (t *term) progressed() {
	t.failures = 0
	t.pace.Reset()
	t.databasePace.Reset()
}

// close closes the sink. Events that were not acknowledged are delivered again.
func (t *term) close() {
	if t.sink == nil {
		return
	}
	t.beat(time.Minute)
	if err := t.sink.Close(); err != nil {
		t.opts.Logger.Warn("Error closing sink", "err", err)
	}
	t.sink = nil
}

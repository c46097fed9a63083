package events

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/internal/wait"
)

// errGaveUp ends a term whose sink failed too often in a row.
var errGaveUp = errors.New("the sink failed too often")

// sinkError tells an error of the sink from one of the event log.
type sinkError struct{ err error }

func (e *sinkError) Error() string { return e.err.Error() }
func (e *sinkError) Unwrap() error { return e.err }

// term is the time from one acquisition of the sink's lease to its end.
type term struct {
	*Relay
	epoch int64
	// lost reports whether the lease has ended although the relay is not to stop.
	lost func() bool

	sink    Sink
	claimed bool
	// unsettled is what the sink has stored and the event log does not know yet. It is
	// acknowledged before anything else is delivered, so that a crash repeats at most one
	// batch of a term, however many streams there are.
	unsettled *Stored
	// after is the stream that was served last. The next round begins behind it, so that
	// a stream whose events the sink refuses cannot starve others.
	after string
	// lagged are the streams whose lag is shown.
	lagged map[string]bool
	// streams are those of [Options], by id, and ahead is how far the log's clock was
	// ahead of this node's when a backlog was read last.
	streams map[string]Stream
	ahead   time.Duration
	// halted maps a stream with a gap to the offset at which it was found.
	halted map[string]int64

	// noted is what was last noted of the sink; nil before the first note.
	noted      *string
	failures   int
	sinkOutage wait.Outage
	sinkHalted bool // and it was logged
	// pace is between attempts while the sink fails, databasePace while the event log does.
	pace, databasePace *wait.Backoff
}

// The pauses between attempts while something fails.
const (
	leastPace = 250 * time.Millisecond
	mostPace  = 15 * time.Second
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
		halted: make(map[string]int64),
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
		case errors.Is(err, ErrStale):
			return err
		case errors.Is(err, ErrLogChanged):
			t.dropped(err)
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
		if _, err := t.backlog(ctx); err != nil { // What waits is shown, however long the sink cannot be opened.
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

func (t *term) open(ctx context.Context) error {
	t.beat(t.opts.Timeout)
	ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	sink, err := t.opts.Open(ctx)
	if err != nil {
		return &sinkError{fmt.Errorf("open sink: %w", err)}
	}
	t.sink = sink
	return nil
}

func (t *term) claim(ctx context.Context) error {
	t.beat(t.opts.Timeout)
	ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	if err := t.opts.Log.Claim(ctx, t.opts.Sink, t.epoch); err != nil {
		return fmt.Errorf("claim sink: %w", err)
	}
	t.claimed = true
	failpoint.Hit("relay.claimed")
	return nil
}

// dropped forgets what the sink has stored of a log that has changed. The term goes on
// at the offset that the log has now.
func (t *term) dropped(err error) {
	t.opts.Logger.Warn("Event log changed, its events are delivered from the offset that it has now",
		"stream", t.unsettled.Stream(), "from", t.unsettled.First(), "to", t.unsettled.Last(), "err", err)
	t.unsettled = nil
}

// failed waits before the next step, or ends the term.
func (t *term) failed(ctx context.Context, err error) error {
	var sinkErr *sinkError
	pace := t.pace
	if !errors.As(err, &sinkErr) {
		t.databaseFails(ctx, err)
		pace = t.databasePace
	} else if err := t.sinkFailed(ctx, err); err != nil {
		return err
	}
	t.pause(ctx, pace.NextBackOff(), nil)
	return context.Cause(ctx)
}

func (t *term) sinkFailed(ctx context.Context, err error) error {
	t.metrics.failures.Inc()
	t.note(ctx, err.Error())
	if errors.Is(err, ErrHalted) {
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

// recovered notes that a whole step went well.
func (t *term) recovered(ctx context.Context) {
	t.note(ctx, t.gaps())
	t.progressed()
	t.sinkHalted = false
	t.databaseAnswers()
	if lasted, over := t.sinkOutage.End(); over {
		t.opts.Logger.Info("Sink works again", "after", lasted)
	}
}

// gaps says which streams are halted; empty for none.
func (t *term) gaps() string {
	if len(t.halted) == 0 {
		return ""
	}
	return fmt.Sprintf("%v: not delivered any more: %s", ErrGap, strings.Join(slices.Sorted(maps.Keys(t.halted)), ", "))
}

// note keeps in the database why the sink fails, until it works, on whichever node. A
// note that cannot be written is written with the next step.
func (t *term) note(ctx context.Context, reason string) {
	if t.noted != nil && *t.noted == reason {
		return
	}
	t.beat(stopTimeout)
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
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
}

package sinktest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
)

// Harness is what the suite needs of a kind of sink. Each test has its own, with an
// empty destination.
type Harness struct {
	// Open opens the sink as a relay does when its term begins. A sink is closed
	// before the next one is opened, but where two terms believe to lead. Required.
	Open func(ctx context.Context, t sink.Term) (sink.Sink, error)
	// Stored returns the events that a reader of the destination finds, in the order
	// of the destination. It leaves out anything that is no whole event. Required.
	Stored func() ([]events.Event, error)
	// Tear breaks the next write off in the middle: of an event, or of what the sink
	// sends. Required.
	Tear func()
	// Refuse has the destination refuse all writes until allow is called. Required.
	Refuse func() (allow func())
	// Stall has the destination take nothing, without an answer, until resume is
	// called. Nil for one that always answers.
	Stall func() (resume func())
	// Poison makes an event one that the destination never takes. Nil for one that takes
	// all.
	Poison func(*events.Event)
	// Resumes says that the sink is a [sink.Resumer].
	Resumes bool
	// JSON says that data must be JSON.
	JSON bool
	// Repeats says that an event that is delivered again may be stored again.
	Repeats bool
}

// story is one promise of the contract. It returns an error, so that the suite's own
// test can ask that a broken sink gets one.
type story struct {
	name string
	tell func(ctx context.Context, h Harness) error
	// needs says why a harness cannot be told it; nil: every one can.
	needs func(h Harness) (lack string)
}

var stories = []story{
	{name: "events are stored whole and in order", tell: whole},
	{name: "streams are mixed in a batch", tell: mixed},
	{name: "a large batch is stored to its end", tell: large},
	{name: "a repeat is recognised", tell: repeated},
	{name: "the next term recognises a repeat", tell: reopened},
	{name: "the id decides what is a repeat", tell: countedAnew},
	{name: "a torn batch is completed", tell: torn},
	{name: "the next term completes a torn batch", tell: tornAndReopened},
	{name: "a torn batch spoils no other stream", tell: tornBeforeAnother},
	{name: "a sink that is refused goes on", tell: refused},
	{name: "nothing is stored after the context ended", tell: ended},
	{name: "a silent destination holds up no caller", tell: stalled, needs: stalls},
	{name: "an event that is rejected stops its stream alone", tell: rejected, needs: poisons},
	{name: "the position is that of the last event", tell: positioned, needs: resumes},
	{name: "a torn batch and its position are one", tell: tornPosition, needs: resumes},
	{name: "the position names its log", tell: anotherLog, needs: resumes},
	{name: "a late event leaves the position where it is", tell: late, needs: resumes},
	{name: "an earlier term stores nothing", tell: zombie, needs: resumes},
	{name: "the terms of a log that was restored are taken", tell: restored, needs: resumes},
	{name: "nothing is stored that was sent before the sink was opened anew", tell: orphan, needs: resumes},
}

func stalls(h Harness) string  { return lacks(h.Stall == nil, "this destination always answers") }
func poisons(h Harness) string { return lacks(h.Poison == nil, "this destination takes every event") }
func resumes(h Harness) string { return lacks(!h.Resumes, "this sink has no positions") }

func lacks(lack bool, what string) string {
	if lack {
		return what
	}
	return ""
}

// Run tests a kind of sink against the contract.
func Run(t *testing.T, harness func(t *testing.T) Harness) {
	t.Helper()
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			h := harness(t)
			if s.needs != nil && s.needs(h) != "" {
				t.Skip(s.needs(h))
			}
			if err := s.tell(ctx, h); err != nil {
				t.Error(err)
			}
		})
	}
}

// term is one of a test, later with each epoch.
func term(epoch int64) sink.Term { return sink.Term{Log: theLog, Epoch: epoch} }

// theLog is the id of the log whose events are stored.
var theLog = uuid.UUID{6: 0x80, 8: 0x80, 15: 1}

// term opens the sink for a first term, uses it, and closes it.
func (h Harness) term(ctx context.Context, use func(sink.Sink) error) error {
	return h.in(ctx, term(1), use)
}

// in opens the sink for a term as a relay does, uses it, and closes it.
func (h Harness) in(ctx context.Context, t sink.Term, use func(sink.Sink) error) error {
	s, err := h.open(ctx, t)
	if err != nil {
		return err
	}
	err = use(s)
	if closeErr := s.Close(); closeErr != nil {
		return errors.Join(err, fmt.Errorf("close: %w", closeErr))
	}
	return err
}

// open opens the sink, and asks it for its positions if it has some.
func (h Harness) open(ctx context.Context, t sink.Term) (sink.Sink, error) {
	s, err := h.Open(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if _, ok := s.(sink.Resumer); ok != h.Resumes {
		return nil, errors.Join(fmt.Errorf("a sink.Resumer: %t, and the harness says %t", ok, h.Resumes), s.Close())
	}
	if h.Resumes {
		if _, err := positions(ctx, s, "orders"); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// positions asks for the positions of streams, each at most once.
func positions(ctx context.Context, s sink.Sink, streams ...string) (map[string]events.Position, error) {
	found, err := s.(sink.Resumer).Positions(ctx, streams)
	if err != nil {
		return nil, fmt.Errorf("positions: %w", err)
	}
	of := make(map[string]events.Position)
	for _, p := range found {
		if _, twice := of[p.Stream]; twice || !slices.Contains(streams, p.Stream) {
			return nil, fmt.Errorf("a position of %q, of which none was asked for, or two", p.Stream)
		}
		of[p.Stream] = p
	}
	return of, nil
}

// deliver hands the batches over one after the other, each until all of it is
// stored, as a relay does.
func deliver(ctx context.Context, s sink.Sink, batches ...[]events.Event) error {
	_, err := deliverAt(ctx, s, theLog, nil, batches...)
	return err
}

// deliverAt is deliver, and returns the positions that a sink has to keep then; since are
// those before.
func deliverAt(ctx context.Context, s sink.Sink, log uuid.UUID, since map[string]events.Position, batches ...[]events.Event) (map[string]events.Position, error) {
	at := make(map[string]events.Position)
	maps.Copy(at, since)
	for _, batch := range batches {
		for len(batch) > 0 {
			rest, _, err := attempt(ctx, s, batch)
			if err != nil {
				return nil, fmt.Errorf("deliver %s from %d: %w", batch[0].Stream, batch[0].Seq, err)
			}
			isLeft := func(e events.Event) bool {
				return slices.ContainsFunc(rest, func(r events.Event) bool { return r.ID == e.ID })
			}
			for _, end := range events.Ends(slices.DeleteFunc(slices.Clone(batch), isLeft), log, at) {
				at[end.Stream] = end
			}
			batch = rest
		}
	}
	return at, nil
}

// Deliver calls Deliver of the sink once, as a relay does, and returns how many events it
// has stored, which are those at the beginning where all are of one stream.
func Deliver(ctx context.Context, s sink.Sink, batch []events.Event) (int, error) {
	rest, _, err := attempt(ctx, s, batch)
	return len(batch) - len(rest), err
}

// attempt calls Deliver once, and returns what is left of the batch. A result that no relay
// accepts is a [claimError].
func attempt(ctx context.Context, s sink.Sink, batch []events.Event) (rest []events.Event, _ []sink.Rejection, _ error) {
	result, err := s.Deliver(ctx, batch)
	rest, claim := left(batch, result)
	if claim == "" && len(rest) == len(batch) && len(result.Rejected) == 0 && err == nil {
		claim = "nothing, without an error"
	}
	if claim != "" {
		return batch, nil, &claimError{claim}
	}
	return rest, result.Rejected, err
}

// left returns what is not stored of a batch, or what is wrong with the result.
func left(batch []events.Event, r sink.Result) (rest []events.Event, wrong string) {
	stored := make(map[string]int64)
	for _, p := range r.Stored {
		if stored[p.Stream] > 0 || !slices.ContainsFunc(batch, func(e events.Event) bool { return place(e).Is(p) }) {
			return nil, fmt.Sprintf("%s %d to be stored, twice or without having it", p.Stream, p.Seq)
		}
		stored[p.Stream] = p.Seq
	}
	for i := range batch {
		if batch[i].Seq > stored[batch[i].Stream] {
			rest = append(rest, batch[i])
		}
	}
	for _, x := range r.Rejected {
		next := slices.IndexFunc(rest, func(e events.Event) bool { return e.Stream == x.Stream })
		if next < 0 || !place(rest[next]).Is(x.Position) {
			return nil, fmt.Sprintf("%s %d to be rejected, which is not the next of its stream", x.Stream, x.Seq)
		}
	}
	return rest, ""
}

func place(e events.Event) events.Position {
	return events.Position{Stream: e.Stream, Seq: e.Seq, ID: e.ID}
}

type claimError struct{ claim string }

func (e *claimError) Error() string { return "Deliver claims " + e.claim }

// fail calls Deliver once and wants an error, of cause if that is not nil.
func fail(ctx context.Context, s sink.Sink, batch []events.Event, cause error) (rest []events.Event, _ error) {
	rest, _, err := attempt(ctx, s, batch)
	if claim := (*claimError)(nil); errors.As(err, &claim) {
		return nil, err
	}
	if err == nil {
		return nil, errors.New("Deliver returned no error")
	}
	if cause != nil && !errors.Is(err, cause) {
		return nil, fmt.Errorf("Deliver must return the cause %q, and returned: %w", cause.Error(), err)
	}
	return rest, nil
}

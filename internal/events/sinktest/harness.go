package sinktest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/events"
)

// Harness is what the suite needs of a kind of sink. Each test has its own, with an
// empty destination.
type Harness struct {
	// Open opens the sink as a relay does when its term begins. A sink is closed
	// before the next one is opened. Required.
	Open func(ctx context.Context) (events.Sink, error)
	// Stored returns the events that a reader of the destination finds, in the order
	// of the destination. It leaves out anything that is no whole event. Required.
	Stored func() ([]events.Event, error)
	// Tear breaks the next write off in the middle of an event. Required.
	Tear func()
	// Refuse has the destination refuse all writes until allow is called. Required.
	Refuse func() (allow func())
	// Stall has the destination take nothing, without an answer, until resume is
	// called. Nil for one that always answers.
	Stall func() (resume func())
	// Repeats says that an event that is delivered again may be stored again.
	Repeats bool
}

// story is one promise of the contract. It returns an error, so that the suite's own
// test can ask that a broken sink gets one.
type story struct {
	name string
	tell func(ctx context.Context, h Harness) error
	// stalls says that it needs [Harness].Stall.
	stalls bool
}

var stories = []story{
	{name: "events are stored whole and in order", tell: whole},
	{name: "a large batch is stored to its end", tell: large},
	{name: "a repeat is recognised", tell: repeated},
	{name: "the next term recognises a repeat", tell: reopened},
	{name: "the id decides what is a repeat", tell: countedAnew},
	{name: "a torn batch is completed", tell: torn},
	{name: "the next term completes a torn batch", tell: tornAndReopened},
	{name: "a torn batch spoils no other stream", tell: tornBeforeAnother},
	{name: "a sink that is refused goes on", tell: refused},
	{name: "nothing is stored after the context ended", tell: ended},
	{name: "a silent destination holds up no caller", tell: stalled, stalls: true},
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
			if s.stalls && h.Stall == nil {
				t.Skip("this destination always answers")
			}
			if err := s.tell(ctx, h); err != nil {
				t.Error(err)
			}
		})
	}
}

// term opens the sink, uses it, and closes it.
func (h Harness) term(ctx context.Context, use func(events.Sink) error) error {
	s, err := h.Open(ctx)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	err = use(s)
	if closeErr := s.Close(); closeErr != nil {
		return errors.Join(err, fmt.Errorf("close: %w", closeErr))
	}
	return err
}

// deliver hands the batches over one after the other, each until all of it is
// stored, as a relay does.
func deliver(ctx context.Context, s events.Sink, batches ...[]events.Event) error {
	for _, batch := range batches {
		for len(batch) > 0 {
			n, err := attempt(ctx, s, batch)
			if err != nil {
				return fmt.Errorf("deliver %s from %d: %w", batch[0].Stream, batch[0].Seq, err)
			}
			batch = batch[n:]
		}
	}
	return nil
}

// attempt calls Deliver once. A count that no relay accepts is a [claimError].
func attempt(ctx context.Context, s events.Sink, batch []events.Event) (int, error) {
	n, err := s.Deliver(ctx, batch)
	if n < 0 || n > len(batch) || (n == 0 && err == nil) {
		return 0, &claimError{n, len(batch)}
	}
	return n, err
}

type claimError struct{ stored, of int }

func (e *claimError) Error() string {
	return fmt.Sprintf("Deliver returned %d of %d events and no error", e.stored, e.of)
}

// fail calls Deliver once and wants an error, of cause if that is not nil.
func fail(ctx context.Context, s events.Sink, batch []events.Event, cause error) (int, error) {
	n, err := attempt(ctx, s, batch)
	if claim := (*claimError)(nil); errors.As(err, &claim) {
		return 0, err
	}
	if err == nil {
		return 0, errors.New("Deliver returned no error")
	}
	if cause != nil && !errors.Is(err, cause) {
		return 0, fmt.Errorf("Deliver must return the cause %q, and returned: %w", cause.Error(), err)
	}
	return n, nil
}

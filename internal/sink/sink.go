// Package sink is the contract of sinks: what a relay asks of them, and what it tells
// them. A kind of sink is a package below this one;
// [github.com/observerd/observerd/internal/sink/sinktest] is the contract as a suite of tests.
package sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/events"
)

var (
	// ErrHalted is in the error of a sink that may have lost what it had stored.
	// A person has to act first: going on would hide the loss, and repeat it.
	ErrHalted = errors.New("the sink is halted")
	// ErrGone is in the error of a sink whose receiver wants no events any more. The
	// relay pauses the sink, as an operator would.
	ErrGone = errors.New("the receiver has gone for good")
	// ErrExpired is in the error of a sink that cannot go on as it was opened: the target has
	// forgotten it because it was idle for long, or has other limits now. Nothing was stored,
	// and nothing is wrong.
	ErrExpired = errors.New("the sink has to be opened anew")
	// ErrEmptied is in the error of [Resumer].Positions where retention or a purge of
	// the target has removed events that the sink had stored: streams without a position
	// go on from the offset.
	ErrEmptied = errors.New("the target's own retention has removed its last events")
)

// Sink stores events outside. A relay calls it from one goroutine at a time.
type Sink interface {
	// Deliver stores the events, at least one: those of one stream in order, those of
	// several streams mixed. The result says what is durably stored, also together with
	// an error, and also when Deliver gave up because ctx ended, whose cause it then
	// returns. Less than all without an error means "that much at once, call again";
	// nothing always has an error or a rejection. An event that the sink recognises by
	// its id as stored before counts as stored.
	//
	// Beside [ErrHalted], [ErrGone] and [ErrExpired], the error may hold a [RetryAfter] or a [StaleError].
	Deliver(ctx context.Context, batch []events.Event) (Result, error)
	// Close lets go of the sink. What was stored stays stored.
	Close() error
}

// Result is what has become of a batch.
type Result struct {
	// Stored has the last event that is stored of each stream of which something is. All
	// of that stream before it in the batch is stored too. Of a [Resumer] they are its new
	// positions; else log and digest do not matter.
	Stored []events.Position
	// Rejected are events that the sink will never take as they are, at most one of each
	// stream: the first behind those that are stored.
	Rejected []Rejection
}

// Rejection is an event that a sink will never take.
type Rejection struct {
	events.Position // without a log and a digest
	// Reason says why, for people, without a value of the row.
	Reason string
}

// StoredAll is the result where these events are stored, and no others.
func StoredAll(batch []events.Event) Result { return Result{Stored: events.Ends(batch, uuid.Nil, nil)} }

// StoredOf is the result where stored says which events of a batch are, by their place in
// it: of each stream, those before the first that is not.
func StoredOf(batch []events.Event, stored func(i int) bool) Result {
	var begin []events.Event
	lacks := make(map[string]bool)
	for i := range batch {
		if lacks[batch[i].Stream] = lacks[batch[i].Stream] || !stored(i); !lacks[batch[i].Stream] {
			begin = append(begin, batch[i])
		}
	}
	return StoredAll(begin)
}

// Resumer is a sink that knows, for each stream, what it has stored last. It keeps that
// position, as [events.Ends] makes it of the events and of the position before, in the same
// step as these: neither is ever there without the other.
type Resumer interface {
	// Positions returns the position of each of the streams that has one. What an earlier
	// term may still be storing, or this term before the sink was opened anew, is stored, or
	// refused for good, before it returns. It is called before anything is delivered. The
	// error may be a [StaleError], and hold [ErrEmptied].
	Positions(ctx context.Context, streams []string) ([]events.Position, error)
	// Redeliver stores events that had been parked, as Deliver does, but late: the
	// position stays where it is.
	Redeliver(ctx context.Context, batch []events.Event) (Result, error)
}

// RetryAfter is the error of a sink that asked to be left alone for a time.
type RetryAfter struct { //nolint:errname // It is called as the header that it stands for.
	Err error
	// After is how long, from now.
	After time.Duration
}

func (e *RetryAfter) Error() string { return e.Err.Error() }
func (e *RetryAfter) Unwrap() error { return e.Err }

// StaleError is the error of a sink that knows a later term, which a log that was restored
// does not know, or that was opened anew in this one: it has stored nothing.
type StaleError struct {
	// Epoch is that of the later term.
	Epoch int64
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("a later term of the relay, of epoch %d, feeds the sink", e.Epoch)
}

// Settings are the settings of a kind of sink.
type Settings interface {
	kind.Settings
	// Batch is how many events the kind is best given at once, where the configuration
	// does not say it.
	Batch() int
	// Opener is called once for each sink of the process. What it returns opens the
	// sink for one term of its relay; the sink must not live on ctx.
	Opener(o Options) func(ctx context.Context, t Term) (Sink, error)
}

// Options are what every kind of sink is given.
type Options struct {
	// Sink is the id of the sink. Required.
	Sink string
	// BatchSize is how many events the relay delivers at once, at most. Required.
	BatchSize int
	// Logger is told of repairs. Required.
	Logger *slog.Logger
	// Registerer takes metrics of the kind. Nil: it has none.
	Registerer prometheus.Registerer
	// Stdout is the standard output of the process. Required.
	Stdout io.Writer
	// Terminal says that Stdout is a terminal, where people read.
	Terminal bool
}

// Term is a term of the relay.
type Term struct {
	// Log is the id of the event log. It stays when the log is restored from a backup, and
	// is another one when the log was made anew.
	Log uuid.UUID
	// Epoch grows with each term of the sink's relay on this log.
	Epoch int64
	// Restored says that this is the last term by the log, though the sink knows a later
	// one: the log was restored, and counts its terms again.
	Restored bool
}

// Ended is a sink that has no positions, and may tell the last event of its target: the
// log is compared with it when the sink was opened.
type Ended interface {
	// Last returns the event without its data; false for none.
	Last() (events.Event, bool)
}

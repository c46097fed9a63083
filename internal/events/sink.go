package events

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/observerd/observerd/internal/kind"
)

var (
	// ErrHeld is what [Options].Lead returns while another relay leads the
	// sink. It is the normal state of all nodes but one.
	ErrHeld = errors.New("another relay leads the sink")
	// ErrGap reports that the event log lacks events that the sink has not
	// stored. Going on would hide the loss, so the stream is halted.
	ErrGap = errors.New("the event log has a gap")
	// ErrHalted is in the error of a sink that may have lost what it had stored.
	// A person has to act first: going on would hide the loss, and repeat it.
	ErrHalted = errors.New("the sink is halted")
)

// Sink stores events outside. A relay calls it from one goroutine at a time.
// [github.com/observerd/observerd/internal/events/sinktest] is the contract as a suite
// of tests.
type Sink interface {
	// Deliver stores the events, at least one, all of one stream and in order, and
	// returns how many of them, from the first, are durably stored: also together
	// with an error, and also when it gave up because ctx ended, whose cause it
	// then returns. Fewer than all without an error means "that much at once, call
	// again"; none always has an error. An event that the sink recognises by its id
	// as stored before counts as stored. The error is [ErrHalted] when a person has
	// to act first.
	Deliver(ctx context.Context, batch []Event) (stored int, err error)
	// Close lets go of the sink. What was stored stays stored.
	Close() error
}

// Lease is the right to feed one sink. *lock.Lease is one.
type Lease interface {
	// Context ends when the lease can no longer be trusted; its cause says why.
	Context() context.Context
	// Fence grows with every lease on the same sink.
	Fence() int64
	// Release gives the lease back. It is called once, lost or not.
	Release(ctx context.Context) error
}

// SinkSettings are the settings of a kind of sink.
type SinkSettings interface {
	kind.Settings
	// Opener is called once for each sink of the process. What it returns opens the
	// sink for one term of its relay.
	Opener(o SinkOptions) func(ctx context.Context) (Sink, error)
}

// SinkOptions are what every kind of sink is given.
type SinkOptions struct {
	// BatchSize is the most events that the relay delivers at once.
	BatchSize int
	// Logger is told of repairs. Required.
	Logger *slog.Logger
	// Stdout is the standard output of the process. Required.
	Stdout io.Writer
	// Terminal says that Stdout is a terminal, where people read.
	Terminal bool
	// Ended is called with the event with which the destination ends, when a sink that
	// can tell is opened. Required.
	Ended func(ctx context.Context, last Event)
}

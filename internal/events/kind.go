package events

import (
	"context"
	"io"
	"log/slog"

	"github.com/observerd/observerd/internal/kind"
)

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

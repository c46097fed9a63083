package events

import (
	"context"
	"io"
	"log/slog"
)

// SinkKind is one kind of sink: all that the program has to know of it.
type SinkKind struct {
	// Name is the type of such a sink in the configuration.
	Name string
	// Settings returns settings without values.
	Settings func() SinkSettings
}

// SinkSettings are the keys that sinks of one kind have beside those of all sinks: a
// pointer to a struct with the tags that package config describes. They are printed with
// the configuration: a secret is in a file that they name.
type SinkSettings interface {
	// Target names the place that no two sinks may share; "" for none.
	Target() string
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

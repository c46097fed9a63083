package stdout

import (
	"context"

	"github.com/observerd/observerd/internal/events"
)

// Kind is the kind of sink that is of type stdout in the configuration.
var Kind = events.SinkKind{Name: "stdout", Settings: func() events.SinkSettings { return new(settings) }}

type settings struct{}

func (*settings) Target() string { return "stdout" }

// Opener makes the one sink of the process, which each term gets again.
func (*settings) Opener(o events.SinkOptions) func(context.Context) (events.Sink, error) {
	s := New(o.Stdout)
	return func(context.Context) (events.Sink, error) { return s, nil }
}

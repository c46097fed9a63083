package stdout

import (
	"context"

	"github.com/observerd/observerd/internal/events"
)

// Kind is the kind of sink that is of type stdout in the configuration.
var Kind = events.SinkKind{Name: "stdout", Settings: func() events.SinkSettings { return new(settings) }}

type settings struct {
	// Format is pretty for people, json for programs, and auto for pretty where stdout is a
	// terminal. Default: auto.
	Format string `key:"format" default:"auto" oneof:"auto|pretty|json"`
}

func (*settings) Target() string { return "stdout" }

// Opener makes the one sink of the process, which each term gets again.
func (s *settings) Opener(o events.SinkOptions) func(context.Context) (events.Sink, error) {
	sink := New(o.Stdout)
	if s.Format == "pretty" || s.Format == "auto" && o.Terminal {
		sink = NewPretty(o.Stdout)
	}
	return func(context.Context) (events.Sink, error) { return sink, nil }
}

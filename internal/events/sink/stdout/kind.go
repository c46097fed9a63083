package stdout

import (
	"context"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/kind"
)

// Kind is the kind of sink that is of type stdout in the configuration.
var Kind = kind.Kind[events.SinkSettings]{Name: "stdout", Settings: func() events.SinkSettings { return new(settings) }}

type settings struct {
	// Format is pretty for people, json for programs, and auto for pretty where stdout is a
	// terminal. Default: auto.
	Format string `key:"format" default:"auto" oneof:"auto|pretty|json"`
}

func (*settings) Target() (key, place string) { return "type", "stdout" }

func (*settings) Check(field.Report) {}

func (*settings) Probe(context.Context) []kind.Finding { return nil }

// Opener makes the one sink of the process, which each term gets again.
func (s *settings) Opener(o events.SinkOptions) func(context.Context) (events.Sink, error) {
	sink := New(o.Stdout)
	if s.Format == "pretty" || s.Format == "auto" && o.Terminal {
		sink = NewPretty(o.Stdout)
	}
	return func(context.Context) (events.Sink, error) { return sink, nil }
}

package stdout

import (
	"context"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/sink"
)

// Kind is the kind of sink that is of type stdout in the configuration.
var Kind = kind.Kind[sink.Settings]{Name: "stdout", Settings: func() sink.Settings { return new(settings) }}

type settings struct {
	// Format is pretty for people, json for programs, and auto for pretty where stdout is a
	// terminal. Default: auto.
	Format string `key:"format" default:"auto" oneof:"auto|pretty|json"`
}

func (*settings) Target() (key, place string) { return "type", "stdout" }

func (*settings) Check(field.Report) {}

// Batch is what one write is worth.
func (*settings) Batch() int { return 500 }

func (*settings) Probe(context.Context) []kind.Finding { return nil }

// Opener makes the one sink of the process, which each term gets again.
func (s *settings) Opener(o sink.Options) func(context.Context, sink.Term) (sink.Sink, error) {
	screen := New(o.Stdout)
	if s.Format == "pretty" || s.Format == "auto" && o.Terminal {
		screen = NewPretty(o.Stdout)
	}
	return func(context.Context, sink.Term) (sink.Sink, error) { return screen, nil }
}

package file

import (
	"context"
	"path/filepath"

	"github.com/observerd/observerd/internal/events"
)

// Kind is the kind of sink that is of type file in the configuration.
var Kind = events.SinkKind{Name: "file", Settings: func() events.SinkSettings { return new(settings) }}

type settings struct {
	// Path is the file to which events are appended as JSON lines; a relative one
	// starts at the working directory of the process.
	Path string `key:"path" shown:"required for file" required:"true" unit:"file name" written:"true"`
}

func (s *settings) Target() string {
	path, err := filepath.Abs(s.Path)
	if err != nil {
		path = filepath.Clean(s.Path)
	}
	return "file " + path
}

// Opener remembers what the largest batch of another node may repeat, too.
func (s *settings) Opener(o events.SinkOptions) func(context.Context) (events.Sink, error) {
	opts := Options{Path: s.Path, Remember: 2 * max(o.BatchSize, 10_000), Logger: o.Logger}
	return func(ctx context.Context) (events.Sink, error) {
		sink, err := Open(ctx, opts)
		if err != nil {
			return nil, err
		}
		if last, ok := sink.Last(); ok {
			o.Ended(ctx, last)
		}
		return sink, nil
	}
}

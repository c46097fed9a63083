package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/sink"
)

// Kind is the kind of sink that is of type file in the configuration.
var Kind = kind.Kind[sink.Settings]{Name: "file", Settings: func() sink.Settings { return new(settings) }}

type settings struct {
	// Path is the file to which events are appended as JSON lines; a relative one
	// starts at the working directory of the process.
	Path string `key:"path" shown:"required for file" required:"true" unit:"file name" written:"true"`
	// CreateFolder creates the folder of Path, and those above it, where they are missing.
	// Default: false, a missing folder is a mistake.
	CreateFolder bool `key:"create-folder" default:"false"`
}

// Missing is the error of a folder that has to be created first; nil where there is none.
func (s *settings) Missing() error {
	if s.CreateFolder {
		return nil
	}
	return missingFolder(s.Path)
}

func (s *settings) Target() (key, place string) {
	path, err := filepath.Abs(s.Path)
	if err != nil {
		path = filepath.Clean(s.Path)
	}
	return "path", "file " + path
}

func (*settings) Check(field.Report) {}

// Batch is as much as one sync of the disk is worth.
func (*settings) Batch() int { return 500 }

// Probe finds what [Open] would refuse for ever: no file, and the file of another program.
func (s *settings) Probe(context.Context) []kind.Finding {
	info, err := os.Stat(s.Path)
	switch {
	case err != nil:
		return nil // It is made when it is needed; whether it may be is asked for each file that is written.
	case !info.Mode().IsRegular():
		return []kind.Finding{{Err: fmt.Errorf("%s is not a regular file; name another one", s.Path)}}
	}
	f, err := os.Open(s.Path)
	if err != nil {
		return nil
	}
	defer f.Close() // It was only read.
	if _, err := readTail(f, info.Size()); errors.Is(err, ErrForeign) {
		return []kind.Finding{{Err: fmt.Errorf("%s: %w", s.Path, err)}}
	}
	return nil
}

// Opener remembers what the largest batch of another node may repeat, too.
func (s *settings) Opener(o sink.Options) func(context.Context, sink.Term) (sink.Sink, error) {
	opts := Options{Path: s.Path, CreateFolder: s.CreateFolder, Remember: 2 * max(o.BatchSize, 10_000), Logger: o.Logger}
	return func(ctx context.Context, _ sink.Term) (sink.Sink, error) { return Open(ctx, opts) }
}

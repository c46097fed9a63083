package file

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
)

var (
	// ErrHeld reports that another process, or another sink of this one,
	// writes to the file.
	ErrHeld = errors.New("the file is held by another process")
	// ErrForeign reports a file that does not end with a line that observerd
	// wrote, and is not empty: it may be another's, and a piece of a line at its
	// end would spoil the events behind it.
	ErrForeign = errors.New("it does not end with an event of observerd, so it may be the file of another program, and nothing is appended; " +
		"name another file in the sink's path, or move this one away, or, if it is the sink's own, remove the lines behind its last event")
	// errMoved reports that the path leads to another file, or to none.
	errMoved = errors.New("the file was moved or removed")
)

// Options say where events are written to.
type Options struct {
	// Path is the file. It is created (mode 0640) where it is missing. Required.
	Path string
	// CreateFolder creates the file's folder, and those above it (0750), where they are
	// missing; false refuses such a path.
	CreateFolder bool
	// Remember is how many events, of the last that were written, are
	// recognised when they are delivered again: at least twice the batch size
	// of the relay. 0: 20,000, which take about 2 MB of memory.
	Remember int
	// Logger is told of repairs and rotations. nil: no logger is.
	Logger *slog.Logger
}

const defaultRemember = 20_000

// Sink appends to one file. It is a [sink.Sink].
type Sink struct {
	path   string
	create bool // see [Options.CreateFolder]
	log    *slog.Logger
	f      *os.File
	// end is where the last line ends that is durable; -1 until the file was
	// inspected.
	end int64
	// uncut says that lines behind end have failed and could not be cut off.
	uncut bool
	// halted is the error of a file that became shorter. Its successor has none.
	halted error
	recent memory
	// last is the event with which the file ended when it was inspected, without its
	// data; nil for none.
	last *events.Event
	// write and sync are those of the file; tests have them fail, or rotate the
	// file first.
	write func(*os.File, []byte) (int, error)
	sync  func(*os.File) error

	text  []byte
	ends  []int
	fresh map[uuid.UUID]bool
}

// Open opens and locks the file, repairs its end and reads the ids of the last
// events. The error is [ErrHeld] while another process has the file open, and
// [ErrForeign] for a file that must not be appended to.
func Open(ctx context.Context, opts Options) (*Sink, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	s := &Sink{
		path:   opts.Path,
		create: opts.CreateFolder,
		log:    cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)).With("path", opts.Path),
		recent: memory{limit: cmp.Or(opts.Remember, defaultRemember), known: make(map[uuid.UUID]bool)},
		write:  (*os.File).Write,
		sync:   (*os.File).Sync,
		fresh:  make(map[uuid.UUID]bool),
	}
	if err := s.reopen(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Last implements [sink.Ended]: the stream, the sequence and the id of the event with which
// the file ended when it was opened.
func (s *Sink) Last() (events.Event, bool) {
	if s.last == nil {
		return events.Event{}, false
	}
	return *s.last, true
}

// Close unlocks the file and closes it.
func (s *Sink) Close() error {
	if s.f == nil {
		return nil
	}
	err := letGo(s.f)
	s.f = nil
	return err
}

var _ sink.Ended = (*Sink)(nil)

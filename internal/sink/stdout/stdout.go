// Package stdout writes events as lines to a stream that is read at this moment: a
// terminal, a pipe, a log collector. Programs are given JSON, people aligned columns.
package stdout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/sink"
)

// ErrClosed reports that the stream has no reader any more.
var ErrClosed = errors.New("the reader of the output has gone away")

// maxUnreported bounds what is remembered of writes that outlasted their
// Deliver: events that another node has delivered since are never asked for.
const maxUnreported = 20_000

// Sink writes a batch with one Write, or with several where it is large. An
// event is stored once the writer has taken its whole line; what happens to
// the line behind the writer is not noticed, so this sink is for eyes and
// pipes.
//
// There is one Sink for a writer, for the life of the process: it remembers
// where a line broke off and what is still being written, so that lines stay
// whole from one term of a relay to the next.
type Sink struct {
	w io.Writer
	// line appends an event, without a line end.
	line func(dst []byte, e *events.Event) []byte
	buf  []byte
	// torn is the line of which the writer took only a part.
	torn tornLine
	// writing is the write that outlasted its Deliver; nil when there is none.
	writing *write
	// unreported are the events that such writes have stored since.
	unreported map[uuid.UUID]bool
}

// New returns a sink that writes JSON to w and never closes it.
func New(w io.Writer) *Sink { return newSink(w, events.AppendJSON) }

// NewPretty returns a sink that writes lines for people, see [events.Lines].
func NewPretty(w io.Writer) *Sink { return newSink(w, new(events.Lines).Append) }

func newSink(w io.Writer, line func([]byte, *events.Event) []byte) *Sink {
	return &Sink{w: w, line: line, unreported: make(map[uuid.UUID]bool)}
}

// Close implements [sink.Sink]. The writer belongs to the process, so there
// is nothing to let go of.
func (s *Sink) Close() error { return nil }

// Deliver implements [sink.Sink]. Nothing can interrupt a write to a reader
// that stands still: when ctx ends, the write goes on by itself, and the next
// Deliver waits for it before it writes anything else.
func (s *Sink) Deliver(ctx context.Context, batch []events.Event) (sink.Result, error) {
	if err := context.Cause(ctx); err != nil {
		return sink.Result{}, err
	}
	if s.writing != nil {
		if err := s.catchUp(ctx); err != nil {
			return sink.Result{}, err
		}
	}
	if reported := s.report(batch); len(reported.Stored) > 0 {
		return reported, nil
	}
	s.writing = s.start(batch)
	if err := s.wait(ctx); err != nil {
		return sink.Result{}, err
	}
	ids, err := s.finish()
	return sink.StoredAll(batch[:len(ids)]), err
}

// catchUp waits for a write that outlasted its Deliver, and remembers what it
// stored until the relay asks for it.
func (s *Sink) catchUp(ctx context.Context) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	ids, err := s.finish()
	if len(s.unreported)+len(ids) > maxUnreported {
		clear(s.unreported)
	}
	for _, id := range ids {
		s.unreported[id] = true
	}
	return err
}

// report returns which events of the batch are stored already, and forgets them. Of a
// stream whose next event is not, it reports nothing.
func (s *Sink) report(batch []events.Event) sink.Result {
	r := sink.StoredOf(batch, func(i int) bool { return s.unreported[batch[i].ID] })
	stored := fn.By(r.Stored, func(p events.Position) string { return p.Stream })
	for i := range batch {
		if batch[i].Seq <= stored[batch[i].Stream].Seq {
			delete(s.unreported, batch[i].ID)
		}
	}
	return r
}

func (s *Sink) wait(ctx context.Context) error {
	select {
	case <-s.writing.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("write events, which are not read: %w", context.Cause(ctx))
	}
}

// maxText bounds the memory of one write; it still takes at least one event.
const maxText = 1 << 20

// write is one Write, carried out beside the caller.
type write struct {
	text []byte
	ids  []uuid.UUID
	ends []int // where the line of each id ends in text
	done chan struct{}
	n    int
	err  error
}

// tornLine is what is missing of an event's line; rest is nil when no line is
// torn.
type tornLine struct {
	id   uuid.UUID
	rest []byte
}

// start begins to write the batch, as far as it fits.
func (s *Sink) start(batch []events.Event) *write {
	w := &write{text: s.buf[:0], done: make(chan struct{})}
	continued := s.torn.rest != nil && batch[0].ID == s.torn.id
	switch {
	case continued:
		w.text = append(w.text, s.torn.rest...)
	case s.torn.rest != nil: // Other events come now; keep them apart.
		w.text = append(w.text, '\n')
		if len(s.torn.rest) == 1 {
			s.unreported[s.torn.id] = true // The line break was all that it lacked.
		}
	}
	for i := range batch {
		if i > 0 || !continued {
			w.text = append(s.line(w.text, &batch[i]), '\n')
		}
		w.ids = append(w.ids, batch[i].ID)
		w.ends = append(w.ends, len(w.text))
		if len(w.text) > maxText {
			break
		}
	}
	go func() {
		defer close(w.done)
		w.n, w.err = s.w.Write(w.text)
	}()
	return w
}

// finish takes the result of a write that is done: the events whose whole
// lines were taken, and why there are no more.
func (s *Sink) finish() ([]uuid.UUID, error) {
	w := s.writing
	s.writing = nil
	whole, begin := 0, 0
	for whole < len(w.ends) && w.ends[whole] <= w.n {
		begin = w.ends[whole]
		whole++
	}
	switch {
	case w.n > begin:
		s.torn = tornLine{w.ids[whole], append([]byte(nil), w.text[w.n:w.ends[whole]]...)}
	case w.n > 0:
		s.torn = tornLine{}
	}
	if cap(w.text) <= 2*maxText {
		s.buf = w.text
	}
	return w.ids[:whole], w.problem()
}

func (w *write) problem() error {
	switch {
	case errors.Is(w.err, syscall.EPIPE), errors.Is(w.err, io.ErrClosedPipe):
		return fmt.Errorf("write events: %w", ErrClosed)
	case w.err != nil:
		return fmt.Errorf("write events: %w", w.err)
	case w.n < len(w.text):
		return fmt.Errorf("write events: %w", io.ErrShortWrite)
	}
	return nil
}

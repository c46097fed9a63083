package stdout

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
)

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
			s.unreported[s.torn.id] = struct{}{} // The line break was all that it lacked.
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

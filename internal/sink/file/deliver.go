package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
)

// maxText bounds the memory of one write; it still takes at least one event.
const maxText = 1 << 20

// Deliver implements [sink.Sink]. It appends the events with one write and
// one sync; what is large it takes in parts. Events that the file holds
// already are skipped and count as stored. After an error, a full disk for
// one, the file ends behind the last event that was stored. Events that were
// written to a file that was moved away meanwhile are written to its successor,
// too: the program that moved it may have read it before. The error is
// [sink.ErrHalted] when the file has become shorter.
func (s *Sink) Deliver(ctx context.Context, batch []events.Event) (sink.Result, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return sink.Result{}, err
		}
		if err := s.ready(); err != nil {
			return sink.Result{}, err
		}
		s.encode(batch)
		stored, err := s.store(batch)
		if !errors.Is(err, errMoved) {
			return sink.StoredAll(batch[:stored]), err
		}
		s.log.Info("File was moved while events were written, writing them again to its successor")
	}
}

// store appends the text and remembers what of the batch is stored by that.
func (s *Sink) store(batch []events.Event) (int, error) {
	durable, err := s.append(s.text)
	stored := 0
	for stored < len(s.ends) && s.ends[stored] <= durable {
		s.recent.add(batch[stored].ID)
		stored++
	}
	if cap(s.text) > 2*maxText {
		s.text = nil // One huge event should not take its memory for ever.
	}
	return stored, err
}

// encode sets text to the lines of the events that the file does not hold, and
// ends to where each event's line ends in it.
func (s *Sink) encode(batch []events.Event) {
	s.text, s.ends = s.text[:0], s.ends[:0]
	clear(s.fresh)
	for i := range batch {
		if id := batch[i].ID; !s.fresh[id] && !s.recent.known[id] {
			s.fresh[id] = true
			s.text = append(events.AppendJSON(s.text, &batch[i]), '\n')
		}
		s.ends = append(s.ends, len(s.text))
		if len(s.text) > maxText {
			return
		}
	}
}

// append writes the lines and returns how many of their bytes are durable, in
// the file that the path leads to: whole lines, behind which the file ends.
func (s *Sink) append(text []byte) (durable int, err error) {
	if len(text) == 0 {
		return 0, nil
	}
	n, err := s.write(s.f, text)
	if err != nil {
		err = fmt.Errorf("append events: %w", err)
		n = bytes.LastIndexByte(text[:n], '\n') + 1
		if cutErr := s.cutBack(n); cutErr != nil {
			return 0, errors.Join(err, cutErr)
		}
	}
	if n == 0 {
		return 0, err
	}
	if syncErr := s.sync(s.f); syncErr != nil {
		// The kernel may have dropped what it could not write, and report
		// success the next time: these lines are written anew.
		return 0, errors.Join(err, fmt.Errorf("sync file: %w", syncErr), s.cutBack(0))
	}
	// A file that is renamed from now on has these lines in it. A file that was
	// renamed before may have been compressed without them.
	if _, lookErr := s.look(s.end + int64(n)); lookErr != nil {
		return 0, errors.Join(err, lookErr)
	}
	s.end += int64(n)
	return n, err
}

// cutBack keeps the first n bytes behind end, or, while it fails, none.
func (s *Sink) cutBack(n int) error {
	s.uncut = true
	return s.cut(s.end + int64(n))
}

// memory knows the ids that were added last, up to a limit.
type memory struct {
	limit int
	ring  []uuid.UUID
	next  int // the place of the oldest id once the ring is full
	known map[uuid.UUID]bool
}

func (m *memory) add(id uuid.UUID) {
	if m.known[id] {
		return
	}
	m.known[id] = true
	if len(m.ring) < m.limit {
		m.ring = append(m.ring, id)
		return
	}
	delete(m.known, m.ring[m.next])
	m.ring[m.next] = id
	m.next = (m.next + 1) % m.limit
}

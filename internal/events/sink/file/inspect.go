package file

import (
	"errors"
	"fmt"

	"github.com/observerd/observerd/internal/events"
)

// ready brings the file into a state in which a batch can be appended: cut
// back to its last good line, the one that the path names, and inspected.
func (s *Sink) ready() error {
	if s.f == nil {
		return s.reopen()
	}
	if s.uncut {
		if err := s.cut(s.end); err != nil {
			return err
		}
	}
	size, err := s.look(s.end)
	switch {
	case errors.Is(err, errMoved):
		s.log.Info("File was moved or removed, beginning a new one")
		return s.reopen()
	case err != nil:
		return err
	case size != s.end:
		return s.inspect()
	}
	return nil
}

// look returns the size of the file, which is to hold what was written, up to
// end. The error is errMoved when the path does not lead to it any more, and
// [events.ErrHalted] when it has become shorter.
func (s *Sink) look(end int64) (size int64, err error) {
	info, err := s.f.Stat()
	if err != nil {
		return 0, fmt.Errorf("look at file: %w", err)
	}
	current, err := names(s.path, info)
	switch {
	case err != nil:
		return 0, err
	case !current:
		return 0, errMoved
	case s.halted == nil && info.Size() < end:
		// What was cut away may have been copied before its last lines were there.
		s.halted = fmt.Errorf("%w: %s became shorter, from %d to %d bytes, and events may be lost; copytruncate of logrotate does that: "+
			"rotate by renaming instead (see docs/operations.md), then move this file away or restart the node",
			events.ErrHalted, s.path, end, info.Size())
	}
	return info.Size(), s.halted
}

// reopen opens the file that the path names now. The one that was open stays
// so until its successor is locked.
func (s *Sink) reopen() error {
	f, err := openLocked(s.path)
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		s.log.Warn("Error closing file", "err", err) // It was synced after each batch.
	}
	s.f, s.end, s.uncut, s.halted = f, -1, false, nil
	return s.inspect()
}

// inspect repairs the end of the file and remembers the events in it.
func (s *Sink) inspect() error {
	s.end = -1 // Inspect again if this fails.
	info, err := s.f.Stat()
	if err != nil {
		return fmt.Errorf("look at file: %w", err)
	}
	size := info.Size()
	t, err := readTail(s.f, size)
	if err != nil {
		return fmt.Errorf("inspect file %s: %w", s.path, err)
	}
	end, err := s.repair(t, size)
	if err != nil {
		return err
	}
	if err := s.sync(s.f); err != nil {
		return fmt.Errorf("sync file: %w", err)
	}
	for _, id := range t.ids {
		s.recent.add(id)
	}
	if last, err := events.Decode(t.last); err == nil {
		s.last = &events.Event{Stream: last.Stream, Seq: last.Seq, ID: last.ID}
	}
	s.end = end
	return nil
}

// repair makes the file end with a whole line, and returns where that is.
func (s *Sink) repair(t tail, size int64) (end int64, err error) {
	if t.damaged > 0 {
		s.log.Warn("Damaged events in the file are left alone", "lines", t.damaged)
	}
	if t.keep < size {
		if err := s.cut(t.keep); err != nil {
			return 0, err
		}
		s.log.Warn("Torn end of the file was cut off", "bytes", size-t.keep)
	}
	if !t.unfinished {
		return t.keep, nil
	}
	if _, err := s.write(s.f, []byte{'\n'}); err != nil {
		return 0, fmt.Errorf("finish the last line: %w", err)
	}
	s.log.Warn("Last line of the file was finished")
	return t.keep + 1, nil
}

// cut cuts the file off at that offset; one that ends before is not filled up
// with zeros. While it fails, nothing is appended.
func (s *Sink) cut(at int64) error {
	info, err := s.f.Stat()
	if err == nil && info.Size() > at {
		err = s.f.Truncate(at)
	}
	if err != nil {
		return fmt.Errorf("cut file: %w", err)
	}
	s.uncut = false
	return nil
}

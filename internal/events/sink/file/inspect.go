package file

import "fmt"

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
	info, err := s.f.Stat()
	if err != nil {
		return fmt.Errorf("look at file: %w", err)
	}
	current, err := names(s.path, info)
	if err != nil {
		return err
	}
	if !current {
		s.log.Info("File was moved or removed, beginning a new one")
		return s.reopen()
	}
	if info.Size() != s.end {
		return s.inspect()
	}
	return nil
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
	s.f, s.end, s.uncut = f, -1, false
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
		return err
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
	if _, err := s.f.Write([]byte{'\n'}); err != nil {
		return 0, fmt.Errorf("finish the last line: %w", err)
	}
	s.log.Warn("Last line of the file was finished")
	return t.keep + 1, nil
}

// cut cuts the file off at that offset. While that fails, nothing is appended.
func (s *Sink) cut(at int64) error {
	if err := s.f.Truncate(at); err != nil {
		return fmt.Errorf("cut file: %w", err)
	}
	s.uncut = false
	return nil
}

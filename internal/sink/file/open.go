package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
)

// openLocked returns the file at the path, created if it is missing, and
// locked until it is closed.
func openLocked(path string, createFolder bool) (*os.File, error) {
	if err := missingFolder(path); err != nil && !createFolder {
		return nil, err
	}
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	// A rotation between opening and locking leaves us with the lock on a file
	// that has another name by now; the next attempt gets its successor.
	for range 10 {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o640)
		if err != nil {
			return nil, fmt.Errorf("open file: %w", err)
		}
		current, err := take(f, path)
		if current && err == nil {
			return f, nil
		}
		_ = letGo(f) // Nothing was written through it.
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("open file %s: it is replaced over and over", path)
}

// take locks the file and makes its name durable. It reports false when the
// path names another file by now.
func take(f *os.File, path string) (current bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("look at file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("open file: %s is not a regular file", path)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, fmt.Errorf("lock file %s: %w", path, ErrHeld)
	}
	if err != nil {
		return false, fmt.Errorf("lock file %s: %w", path, err)
	}
	if current, err = names(path, info); err != nil || !current {
		return false, err
	}
	target, err := filepath.EvalSymlinks(path) // A link has the name in another folder.
	if err != nil {
		return false, fmt.Errorf("look at file: %w", err)
	}
	return true, syncDir(filepath.Dir(target))
}

// names reports whether the path leads to that file.
func names(path string, file fs.FileInfo) (bool, error) {
	found, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at file: %w", err)
	}
	return os.SameFile(found, file), nil
}

// missingFolder is the error of a path whose folder does not exist.
func missingFolder(path string) error {
	folder := filepath.Dir(path)
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		return nil // What else is wrong is found when the file is opened.
	}
	return fmt.Errorf("the folder %s does not exist; create it, or set create-folder: true", folder)
}

// makeDir creates a folder and those above it, and makes each durable, or a
// crash could take the file away together with its folder.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := makeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open folder: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// letGo unlocks the file and closes it. Closing alone leaves the lock in place
// for as long as a process that is being started has a copy of the descriptor.
func letGo(f *os.File) error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}

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
// [sink.ErrHalted] when it has become shorter.
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
			sink.ErrHalted, s.path, end, info.Size())
	}
	return info.Size(), s.halted
}

// reopen opens the file that the path names now. The one that was open stays
// so until its successor is locked.
func (s *Sink) reopen() error {
	f, err := openLocked(s.path, s.create)
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
		s.log.Warn("Damaged events in the file stay as they are", "lines", t.damaged)
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

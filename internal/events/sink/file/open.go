package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openLocked returns the file at the path, created if it is missing, and
// locked until it is closed.
func openLocked(path string) (*os.File, error) {
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

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// workdirPrefix begins the name of each folder that holds a cluster.
const workdirPrefix = "observerd-pgtest-"

// workdir is the one folder that a cluster writes to.
type workdir struct {
	path string
	// lock is held for as long as this process uses the folder. The kernel
	// frees it when the process dies, which is how sweep knows a leftover.
	lock *os.File
}

func (w workdir) data() string { return filepath.Join(w.path, "data") }
func (w workdir) log() string  { return filepath.Join(w.path, "server.log") }

// newWorkdir makes a folder below parent, or below the temporary directory
// when parent is empty, that the account may use.
func newWorkdir(parent string, who account) (workdir, error) {
	parent, err := chooseParent(parent, who)
	if err != nil {
		return workdir{}, err
	}
	sweep(parent)
	path, err := os.MkdirTemp(parent, workdirPrefix)
	if err != nil {
		return workdir{}, fmt.Errorf("make a folder for the cluster: %w", err)
	}
	w := workdir{path: path}
	if err := w.prepare(who); err != nil {
		return workdir{}, errors.Join(fmt.Errorf("prepare the cluster's folder: %w", err), w.remove())
	}
	return w, nil
}

func (w *workdir) prepare(who account) error {
	lock, err := tryLockFile(filepath.Join(w.path, "lock"))
	if err != nil {
		return err
	}
	w.lock = lock
	if err := os.Mkdir(w.data(), 0o700); err != nil {
		return err
	}
	if err := who.own(w.data()); err != nil {
		return err
	}
	// The server walks through this folder; only what is below it is private.
	return os.Chmod(w.path, 0o711)
}

func (w workdir) remove() error {
	err := os.RemoveAll(w.path)
	if w.lock != nil {
		err = errors.Join(err, w.lock.Close())
	}
	return err
}

func chooseParent(parent string, who account) (string, error) {
	if parent != "" {
		if !who.reaches(parent) {
			return "", fmt.Errorf("the folder %s cannot be entered by the user that runs PostgreSQL", parent)
		}
		return parent, nil
	}
	for _, dir := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if who.reaches(dir) {
			return dir, nil
		}
	}
	return "", errors.New("no temporary folder that the user that runs PostgreSQL can enter")
}

// sweep removes the folders of runs that were killed. It is a courtesy: what
// cannot be removed, for example because it is another user's, stays.
func sweep(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, workdirPrefix+"*")) // The pattern is well formed.
	for _, dir := range dirs {
		if leftover(dir) {
			_ = removeSegment(filepath.Join(dir, "data"))
			_ = os.RemoveAll(dir)
		}
	}
}

// leftover reports whether dir belonged to a process of this user that is gone.
func leftover(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
		return false
	}
	// A new folder is not locked for an instant; a server whose tests have just
	// died is still on its way down.
	if time.Since(info.ModTime()) < time.Minute {
		return false
	}
	lock, err := tryLockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return false
	}
	defer lock.Close()
	return !serverAlive(filepath.Join(dir, "data"))
}

// tryLockFile opens path and locks it for this process, or fails at once.
func tryLockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return file, nil
}

// lockFile waits until path is free, then locks it.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		file, err := tryLockFile(path)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return file, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

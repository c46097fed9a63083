package servertest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Workdir is the one folder that a server writes to.
type Workdir struct {
	// Path is the folder.
	Path string
	// lock is held for as long as this process uses the folder. The kernel
	// frees it when the process dies, which is how sweep knows a leftover.
	lock *os.File
}

// Data is the folder of the server's own files.
func (w Workdir) Data() string { return filepath.Join(w.Path, "data") }

// Log is the file of what the server says.
func (w Workdir) Log() string { return filepath.Join(w.Path, "server.log") }

// LogTail returns the last lines of the server's log.
func (w Workdir) LogTail() string {
	const lines = 30
	text, err := os.ReadFile(w.Log())
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// NewWorkdir makes a folder below parent, or below the temporary directory
// when parent is empty, that the account may use. It removes what killed runs
// have left there.
func NewWorkdir(kind Kind, parent string, who Account) (Workdir, error) {
	parent, err := chooseParent(parent, who)
	if err != nil {
		return Workdir{}, err
	}
	kind.sweep(parent)
	kind.sweepMemory()
	path, err := os.MkdirTemp(parent, unlocked+kind.Prefix)
	if err != nil {
		return Workdir{}, fmt.Errorf("make a folder for the server: %w", err)
	}
	w := Workdir{Path: path}
	if err := w.prepare(who); err != nil {
		return Workdir{}, errors.Join(fmt.Errorf("prepare the server's folder: %w", err), w.Remove())
	}
	return w, nil
}

// unlocked begins the name of a folder that is not locked yet: sweep would take it for a
// leftover.
const unlocked = "new-"

func (w *Workdir) prepare(who Account) error {
	lock, err := tryLockFile(filepath.Join(w.Path, "lock"))
	if err != nil {
		return err
	}
	w.lock = lock
	parent, name := filepath.Split(w.Path)
	if err := os.Rename(w.Path, filepath.Join(parent, strings.TrimPrefix(name, unlocked))); err != nil {
		return err
	}
	w.Path = filepath.Join(parent, strings.TrimPrefix(name, unlocked))
	if err := os.Mkdir(w.Data(), 0o700); err != nil {
		return err
	}
	if err := who.Own(w.Data()); err != nil {
		return err
	}
	// The server walks through this folder; only what is below it is private.
	return os.Chmod(w.Path, 0o711)
}

// Remove removes the folder and all that is in it.
func (w Workdir) Remove() error {
	err := os.RemoveAll(w.Path)
	if w.lock != nil {
		err = errors.Join(err, w.lock.Close())
	}
	return err
}

func chooseParent(parent string, who Account) (string, error) {
	if parent != "" {
		if !who.reaches(parent) {
			return "", fmt.Errorf("the folder %s cannot be entered by the user that runs the server", parent)
		}
		return parent, nil
	}
	for _, dir := range parents() {
		if who.reaches(dir) {
			return dir, nil
		}
	}
	return "", errors.New("no temporary folder that the user that runs the server can enter")
}

// parents are the folders in which those of servers are made by default.
func parents() []string { return []string{os.TempDir(), "/tmp", "/var/tmp"} }

// Sweep removes what runs that were killed have left in the default folders and in memory.
func (k Kind) Sweep() {
	for _, parent := range parents() {
		k.sweep(parent)
	}
	k.sweepMemory()
}

// sweep removes the folders of runs that were killed. It is a courtesy: what
// cannot be removed, for example because it is another user's, stays.
func (k Kind) sweep(parent string) {
	for _, prefix := range []string{k.Prefix, unlocked + k.Prefix} {
		dirs, _ := filepath.Glob(filepath.Join(parent, prefix+"*")) // The pattern is well formed.
		for _, dir := range dirs {
			if !k.leftover(dir) {
				continue
			}
			_ = k.free(filepath.Join(dir, "data"))
			_ = os.RemoveAll(dir)
		}
	}
}

// leftover reports whether dir belonged to a process of this user that is gone, and its
// server too.
func (k Kind) leftover(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
		return false
	}
	if strings.HasPrefix(filepath.Base(dir), unlocked) && time.Since(info.ModTime()) < time.Minute {
		return false // It is about to get its lock.
	}
	// It is not made here: whoever removes the folder meanwhile would find it not empty.
	lock, err := tryLock(filepath.Join(dir, "lock"), os.O_RDWR)
	switch {
	case errors.Is(err, fs.ErrNotExist) && time.Since(info.ModTime()) > time.Minute:
	case err != nil:
		return false
	default:
		defer lock.Close()
	}
	return !k.alive(filepath.Join(dir, "data"))
}

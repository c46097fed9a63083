package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/observerd/observerd/internal/wait"
)

// ownerOnly is the mode of the socket: users with write permission may connect.
const ownerOnly = 0o600

// probeTimeout is how long a live process may take to accept, and bindTimeout how long
// another process that starts may take to bind.
const (
	probeTimeout = 2 * time.Second
	bindTimeout  = 5 * time.Second
)

// openSocket listens on the Unix socket, if there is one.
func (s *Server) openSocket(ctx context.Context) error {
	path := s.options.Socket
	if path == "" {
		return nil
	}
	socket, info, err := listenSocket(ctx, path)
	if err != nil {
		return explainSocket(path, err)
	}
	mux := s.pages()
	s.profiles(mux)
	l := &listener{Listener: socket, http: s.newServer(headers(readOnly(mux)))}
	l.serve = func() error { return l.http.Serve(socket) }
	l.remove = sync.OnceValue(func() error { return removeSocket(path, info) })
	s.listeners = append(s.listeners, l)
	return nil
}

// listenSocket makes the socket and replaces one that a dead process has left. It
// locks the folder meanwhile: of two processes that start together, each would
// otherwise remove the socket that the other has just made.
func listenSocket(ctx context.Context, path string) (net.Listener, fs.FileInfo, error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, nil, err
	}
	unlock, err := lockFolder(ctx, folder)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	if err := clearSocket(ctx, path); err != nil {
		return nil, nil, err
	}
	return bindSocket(ctx, path)
}

// clearSocket removes a socket that no process serves.
func clearSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return syscall.ENOTSOCK
	}
	conn, err := (&net.Dialer{Timeout: probeTimeout}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close() // It was only a probe.
		return syscall.EADDRINUSE
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission), ctx.Err() != nil:
		return err
	case !errors.Is(err, syscall.ECONNREFUSED): // Busy, or of another kind: a process has it open.
		return errors.Join(syscall.EADDRINUSE, err)
	}
	return os.Remove(path)
}

// bindSocket makes the socket with its mode, in one step where the system can.
func bindSocket(ctx context.Context, path string) (net.Listener, fs.FileInfo, error) {
	config := net.ListenConfig{Control: closeToOthers}
	listener, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, nil, err
	}
	if unix, ok := listener.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false) // See removeSocket.
	}
	err = os.Chmod(path, ownerOnly)
	info, statErr := os.Lstat(path)
	if err := errors.Join(err, statErr); err != nil {
		return nil, nil, errors.Join(err, listener.Close(), os.Remove(path))
	}
	return listener, info, nil
}

// removeSocket removes the socket while the process still listens on it, so that no
// other process takes it for stale meanwhile, and only if it is still ours: it may
// have been removed by hand, and replaced by another process.
func removeSocket(path string, ours fs.FileInfo) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !os.SameFile(info, ours):
		return nil
	}
	return os.Remove(path)
}

// explainSocket says what to do about a socket that cannot be made.
func explainSocket(path string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return settingError{fmt.Errorf("http.socket: another process serves %s; stop it, or use another path for this node: %w", path, err)}
	case errors.Is(err, syscall.ENOTSOCK):
		return settingError{fmt.Errorf("http.socket: %s is not a socket; use another path, or remove it: %w", path, err)}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("http.socket: this user may not make or replace %s; change owner or mode of its folder, or use another path: %w", path, err)
	}
	return fmt.Errorf("http.socket: %s: %w", path, err)
}

// lockFolder waits until no other process makes a socket in the folder. The lock is
// on the folder itself, so that no lock file is left in it. On file systems without
// such locks it returns at once.
func lockFolder(ctx context.Context, folder string) (unlock func(), err error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, bindTimeout)
	defer cancel()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return func() { _ = f.Close() }, nil // Close releases the lock.
		}
		if !wait.For(ctx, 20*time.Millisecond) {
			_ = f.Close()
			return nil, fmt.Errorf("another process has kept its folder locked for %v: %w", bindTimeout, context.Cause(ctx))
		}
	}
}

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
)

// ownerOnly is the mode of the socket: whoever may write it may connect.
const ownerOnly = 0o600

// probeTimeout is how long a live process may take to accept, and patience how
// long another one that starts may take to bind.
const (
	probeTimeout = 2 * time.Second
	patience     = 5 * time.Second
)

// openSocket listens on the Unix socket, if there is one.
func (s *Server) openSocket(ctx context.Context) error {
	path := s.options.Socket
	if path == "" {
		return nil
	}
	listener, info, err := listenSocket(ctx, path)
	if err != nil {
		return explainSocket(path, err)
	}
	d := &door{http: s.newServer(s.socketHandler()), listener: listener}
	d.serve = func() error { return d.http.Serve(listener) }
	d.remove = sync.OnceValue(func() error { return removeSocket(path, info) })
	s.doors = append(s.doors, d)
	return nil
}

// listenSocket makes the socket in the place of one that a dead process has
// left. One process at a time does so in a folder: two that start together
// would else each remove what the other has just made.
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

// clearSocket removes a socket that nobody serves.
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
		_ = conn.Close() // It was only a knock.
		return syscall.EADDRINUSE
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission), ctx.Err() != nil:
		return err
	case !errors.Is(err, syscall.ECONNREFUSED): // Busy, or of another kind: somebody has it open.
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

// removeSocket removes the socket while it is still listened on, so that nobody
// takes it for a stale one meanwhile, and only if it is still ours: somebody
// may have removed it by hand, and another process made its own.
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
		return settingError{fmt.Errorf("http.socket: another process serves %s; stop it, or write another path for this node: %w", path, err)}
	case errors.Is(err, syscall.ENOTSOCK):
		return settingError{fmt.Errorf("http.socket: %s is no socket; write another path, or remove it: %w", path, err)}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("http.socket: this user may not make or replace %s; change owner or mode of its folder, or write another path: %w", path, err)
	}
	return fmt.Errorf("http.socket: %s: %w", path, err)
}

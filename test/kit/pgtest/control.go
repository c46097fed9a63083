package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Mode says how a server is stopped, in PostgreSQL's own words.
type Mode syscall.Signal

// Two ways to stop a server in order; for the third see [Server.Kill].
const (
	// Fast rolls open transactions back and disconnects the clients.
	Fast = Mode(syscall.SIGINT)
	// Immediate quits at once; the next start recovers from the log.
	Immediate = Mode(syscall.SIGQUIT)
)

// Start starts a server that was stopped or killed, on the port that it had,
// and returns when it answers queries.
func (s *Server) Start(ctx context.Context) error {
	if s.Process != nil && s.Process.Running() {
		return errors.New("start PostgreSQL: it runs already")
	}
	// The server outlives ctx, which bounds its start alone.
	cmd := s.Command(context.WithoutCancel(ctx), syscall.SIGQUIT, filepath.Join(s.bindir, "postgres"), s.arguments()...)
	return s.Instance.Start(ctx, cmd, s.ping)
}

// arguments carry all settings, so that the files of the cluster stay as
// initdb wrote them and a test can still use ALTER SYSTEM for the rest.
func (s *Server) arguments() []string {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": "",     // A path in TMPDIR can be too long for a socket.
		"max_connections":         "1000", // For two packages at a time, with ten tests each, and for a hundred nodes.
		// Nothing outside of the cluster's folder: no file in /dev/shm.
		"dynamic_shared_memory_type": "mmap",
		"shared_preload_libraries":   "",
		"logging_collector":          "off",
		"log_line_prefix":            "%m [%p] %d ",
		"timezone":                   "UTC",
		"fsync":                      "on",
		// Tests of horizons leave prepared transactions open.
		"max_prepared_transactions": "20",
	}
	maps.Copy(settings, s.options.Settings)
	args := []string{"-D", s.Dir.Data(), "-p", strconv.Itoa(s.Port())}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

func (s *Server) ping(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// Stop stops the server and returns when it has ended; a server that does not
// run is left alone. It is killed when ctx ends first, which is an error.
func (s *Server) Stop(ctx context.Context, mode Mode) error {
	return s.Instance.Stop(ctx, syscall.Signal(mode))
}

// Kill ends the server and all its backends with SIGKILL, as a machine does
// that loses its power: nobody says good-bye, and no orphaned backend finishes
// what it was doing. Start recovers it. The logger alone, where there is one,
// may write down what it was told; it ends when nobody is left to tell it more.
func (s *Server) Kill(ctx context.Context) error {
	if s.Process == nil || !s.Process.Running() {
		return nil
	}
	pid := s.Process.Pid()
	// Stopped, it cannot give birth to a backend between our look and the kill.
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("kill PostgreSQL: %w", err)
	}
	backends := family(pid)
	for _, victim := range append(backends, pid) {
		if isLogger(victim) {
			continue
		}
		if err := syscall.Kill(victim, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill PostgreSQL: %w", err)
		}
	}
	if err := s.Process.Wait(ctx); err != nil {
		return fmt.Errorf("kill PostgreSQL: %w", err)
	}
	return vanished(ctx, backends)
}

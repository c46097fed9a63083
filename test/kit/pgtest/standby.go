package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/observerd/observerd/test/kit/servertest"
)

// Demote starts the server, which runs, anew as a standby of nobody: it can be
// read and not written, and is in recovery.
func (s *Server) Demote(ctx context.Context) error {
	if err := s.Stop(ctx, Fast); err != nil {
		return err
	}
	signal := filepath.Join(s.Dir.Data(), "standby.signal")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		return fmt.Errorf("make PostgreSQL a standby: %w", err)
	}
	if err := s.Who.Own(signal); err != nil {
		return fmt.Errorf("make PostgreSQL a standby: %w", err)
	}
	return s.Start(ctx)
}

// Standby gives a test a server that follows this one and answers queries that
// read. It is removed when the test ends. What this server has committed arrives
// there a moment later.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	return servertest.Give(t, "the standby of PostgreSQL", startTimeout, s.Follow)
}

// Follow makes a copy of this server and starts it as its standby, as
// [Server.Standby] does. The caller must Close it.
func (s *Server) Follow(ctx context.Context) (*Server, error) {
	instance, err := servertest.NewInstance(kind, s.options.Dir)
	if err != nil {
		return nil, err
	}
	standby := &Server{Instance: instance, bindir: s.bindir, options: s.options}
	if err = standby.copyOf(ctx, s); err == nil {
		err = standby.startAnywhere(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, standby.Close())
	}
	return standby, nil
}

// Rejoin makes the server, which does not run, a standby of another one, on the port
// that it had. What it held is gone.
func (s *Server) Rejoin(ctx context.Context, primary *Server) error {
	files, err := os.ReadDir(s.Dir.Data())
	for _, file := range files {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.Dir.Data(), file.Name())))
	}
	if err != nil {
		return fmt.Errorf("make PostgreSQL a standby: %w", err)
	}
	if err := s.copyOf(ctx, primary); err != nil {
		return err
	}
	return s.Start(ctx)
}

// copyOf fills the folder, which is empty, as that of a standby.
func (s *Server) copyOf(ctx context.Context, primary *Server) error {
	cmd := s.Command(ctx, syscall.SIGKILL, filepath.Join(s.bindir, "pg_basebackup"),
		"--host", "127.0.0.1", "--port", strconv.Itoa(primary.Port()), "--username", superuser, "--pgdata", s.Dir.Data(),
		"--write-recovery-conf", "--checkpoint", "fast", "--no-sync")
	if err := s.Dir.Prepare(cmd); err != nil {
		return fmt.Errorf("pg_basebackup: %w", err)
	}
	return nil
}

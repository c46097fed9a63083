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

	"github.com/observerd/observerd/internal/servertest"
)

// Demote starts the server, which runs, anew as a standby of nobody: it can be
// read and not written, and is in recovery.
func (s *Server) Demote(ctx context.Context) error {
	if err := s.Stop(ctx, Fast); err != nil {
		return err
	}
	signal := filepath.Join(s.dir.Data(), "standby.signal")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		return fmt.Errorf("make PostgreSQL a standby: %w", err)
	}
	if err := s.who.Own(signal); err != nil {
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
	dir, err := servertest.NewWorkdir(kind, s.options.Dir, s.who)
	if err != nil {
		return nil, err
	}
	standby := &Server{bindir: s.bindir, who: s.who, dir: dir, options: s.options}
	cmd := standby.command(ctx, "pg_basebackup", syscall.SIGKILL,
		"--host", "127.0.0.1", "--port", strconv.Itoa(s.port), "--username", superuser, "--pgdata", dir.Data(),
		"--write-recovery-conf", "--checkpoint", "fast", "--no-sync")
	if err := dir.Prepare(cmd); err != nil {
		return nil, errors.Join(fmt.Errorf("pg_basebackup: %w", err), standby.Close())
	}
	if err := standby.startAnywhere(ctx); err != nil {
		return nil, errors.Join(err, standby.Close())
	}
	return standby, nil
}

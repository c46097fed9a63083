package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// initialise makes the data folder. The superuser needs no password; the roles
// that tests make do, as they would elsewhere.
func (s *Server) initialise(ctx context.Context) error {
	cmd := s.command(ctx, "initdb", syscall.SIGKILL,
		"--pgdata", s.dir.Data(), "--username", superuser, "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	if err := s.dir.Prepare(cmd); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	access := fmt.Sprintf("host all,replication %s 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n", superuser)
	// The file belongs to the server's user already and keeps its owner.
	return os.WriteFile(filepath.Join(s.dir.Data(), "pg_hba.conf"), []byte(access), 0o600)
}

// command prepares a server program. It inherits no environment: variables like
// PGDATA or LANG would make clusters differ from machine to machine.
func (s *Server) command(ctx context.Context, program string, onDeath syscall.Signal, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bindir, program), args...)
	cmd.Dir = s.dir.Path
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir.Path, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = s.who.Attributes(onDeath)
	return cmd
}

package pgtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// initialise makes the data folder. The superuser needs no password; the roles
// that tests make do, as they would elsewhere.
func (s *Server) initialise(ctx context.Context) error {
	cmd := s.Command(ctx, syscall.SIGKILL, filepath.Join(s.bindir, "initdb"),
		"--pgdata", s.Dir.Data(), "--username", superuser, "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	if err := s.Dir.Prepare(cmd); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	access := fmt.Sprintf("host all,replication %s 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n", superuser)
	// The file belongs to the server's user already and keeps its owner.
	return os.WriteFile(filepath.Join(s.Dir.Data(), "pg_hba.conf"), []byte(access), 0o600)
}

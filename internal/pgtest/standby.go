package pgtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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

package admin

import (
	"context"
	"errors"
	"log/slog"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/locks/database"
)

// LockStats are figures of the general locks, see package database.
type LockStats = database.Stats

// ReadLockStats returns the figures of the general locks of all processes, with as many of
// the locks that acquisitions failed for. It changes nothing.
func ReadLockStats(ctx context.Context, cfg *config.Config, log *slog.Logger, failed int) (s LockStats, err error) {
	op, err := NewOperator(OperatorOptions{Config: cfg, Logger: log})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, op.Close()) }()
	if err := op.ready(ctx); err != nil {
		return s, err
	}
	return database.On(op.db, log).Stats(ctx, cfg.Locks.Region, failed)
}

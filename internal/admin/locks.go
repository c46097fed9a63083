package admin

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/database"
)

// OpenLocks opens the general locks of the configuration. It brings the coordination
// database up to date first, as a node does at its start.
func OpenLocks(ctx context.Context, cfg *config.Config, log *slog.Logger) (*locks.Manager, error) {
	if err := migrateLikeANode(ctx, cfg, log); err != nil {
		return nil, err
	}
	return openLocks(ctx, cfg, log)
}

// FindLocks returns the general locks that are held. It changes nothing.
func FindLocks(ctx context.Context, cfg *config.Config, log *slog.Logger, f locks.Filter) (found []locks.Found, err error) {
	m, err := openLocks(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close(ctx)) }()
	return m.Find(ctx, f)
}

// ReleaseLock ends the lease that has the term, whoever holds it, and notes by whom. The
// error is [locks.ErrLost] when the term does not hold the lock.
func (op *Operator) ReleaseLock(ctx context.Context, d locks.Descriptor, term string, by By) error {
	if err := op.ready(ctx); err != nil {
		return err
	}
	return database.On(op.db, op.log).ReleaseLock(ctx, op.cfg.Locks.Region, d.Key(), term, by)
}

// LockStats are figures of the general locks, see package database.
type LockStats = database.Stats

// LockStats returns the figures of the general locks of all processes, with as many of the
// locks that acquisitions failed for.
func (op *Operator) LockStats(ctx context.Context, failed int) (LockStats, error) {
	if err := op.ready(ctx); err != nil {
		return LockStats{}, err
	}
	return database.On(op.db, op.log).Stats(ctx, op.cfg.Locks.Region, failed)
}

func openLocks(ctx context.Context, cfg *config.Config, log *slog.Logger) (*locks.Manager, error) {
	provider, err := database.Open(ctx, cfg.Database.URL.Reveal(), database.Options{Logger: log.With("component", "locks")})
	if err != nil {
		return nil, err
	}
	options := wiring.LockOptions(cfg.Locks)
	options.Provider, options.Node, options.Logger = provider, cfg.Node.Name, log.With("component", "locks")
	return locks.Open(ctx, options)
}

// describeLocks says what the general locks of the configuration have. It asks nobody.
func describeLocks(cfg *config.Config) string {
	for _, kind := range database.Kinds() {
		if strings.HasPrefix(cfg.Database.URL.Reveal(), kind.Name) {
			return kind.String()
		}
	}
	return ""
}

func migrateLikeANode(ctx context.Context, cfg *config.Config, log *slog.Logger) (err error) {
	if !cfg.Database.AutoMigrate {
		return nil
	}
	op, err := NewOperator(OperatorOptions{Config: cfg, Logger: log, Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, op.Close()) }()
	return op.db.Migrate(ctx)
}

package admin

import (
	"context"
	"errors"
	"log/slog"

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
	provider, err := database.Open(ctx, cfg.Database.URL.Reveal(), database.Options{Logger: log.With("component", "locks")})
	if err != nil {
		return nil, err
	}
	options := wiring.LockOptions(cfg.Locks)
	options.Provider, options.Node, options.Logger = provider, cfg.Node.Name, log.With("component", "locks")
	return locks.Open(ctx, options)
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
	_, _, err = op.Migrate(ctx)
	return err
}

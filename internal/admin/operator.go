// Package admin implements the commands for operators, with or without running nodes:
// status, poll, backfill, migrate, pause and the like. Only the command imports it.
package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/source/access"
	"github.com/observerd/observerd/internal/wiring"
)

// OperatorOptions say on which cluster an operator acts.
type OperatorOptions struct {
	// Config and Logger are required.
	Config *config.Config
	Logger *slog.Logger
	// Create allows the SQLite file of the coordination database to be made.
	Create bool
	// ReadOnly is for commands that write nothing to the coordination database.
	ReadOnly bool
}

// Operator runs one-shot commands on a cluster, beside its nodes.
type Operator struct {
	cfg *config.Config
	log *slog.Logger
	// db is nil when the SQLite file does not exist and may not be made.
	db       *lockdb.DB
	readOnly bool
}

// NewOperator opens the coordination database of the configuration without
// connecting to it. The caller closes the operator.
func NewOperator(o OperatorOptions) (*Operator, error) {
	op := &Operator{cfg: o.Config, log: o.Logger, readOnly: o.ReadOnly}
	err := statDatabase(o.Config)
	switch missing := errors.Is(err, wiring.ErrAbsent); {
	case missing && !o.Create:
		return op, nil
	case err != nil && !missing:
		return nil, err
	}
	op.db, err = lockdb.Open(lockdb.Options{
		URL: o.Config.Database.URL.Reveal(), PoolSize: 2, ReadOnly: o.ReadOnly, Node: o.Config.Node.Name, Logger: o.Logger.With("component", "lockdb"),
	})
	return op, err
}

// statDatabase returns nil where the database is no file. Of a file that is not
// writable, SQLite itself says only that it cannot be opened.
func statDatabase(cfg *config.Config) error {
	if cfg.Database.URL.Dialect() != config.SQLite {
		return nil
	}
	if err := mayWriteDatabase(cfg); err != nil {
		return err
	}
	_, err := os.Stat(cfg.Database.URL.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return absent(cfg)
	}
	return err
}

// sources opens sources for one command.
func (op *Operator) sources() *access.Opener {
	o := access.Options{Lenient: true, ReadOnly: op.readOnly, Logger: op.log}
	if op.db != nil {
		o.Accounts = accounts{op}
	}
	return wiring.NewOpener(op.cfg, o)
}

// accounts are those of the coordination database, once it is found ready: a source may be
// opened before anything else is asked of it. They are [access.Accounts].
type accounts struct{ op *Operator }

func (a accounts) Account(ctx context.Context, id string) ([]lockdb.Account, error) {
	if err := a.op.ready(ctx); err != nil {
		return nil, err
	}
	return a.op.db.Accounts().Account(ctx, id)
}

func (a accounts) RefuseAccount(ctx context.Context, refused lockdb.Account) error {
	if err := a.op.ready(ctx); err != nil {
		return err
	}
	return a.op.db.Accounts().RefuseAccount(ctx, refused)
}

// open opens the source of that name.
func (op *Operator) open(name string) (*access.Source, error) {
	src, err := op.sources().Open(name)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", name, err)
	}
	return src, nil
}

// sourceOf returns an observer of the configuration and opens its source, without
// connecting to it.
func (op *Operator) sourceOf(id string) (config.Observer, *access.Source, error) {
	o, err := op.configured(id)
	if err != nil {
		return o, nil, err
	}
	src, err := op.open(o.Source)
	return o, src, err
}

// Close closes the database.
func (op *Operator) Close() error {
	if op.db == nil {
		return nil
	}
	return op.db.Close()
}

// ready checks the precondition of everything but a migration: a database that answers
// and has this binary's schema.
func (op *Operator) ready(ctx context.Context) error {
	if op.db == nil {
		return absent(op.cfg)
	}
	return op.db.Ready(ctx)
}

func absent(cfg *config.Config) error {
	return fmt.Errorf("%w: there is no file %s; 'observerd run' and 'observerd migrate up' create it", wiring.ErrAbsent, cfg.Database.URL.Path())
}

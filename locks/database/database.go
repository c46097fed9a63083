// Package database opens coordination databases, PostgreSQL or SQLite, for package
// [github.com/observerd/observerd/locks]. They are those of observerd's nodes, which need
// not run, and its command migrate makes their tables.
package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/liveness"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/locks"
)

// ErrPending reports tables that are missing, or older than this library. Run
// 'observerd migrate up' of the same version.
var ErrPending = sqldb.ErrPending

// Options configure a provider.
type Options struct {
	// PoolSize bounds the connections for everything but leases, which have four of
	// their own on PostgreSQL, and one more shows that the process lives. 0 means 2.
	PoolSize int
	// Logger receives what a person should know of the database; nil discards it.
	Logger *slog.Logger
}

// provider keeps locks in a coordination database.
type provider struct {
	*lockdb.Leases
	db       *lockdb.DB
	log      *slog.Logger
	liveness *liveness.Monitor
}

// Open opens the database at sqlite:PATH or postgres://…, whose tables must be there: the
// error is [ErrPending] otherwise. It is another one when the database cannot be reached.
// Hand the provider to [locks.Open], which closes it if it fails, as its manager does at
// its end.
func Open(ctx context.Context, url string, o Options) (locks.Provider, error) {
	if o.PoolSize == 0 {
		o.PoolSize = 2
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok { // Which would be made, to look into it.
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %w", sqldb.ErrNoTables, err)
		}
	}
	db, err := lockdb.Open(lockdb.Options{URL: url, PoolSize: o.PoolSize, BootID: uuid.NewString(), Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	if err := db.Ready(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("coordination database: %w", err), db.Close())
	}
	return &provider{Leases: db.Leases(), db: db, log: o.Logger}, nil
}

// Start implements [lock.Process].
func (p *provider) Start(ctx context.Context, renewNow func()) {
	p.liveness = p.db.NewLiveness(liveness.Options{ShowOnly: true, SignOfLife: renewNow, Logger: p.log})
	select {
	case <-p.liveness.Start(context.WithoutCancel(ctx)):
	case <-ctx.Done():
	}
}

// Close implements [lock.Process].
func (p *provider) Close(ctx context.Context) error {
	var err error
	if p.liveness != nil {
		err = p.liveness.Stop(ctx)
	}
	return errors.Join(err, p.db.Close())
}

// Tx makes a transaction of pgx one that [locks.Lease.Guard] takes.
func Tx(tx pgx.Tx) locks.Tx { return pgxTx{tx} }

type pgxTx struct{ tx pgx.Tx }

// ExecContext implements [locks.Tx].
func (t pgxTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	tag, err := t.tx.Exec(ctx, query, args...)
	return driver.RowsAffected(tag.RowsAffected()), err
}

// Package database opens coordination databases, PostgreSQL or SQLite, for package
// [github.com/observerd/observerd/locks]. They are those of observerd's nodes, which need
// not run, and its command migrate makes their tables.
package database

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/locks"
)

// ErrPending reports tables that are missing, or older than this library. Run
// 'observerd migrate up' of the same version.
var ErrPending = sqldb.ErrPending

// Options configure a provider.
type Options struct {
	// PoolSize bounds the connections for everything but leases, which have four of
	// their own on PostgreSQL. 0 means 2.
	PoolSize int
	// Logger receives what a person should know of the database; nil discards it.
	Logger *slog.Logger
}

// Open opens the database at sqlite:PATH or postgres://…, whose tables must be there: the
// error is [ErrPending] otherwise. It is another one when the database cannot be reached.
// Hand the provider to [locks.Open], which closes it if it fails, as its manager does at
// its end.
func Open(ctx context.Context, url string, o Options) (*Provider, error) {
	o.PoolSize = cmp.Or(o.PoolSize, 2)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok { // Which would be made, to look into it.
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %w", sqldb.ErrNoTables, err)
		}
	}
	db, err := lockdb.Open(lockdb.Options{URL: url, PoolSize: o.PoolSize, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	if err := db.Ready(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("coordination database: %w", err), db.Close())
	}
	return On(db, o.Logger), nil
}

// Tx makes a transaction of pgx one that [locks.Lease.Guard] takes.
func Tx(tx pgx.Tx) locks.Tx { return pgxTx{tx} }

type pgxTx struct{ tx pgx.Tx }

func (t pgxTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	tag, err := t.tx.Exec(ctx, query, args...)
	return driver.RowsAffected(tag.RowsAffected()), err
}

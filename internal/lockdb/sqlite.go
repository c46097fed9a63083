package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // The driver "sqlite".

	"github.com/observerd/observerd/migrations"
)

// sqlitePragmas make a commit durable before it is answered (FULL), let
// readers go on beside a writer (WAL), and let processes of one host wait for
// each other instead of failing.
const sqlitePragmas = "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)" +
	"&_pragma=cache_size(-16384)&_pragma=wal_autocheckpoint(10000)&_pragma=foreign_keys(ON)"

func openSQLite(o Options) (*DB, error) {
	path := strings.TrimPrefix(o.URL, "sqlite:")
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return nil, errors.New("coordination database: sqlite needs a file; write sqlite:PATH")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("coordination database: make its folder: %w", err)
	}
	db := &DB{d: sqliteDialect(), backend: "sqlite", log: o.Logger, metrics: newMetrics(o.Registerer)}
	for pool, size := range map[**sql.DB]int{&db.main: 1, &db.lease: 1, &db.read: o.PoolSize} {
		opened, err := sql.Open("sqlite", sqliteDSN(path, pool == &db.read))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("coordination database: %w", err), db.closeOpened())
		}
		opened.SetMaxOpenConns(size)
		opened.SetMaxIdleConns(size)
		*pool = opened
	}
	db.schema = sqliteSchema(db.main, db.read, path, migrations.SQLite())
	db.engine = &sqliteEngine{db: db}
	return db, nil
}

// sqliteDSN makes writers take the write lock when a transaction begins: one
// that read first and wrote later would fail instead of waiting.
func sqliteDSN(path string, readOnly bool) string {
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + sqlitePragmas
	if readOnly {
		return dsn + "&_pragma=query_only(1)"
	}
	return dsn + "&_txlock=immediate"
}

func (db *DB) closeOpened() error {
	var errs []error
	for _, pool := range []*sql.DB{db.main, db.lease, db.read} {
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	return errors.Join(errs...)
}

// sqliteEngine holds the transactions of SQLite, which has no statement that
// writes two tables.
type sqliteEngine struct{ db *DB }

// recognise has nothing to look at: INT_LOCK in a file of ours is ours.
func (e *sqliteEngine) recognise(context.Context) error { return nil }

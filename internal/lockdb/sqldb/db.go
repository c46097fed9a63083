package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options describe the coordination database.
type Options struct {
	// URL is "sqlite:PATH" or "postgres://…". Required.
	URL string
	// PoolSize bounds the connections for everything but leases, which have
	// four of their own. 0 means 8. SQLite writes through one connection, leases
	// too.
	PoolSize int
	// LockTimeout bounds how long a statement waits for another's row lock.
	// 0 means 5 s.
	LockTimeout time.Duration
	// AcquireWait bounds how long an acquisition waits for another's row lock.
	// SQLite has no row locks. 0 means [DefaultAcquireWait].
	AcquireWait time.Duration
	// ReadOnly promises that nothing will be written. SQLite refuses it then, makes no
	// file that is missing, and leaves the journal of one as it is.
	ReadOnly bool
	// Logger is required.
	Logger *slog.Logger
}

// DB is an open coordination database. It is safe for concurrent use.
type DB struct {
	// Main runs everything but leases; on SQLite it is the one connection that
	// writes, leases too, and Read has the others. On PostgreSQL Lease is apart so
	// that a busy pool never starves a heartbeat.
	Main, Read, Lease *sql.DB
	// Acquire is apart from Lease on PostgreSQL, because an acquisition may have
	// to wait for another client that has locked the row. Its sessions wait
	// briefly.
	Acquire *sql.DB
	// TimeArg makes a time a parameter.
	TimeArg func(t time.Time) any

	dialect    *dialect
	renderings *renderings
	sql        *Statements[tableSQL]
	table      lockTableLook
	locked     sync.Map // of locks whose rows were found locked
	schema     schema
	log        *slog.Logger

	// path is that of the file of SQLite.
	path string
	// postgres is nil on SQLite.
	postgres *server
	// readLockTable looks at INT_LOCK; nil where it is always ours, on SQLite.
	readLockTable func(ctx context.Context) (lockTable, error)
	// connected is called for each new connection of Main.
	connected func()
}

// server is a server of PostgreSQL, and how it is reached.
type server struct {
	config *pgx.ConnConfig
	pooler *Pooler
}

func newDB(r *renderings, log *slog.Logger) *DB {
	d := r.now.Load().dialect
	db := &DB{dialect: d, renderings: r, TimeArg: d.timeArg, log: log, connected: func() {}}
	db.sql = NewStatements(db, tableTexts(d.name))
	return db
}

// Open prepares a DB. It does not connect: a database that is down is waited
// for by its users. It fails only for a URL that can never work. Call [DB.Ready] or [DB.Migrate]
// first: they find the schemas of the tables, without which no statement of PostgreSQL works.
func Open(o Options) (*DB, error) {
	o.PoolSize = cmp.Or(o.PoolSize, 8)
	o.LockTimeout = cmp.Or(o.LockTimeout, 5*time.Second)
	o.AcquireWait = cmp.Or(o.AcquireWait, DefaultAcquireWait)
	scheme, _, _ := strings.Cut(o.URL, ":")
	switch scheme {
	case "sqlite":
		return openSQLite(o)
	case "postgres", "postgresql":
		return openPostgres(o)
	}
	return nil, errors.New("coordination database: unsupported URL; use sqlite:PATH or postgres://…")
}

// Backend is "postgres" or "sqlite".
func (db *DB) Backend() string { return db.dialect.name }

// Path is the path of the file of SQLite; empty on PostgreSQL.
func (db *DB) Path() string { return db.path }

// OnConnect sets the function that is called for each new connection of Main, as
// after a failover of PostgreSQL. Call it before the first statement.
func (db *DB) OnConnect(f func()) { db.connected = f }

// Close closes all connections.
func (db *DB) Close() error {
	var errs []error
	for _, pool := range []*sql.DB{db.Acquire, db.Lease, db.Main, db.Read} {
		if pool != nil { // One that serves twice may be closed twice.
			errs = append(errs, pool.Close())
		}
	}
	return errors.Join(errs...)
}

// List makes texts one parameter, for the tokens {among $n} and {numbered $n}.
func (db *DB) List(texts []string) any { return db.dialect.list(texts) }

// Now returns the database's clock.
func (db *DB) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := db.Read.QueryRowContext(ctx, db.sql.SQL().Now).Scan(ScanTime(&now))
	if err != nil {
		return time.Time{}, fmt.Errorf("read the clock of the coordination database: %w", BusyPool(db.Read, err))
	}
	return now, nil
}

// Ready returns nil when the database answers and its schema is the binary's.
// Otherwise the error is [ErrPending], [ErrSchemaNewer], [ErrUnreleased], [ErrMixedTable],
// [ErrNoDatabase] or [ErrPooler], or there is a [Refusal], or the database is [Unavailable].
func (db *DB) Ready(ctx context.Context) error {
	current, target, err := db.schema.state(ctx)
	switch {
	case err != nil:
		return err
	case current > target:
		return ErrSchemaNewer
	case current == 0:
		return ErrNoTables
	case current < target:
		return ErrPending
	}
	if db.postgres != nil { // It may have been noticed only now: see [Pooler].
		if err := db.postgres.pooler.unfit(); err != nil {
			return err
		}
	}
	return db.Recognise(ctx)
}

// Exec runs a statement of [Statements] for its effect, and returns how many rows it changed.
// what begins the error.
func (db *DB) Exec(ctx context.Context, what, text string, args ...any) (int64, error) {
	n, err := Affected(db.Main.ExecContext(ctx, text, db.Prepared(args...)...))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, BusyPool(db.Main, err))
	}
	return n, nil
}

// Affected returns how many rows a statement has changed.
func Affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Scan reads the columns of a row.
type Scan = func(into ...any) error

// Query visits each row of the result of a statement of [Statements]. what begins the error.
func (db *DB) Query(ctx context.Context, what, text string, visit func(scan Scan) error, args ...any) error {
	rows, err := db.Read.QueryContext(ctx, text, db.Prepared(args...)...)
	if err != nil {
		return fmt.Errorf("%s: %w", what, BusyPool(db.Read, err))
	}
	if err := each(rows, visit); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// All is Query for rows that read reads one by one into what it returns.
func All[T any](ctx context.Context, db *DB, what, text string, read func(scan Scan, row *T) error, args ...any) (all []T, err error) {
	err = db.Query(ctx, what, text, func(scan Scan) error {
		var row T
		err := read(scan, &row)
		all = append(all, row)
		return err
	}, args...)
	return all, err
}

// Each is Query on a pool or in a transaction, with the error as it is.
func Each(ctx context.Context, on interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}, text string, visit func(scan Scan) error, args ...any,
) error {
	rows, err := on.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	return each(rows, visit)
}

func each(rows *sql.Rows, visit func(scan Scan) error) error {
	defer rows.Close()
	scan := legible(rows.Scan)
	for rows.Next() {
		if err := visit(scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// InTx runs f in a transaction of the main pool; its error rolls back. what begins
// the error.
func (db *DB) InTx(ctx context.Context, what string, f func(tx *sql.Tx) error) error {
	tx, err := db.Main.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: begin: %w", what, err)
	}
	if err := EndTx(tx, f(tx)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// EndTx commits, or rolls back for an error.
func EndTx(tx *sql.Tx, err error) error {
	if err != nil {
		return errors.Join(err, Rollback(tx))
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// Rollback ends a failed transaction. A transaction that its context has ended
// already is no failure.
func Rollback(tx *sql.Tx) error {
	err := tx.Rollback()
	if errors.Is(err, sql.ErrTxDone) || Unavailable(err) {
		return nil
	}
	return err
}

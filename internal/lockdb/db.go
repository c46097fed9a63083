package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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
	// AcquireWait bounds how long an acquisition waits for another's row lock; a
	// lock whose row is locked for longer counts as held. SQLite has no row locks.
	// 0 means [DefaultAcquireWait].
	AcquireWait time.Duration
	// StalledCopy is the age from which a COPY of another session of ours, in
	// whose way it stands, counts as stalled and is ended. 0 means
	// [DefaultStalledCopy].
	StalledCopy time.Duration
	// BootID is the id of this process, another at each start. Locks that it
	// acquires carry it, so that others may see its death; see [Liveness]. Empty
	// for a process whose leases always live by their TTL.
	BootID string
	// Node is the name under which this process makes notes for people.
	Node string
	// Logger is required; Registerer may be nil.
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// DB is an open coordination database. It is safe for concurrent use.
type DB struct {
	// main runs everything but leases; on SQLite it is the one connection that
	// writes, leases too, and read has the others. On PostgreSQL lease is apart so
	// that a busy pool never starves a heartbeat.
	main, read, lease *sql.DB
	d                 *dialect
	engine            engine
	table             tableForm
	schema            schema
	backend           string
	log               *slog.Logger
	metrics           *metrics
	onCommit          func()

	// place knows the schemas of the tables; nil on SQLite.
	place *place
	// unfit says why nothing can be done through what lies between; nil on SQLite.
	unfit func() error

	// acquire is apart from lease on PostgreSQL, because an acquisition may have
	// to wait for a stranger that has locked the row. Its sessions wait for no
	// longer than a moment.
	acquire *sql.DB

	bootID, node string
	newPresence  func() presence
	liveness     *Liveness // nil where there is none
	// locked holds the locks whose rows were found locked by somebody.
	locked sync.Map
	// terms are those that this process may hold.
	terms terms
	// ends are what this process knows of the event log.
	ends ends
	// futures holds the foreign holders that have dated their rows in the future.
	futures sync.Map
	// shown is how others see whether this process lives.
	shown atomic.Value
}

// shownBy is the value of the columns liveness for this process.
func (db *DB) shownBy() string {
	kind, _ := db.shown.Load().(string)
	return kind
}

func (db *DB) showBy(kind string) { db.shown.Store(kind) }

// isOpen reports whether the process of that boot id is there, and whether we
// know.
func (db *DB) isOpen(bootID string) (open, known bool) {
	if bootID == db.bootID {
		return true, true
	}
	if db.liveness == nil {
		return false, false
	}
	return db.liveness.news.isOpen(bootID)
}

// schema says where the migrations are and how they run.
type schema struct {
	files fs.FS
	up    func(ctx context.Context) error
	state func(ctx context.Context) (current, target int64, err error)
}

// Open prepares a DB. It does not connect: a database that is down is waited
// for by whoever uses it. It fails only for a URL that can never work.
func Open(o Options) (*DB, error) {
	if o.PoolSize == 0 {
		o.PoolSize = 8
	}
	if o.LockTimeout == 0 {
		o.LockTimeout = 5 * time.Second
	}
	if o.AcquireWait == 0 {
		o.AcquireWait = DefaultAcquireWait
	}
	if o.StalledCopy == 0 {
		o.StalledCopy = DefaultStalledCopy
	}
	scheme, _, _ := strings.Cut(o.URL, ":")
	switch scheme {
	case "sqlite":
		return openSQLite(o)
	case "postgres", "postgresql":
		return openPostgres(o)
	}
	return nil, errors.New("coordination database: unsupported URL; write sqlite:PATH or postgres://…")
}

// Backend is "postgres" or "sqlite".
func (db *DB) Backend() string { return db.backend }

// OnCommit sets the function that is called after each commit that appended
// events, so that relays of this process need not wait for their next look.
// It must not block. Call it before the first poll.
func (db *DB) OnCommit(f func()) { db.onCommit = f }

// Close closes all connections.
func (db *DB) Close() error {
	return errors.Join(closeOther(db.acquire, db.main), closeOther(db.lease, db.main), db.main.Close(), closeOther(db.read, db.main))
}

func closeOther(a, b *sql.DB) error {
	if a == b {
		return nil
	}
	return a.Close()
}

// Now returns the database's clock.
func (db *DB) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := db.read.QueryRowContext(ctx, db.d.sql(`SELECT {now}`)).Scan(instant{&now})
	if err != nil {
		return time.Time{}, fmt.Errorf("read the clock of the coordination database: %w", db.told(db.read, err))
	}
	return now, nil
}

// Ready returns nil when the database answers and its schema is the binary's.
// Otherwise the error is [ErrPending], [ErrSchemaNewer], [ErrMixedTable],
// [ErrNoDatabase] or [ErrPooler], or there is a [Refusal], or the database is [Unavailable].
func (db *DB) Ready(ctx context.Context) error {
	current, target, err := db.schema.state(ctx)
	switch {
	case err != nil:
		return err
	case current > target:
		return ErrSchemaNewer
	case current < target:
		return ErrPending
	}
	if db.unfit != nil { // It may have been noticed only now: see [pooler].
		if err := db.unfit(); err != nil {
			return err
		}
	}
	return db.recognise(ctx)
}

// exec runs a statement for its effect.
func (db *DB) exec(ctx context.Context, what, text string, args ...any) (int64, error) {
	result, err := db.main.ExecContext(ctx, db.d.sql(text), args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, db.told(db.main, err))
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return n, nil
}

// query visits each row of a result.
func (db *DB) query(ctx context.Context, what, text string, visit func(scan func(...any) error) error, args ...any) error {
	rows, err := db.read.QueryContext(ctx, db.d.sql(text), args...)
	if err != nil {
		return fmt.Errorf("%s: %w", what, db.told(db.read, err))
	}
	defer rows.Close()
	for rows.Next() {
		if err := visit(rows.Scan); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// inTx runs f in a transaction of the main pool; its error rolls back.
func (db *DB) inTx(ctx context.Context, what string, f func(tx *sql.Tx) error) error {
	tx, err := db.main.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: begin: %w", what, err)
	}
	if err := f(tx); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", what, err), rollback(tx))
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%s: commit: %w", what, err)
	}
	return nil
}

// rollback ends a failed transaction. A transaction that its context has ended
// already is not worth a word.
func rollback(tx *sql.Tx) error {
	err := tx.Rollback()
	if errors.Is(err, sql.ErrTxDone) || Unavailable(err) {
		return nil
	}
	return err
}

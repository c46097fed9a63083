package lockdb

import (
	"cmp"
	"context"
	"database/sql"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/eventlog"
	"github.com/observerd/observerd/internal/lockdb/liveness"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
)

// Options describe the coordination database.
type Options struct {
	// URL is "sqlite:PATH" or "postgres://…". Required.
	URL string
	// PoolSize, LockTimeout and AcquireWait are those of [sqldb.Options]. A lock whose
	// row is locked for longer than AcquireWait counts as held.
	PoolSize                 int
	LockTimeout, AcquireWait time.Duration
	// ReadOnly is that of [sqldb.Options].
	ReadOnly bool
	// StalledCopy is the age from which a COPY of another session of ours, in
	// whose way it stands, counts as stalled and is ended. 0 means
	// [DefaultStalledCopy].
	StalledCopy time.Duration
	// BootID is the id of this process, another at each start. Locks that it
	// acquires carry it, so that others may see its death; see [liveness.Monitor]. Empty
	// for a process whose leases always live by their TTL.
	BootID string
	// Node is the name under which this process makes notes for people.
	Node string
	// Logger is required; Registerer may be nil.
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// DefaultStalledCopy is the default of [Options].StalledCopy. A chunk is at
// most some megabytes; a copy of one that has lasted so long is not coming
// to an end.
const DefaultStalledCopy = 15 * time.Second

// DB is an open coordination database. It is safe for concurrent use. Each of its
// parts has a type of its own: [Leases], [Turns], [Nodes], [Streams], [Sweeps],
// [Accounts], [Operations], [Store], and [eventlog.Log].
type DB struct {
	db       *sqldb.DB
	engine   engine
	sql      *sqldb.Statements[partSQL]
	log      *slog.Logger
	metrics  *metrics
	bootID   string
	name     string
	onCommit func()
	stalled  time.Duration // the age from which a COPY counts as stalled

	presence liveness.Presence
	monitor  *liveness.Monitor // nil where there is none
	// terms are those that this process may hold: from before the statement that acquires is
	// sent until the lease was released or lost, or was given back because its acquisition
	// was not answered. A row that carries our boot id and none of them has no holder: a
	// failover or a restart lost the answer to its release, or brought it back.
	terms  sync.Map
	events *eventlog.Log
}

// Open prepares a DB. It does not connect: a database that is down is waited
// for by its users. It fails only for a URL that can never work. Call [DB.Ready] or
// [DB.Migrate] before anything else; see [sqldb.Open].
func Open(o Options) (*DB, error) {
	opened, err := sqldb.Open(sqldb.Options{
		URL: o.URL, PoolSize: o.PoolSize, LockTimeout: o.LockTimeout, AcquireWait: o.AcquireWait, ReadOnly: o.ReadOnly, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	db := &DB{
		db: opened, log: o.Logger, metrics: newMetrics(o.Registerer), bootID: o.BootID, name: o.Node,
		stalled: cmp.Or(o.StalledCopy, DefaultStalledCopy), sql: sqldb.NewStatements(opened, partTexts(opened.Backend())),
	}
	db.events = eventlog.New(opened, eventlog.Options{Node: o.Node, Logger: o.Logger, WentBack: db.metrics.logWentBack})
	opened.OnConnect(db.events.Doubt) // A failover ends all connections.
	if opened.Backend() == "sqlite" {
		db.engine = (*sqliteEngine)(db)
	} else {
		db.engine = (*postgresEngine)(db)
	}
	db.presence = liveness.NewPresence(opened, o.BootID)
	return db, nil
}

// SQL returns the database below, for statements on locks that are not in this package.
func (db *DB) SQL() *sqldb.DB { return db.db }

// Backend is "postgres" or "sqlite".
func (db *DB) Backend() string { return db.db.Backend() }

// Close closes all connections.
func (db *DB) Close() error { return db.db.Close() }

// Now returns the database's clock.
func (db *DB) Now(ctx context.Context) (time.Time, error) { return db.db.Now(ctx) }

// Ready is described at [sqldb.DB.Ready].
func (db *DB) Ready(ctx context.Context) error { return db.db.Ready(ctx) }

// Migrate is described at [sqldb.DB.Migrate].
func (db *DB) Migrate(ctx context.Context) error { return db.db.Migrate(ctx) }

// OnCommit sets the function that is called after each commit that appended
// events, so that relays of this process need not wait for their next look.
// It must not block. Call it before the first poll.
func (db *DB) OnCommit(f func()) { db.onCommit = f }

// NewLiveness returns the monitor of this process; [Options].BootID is required, and
// of o what [liveness.Options] says but for the database and the process. It does
// nothing until it is started.
func (db *DB) NewLiveness(o liveness.Options) *liveness.Monitor {
	o.DB, o.BootID, o.Active = db.db, db.bootID, db.metrics.liveness
	o.Holds = func(term string) bool {
		_, held := db.terms.Load(term)
		return held
	}
	db.monitor = liveness.New(db.presence, o)
	return db.monitor
}

// Log returns the event log.
func (db *DB) Log() *eventlog.Log { return db.events }

// shownBy is the value of the columns liveness for this process.
func (db *DB) shownBy() string {
	if db.monitor == nil {
		return ""
	}
	return db.monitor.ShownBy()
}

// deadNodes returns the boot ids of the nodes whose processes are gone. A process
// that watches the others knows; every other has a look, which takes as long as a
// node must be absent if one is.
func (db *DB) deadNodes(ctx context.Context) (map[string]bool, error) {
	if db.monitor != nil {
		if dead, watching := db.monitor.Dead(); watching {
			return dead, nil
		}
	}
	rows := func(ctx context.Context, text string, visit func(scan func(...any) error) error, args ...any) error {
		return db.db.Query(ctx, "look which nodes live", text, visit, args...)
	}
	return liveness.Dead(ctx, db.db, rows)
}

// fencedArgs are the parameters of such a statement.
func fencedArgs(g lock.Grant, args ...any) []any {
	return append([]any{RowKey(g.Key), g.Region, g.Term, g.TTL.Seconds()}, args...)
}

// wrote reads the result of such a statement: no row means [lock.ErrFenced].
func wrote(result sql.Result, err error) error {
	n, err := sqldb.Affected(result, err)
	if err == nil && n == 0 {
		err = lock.ErrFenced
	}
	return err
}

// engine has the steps that PostgreSQL and SQLite cannot share.
type engine interface {
	// acquire tries once to take the lock under the term of the grant; the error is
	// [sqldb.ErrHeld] when another has it.
	acquire(ctx context.Context, g lock.Grant, by process) (fence int64, before previousHolder, err error)
	renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error)
	// commit does all of the chunk or nothing. The error is lock.ErrFenced,
	// observer.ErrConflict, or one for which sqldb.OutcomeUnknown may hold.
	commit(ctx context.Context, g lock.Grant, ch *observer.Chunk) error
}

// previousHolder is the holder that an acquisition found in the place of its own rows, before
// the statement or the transaction. On PostgreSQL the rows may have changed since, and then a
// takeover goes unnoticed, or is logged twice.
type previousHolder struct {
	// expired says that a row stood in INT_LOCK whose lease had ended.
	expired bool
	// liveness is empty where nobody sees whether the holder lives, node where it is not ours.
	liveness, node string
}

// process is the process that acquires: its boot id, and how others see whether it lives.
type process struct{ boot, liveness string }

// postgresEngine holds the statements of PostgreSQL.
type postgresEngine DB

// sqliteEngine holds the transactions of SQLite, which has no statement that
// writes two tables.
type sqliteEngine DB

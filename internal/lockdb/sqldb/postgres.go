package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/observerd/observerd/internal/pgsession"
	"github.com/observerd/observerd/migrations"
)

// Server-side limits of every session. They end what a sleeping or cut-off
// node has left behind on the server, so that its row locks never outlive it
// by more than this; but for a COPY, see endStalledSQL.
const (
	statementTimeout = 30 * time.Second
	idleInTxTimeout  = 10 * time.Second
)

// DefaultAcquireWait is the default of [Options].AcquireWait. Spring's clients
// and ours lock a row briefly. A row that is locked for longer may belong to a
// forgotten transaction, and two of those must not occupy both connections for
// acquisitions while other locks are free.
const DefaultAcquireWait = 300 * time.Millisecond

// AcquireConns is how many connections of PostgreSQL are for acquisitions.
const AcquireConns = 2

// pinned is what decides the text of a value, in all sessions.
var pinned = map[string]string{
	"client_encoding": pgsession.Encoding, "datestyle": "ISO", "timezone": "UTC", "standard_conforming_strings": "on",
}

func openPostgres(o Options) (*DB, error) {
	config, err := parsePostgres(o.URL)
	if err != nil {
		return nil, err
	}
	setDefault(config.RuntimeParams, "application_name", "observerd")
	between := newPooler(config, o.Logger)
	setDefault(config.RuntimeParams, "statement_timeout", Millis(statementTimeout))
	setDefault(config.RuntimeParams, "idle_in_transaction_session_timeout", Millis(idleInTxTimeout))
	setDefault(config.RuntimeParams, "lock_timeout", Millis(o.LockTimeout))
	// The statements are written for it, whatever the role's own default is.
	setDefault(config.RuntimeParams, "default_transaction_isolation", "read committed")
	db := newDB(between.place.renderings, o.Logger)
	db.postgres = &server{config: config, pooler: between}
	// A plan that was made while a table was empty must not serve it when it
	// has a million rows: statements are planned each time, see Prepared.
	mainConfig := config.Copy()
	mainConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	mainConfig.RuntimeParams["plan_cache_mode"] = "force_custom_plan"
	mainConfig.AfterConnect = func(context.Context, *pgconn.PgConn) error {
		db.connected()
		return nil
	}
	acquireConfig := config.Copy()
	acquireConfig.RuntimeParams["lock_timeout"] = Millis(o.AcquireWait)
	open := func(config *pgx.ConnConfig, size int) *sql.DB {
		return openPool(between.through(config), size)
	}
	db.Main, db.Lease, db.Acquire = open(mainConfig, o.PoolSize), open(config, 2), open(acquireConfig, AcquireConns)
	db.Read = db.Main
	db.readLockTable = db.catalogued
	unlimited := config.Copy()
	unlimited.RuntimeParams["statement_timeout"] = "0"
	db.schema = postgresSchema(db.Main, between.place, func() *sql.DB {
		return stdlib.OpenDB(*between.on(unlimited, func() string { return between.place.names.Load().migrating() }))
	}, migrations.Postgres())
	return db, nil
}

// parsePostgres reads the URL. Whatever connects to the coordination database
// begins with it: nodes, commands and the doctor.
//
// Of several hosts or addresses the driver tries the next one whenever one
// refuses a single connection. That may be a standby, which shows commits late: so
// a connection counts only when its server can be written, unless the URL says
// otherwise. That costs a new connection one round trip.
func parsePostgres(text string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(text)
	parsed, unreadable := url.Parse(text)
	var file *fs.PathError
	if errors.As(err, &file) && unreadable == nil {
		return nil, fmt.Errorf("coordination database: a file that the URL names cannot be read: %w", file)
	}
	if err != nil || unreadable != nil {
		// The parser's error may repeat parts of the URL, and it holds a password.
		return nil, errors.New("coordination database: the postgres:// URL cannot be read; use postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full")
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	for name, value := range pinned {
		pgsession.Pin(config.RuntimeParams, name, value)
	}
	switch parsed.Query().Get("target_session_attrs") {
	case "any":
	case "primary":
		config.ValidateConnect = writable(pgconn.ValidateConnectTargetSessionAttrsPrimary)
	default:
		config.ValidateConnect = writable(pgconn.ValidateConnectTargetSessionAttrsReadWrite)
	}
	return config, nil
}

// writable words the refusal of a check by the driver.
func writable(check pgconn.ValidateConnectFunc) pgconn.ValidateConnectFunc {
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		err := check(ctx, conn)
		if errors.Is(err, pgconn.ErrReadOnlyConnection) || errors.Is(err, pgconn.ErrStandbyConnection) {
			return ErrReadOnly
		}
		return err
	}
}

func openPool(config *pgx.ConnConfig, size int) *sql.DB {
	pool := sql.OpenDB(wordedConnector{stdlib.GetConnector(*config)})
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	return pool
}

func setDefault(params map[string]string, name, value string) {
	if _, set := params[name]; !set {
		params[name] = value
	}
}

// Millis is a duration as the server takes it.
func Millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Prepared are the parameters of a statement that is prepared, where a session serves one
// connection alone. It is planned at each call all the same: but for one without parameters,
// which is sent as ever.
func (db *DB) Prepared(args ...any) []any {
	if db.postgres == nil || len(args) == 0 || !db.postgres.pooler.prepares() {
		return args
	}
	return slices.Concat([]any{pgx.QueryExecModeCacheStatement}, args)
}

// Session returns the configuration of a session of its own on PostgreSQL, beside the
// pools, and the pooler between. set changes the configuration before the settings of
// the URL are taken out of it.
func (db *DB) Session(set func(config *pgx.ConnConfig)) (*pgx.ConnConfig, *Pooler) {
	config := db.postgres.config.Copy()
	set(config)
	return db.postgres.pooler.through(config), db.postgres.pooler
}

// Native runs f on a connection of the main pool of PostgreSQL, for what database/sql
// cannot do.
func (db *DB) Native(ctx context.Context, f func(conn *pgx.Conn) error) error {
	return native(ctx, db.Main, f)
}

// QueryNative is [DB.Query] for many rows: on PostgreSQL without database/sql, which takes most of
// the time of a row. Of a connection that has broken it does not try another one.
func (db *DB) QueryNative(ctx context.Context, what, text string, visit func(scan Scan) error, args ...any) error {
	if db.postgres == nil {
		return db.Query(ctx, what, text, visit, args...)
	}
	err := db.Native(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, text, db.Prepared(args...)...)
		if err != nil {
			return err
		}
		return eachNative(rows, visit)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, BusyPool(db.Main, err))
	}
	return nil
}

func eachNative(rows pgx.Rows, visit func(scan Scan) error) error {
	defer rows.Close()
	scan := legible(rows.Scan)
	for rows.Next() {
		if err := visit(scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Statement is one of [Statements] that are sent together.
type Statement struct {
	Text string
	Args []any
}

// Pipeline runs statements of PostgreSQL in one round trip and one transaction, on a
// connection for acquisitions. Each sees what was committed before it began. row scans
// each row of the last.
func (db *DB) Pipeline(ctx context.Context, statements []Statement, row func(scan func(...any) error) error) error {
	var batch pgx.Batch
	for _, s := range statements {
		batch.Queue(s.Text, s.Args...)
	}
	return native(ctx, db.Acquire, func(conn *pgx.Conn) (err error) {
		results := conn.SendBatch(ctx, &batch)
		defer func() { err = errors.Join(err, results.Close()) }()
		for range len(statements) - 1 {
			if _, err := results.Exec(); err != nil {
				return err
			}
		}
		rows, err := results.Query()
		if err != nil {
			return err
		}
		return eachNative(rows, row)
	})
}

func native(ctx context.Context, pool *sql.DB, f func(conn *pgx.Conn) error) error {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Raw(func(driver any) error {
		bare, ok := driver.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("unexpected driver %T", driver)
		}
		return f(bare.Conn())
	})
}

// Table is a table of PostgreSQL with its schema. A statement has to come first: before
// it the schemas are not known.
func (db *DB) Table(name string) pgx.Identifier { return db.Rendering().identifier(name) }

// TablePrefix is how the name of any table of ours begins on PostgreSQL, as [DB.Table].
func (db *DB) TablePrefix() string { return strings.TrimSuffix(db.Table("obs_").Sanitize(), `"`) }

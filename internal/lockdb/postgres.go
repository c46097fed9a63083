package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

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
// and ours lock a row for moments. What has locked it for longer may be a
// transaction that somebody forgot, and two of those must not take both
// connections for acquisitions from the locks that are free.
const DefaultAcquireWait = 300 * time.Millisecond

func openPostgres(o Options) (*DB, error) {
	config, err := parsePostgres(o.URL)
	if err != nil {
		return nil, err
	}
	setDefault(config.RuntimeParams, "application_name", "observerd")
	between := newPooler(config, o.Logger)
	setDefault(config.RuntimeParams, "statement_timeout", millis(statementTimeout))
	setDefault(config.RuntimeParams, "idle_in_transaction_session_timeout", millis(idleInTxTimeout))
	setDefault(config.RuntimeParams, "lock_timeout", millis(o.LockTimeout))
	// The statements are written for it, whatever the role's own default is.
	setDefault(config.RuntimeParams, "default_transaction_isolation", "read committed")
	// A plan that was made while a table was empty must not serve it when it
	// has a million rows: statements are described once and planned each time.
	mainConfig := config.Copy()
	mainConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	connected := func() {}
	mainConfig.AfterConnect = func(context.Context, *pgconn.PgConn) error {
		connected() // A failover ends all connections.
		return nil
	}
	open := func(config *pgx.ConnConfig, size int) *sql.DB {
		return openPool(between.through(config), size, between.place)
	}
	main := open(mainConfig, o.PoolSize)
	acquireConfig := config.Copy()
	acquireConfig.RuntimeParams["lock_timeout"] = millis(o.AcquireWait)
	db := &DB{
		main: main, read: main, lease: open(config, 2), acquire: open(acquireConfig, 2), place: between.place,
		d: postgresDialect(), backend: "postgres", log: o.Logger, metrics: newMetrics(o.Registerer), bootID: o.BootID, node: o.Node,
	}
	connected = db.ends.doubt
	db.unfit = between.unfit
	db.newPresence = func() presence { return newSessionPresence(db, config, between) }
	unlimited := config.Copy()
	unlimited.RuntimeParams["statement_timeout"] = "0"
	db.schema = postgresSchema(db.main, between.place, func() *sql.DB {
		return stdlib.OpenDB(*between.on(unlimited, func() string { return between.place.names.Load().migrating() }))
	}, migrations.Postgres())
	db.engine = &postgresEngine{db: db, stalled: o.StalledCopy}
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
		return nil, errors.New("coordination database: the postgres:// URL cannot be read; write postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full")
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
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

func openPool(config *pgx.ConnConfig, size int, p *place) *sql.DB {
	pool := sql.OpenDB(placedConnector{stdlib.GetConnector(*config), p})
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

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// postgresEngine holds the statements of PostgreSQL.
type postgresEngine struct {
	db *DB
	// stalled is the age from which a COPY counts as stalled.
	stalled time.Duration
}

package sqldb

import (
	"database/sql"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/migrations"
)

// Inspection is a coordination database that is only read. Its methods are for
// PostgreSQL alone.
type Inspection struct{ *DB }

// Inspect prepares an inspection: one pool, no settings in its sessions but those that
// PgBouncer tracks, and no prepared statements, because a pooler would hand both on to
// other clients. It does not create a missing file of SQLite. anyServer also accepts a
// server of PostgreSQL that is read-only.
func Inspect(text string, anyServer bool) (*Inspection, error) {
	if path, ok := strings.CutPrefix(text, "sqlite:"); ok {
		return inspectSQLite(path)
	}
	config, err := parsePostgres(text)
	if err != nil {
		return nil, err
	}
	setDefault(config.RuntimeParams, "application_name", "observerd doctor")
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	if anyServer {
		config.ValidateConnect = nil
	}
	between := newPooler(config, slog.New(slog.DiscardHandler))
	between.tolerant = true
	db := &Inspection{newDB(between.place.renderings, between.log)}
	db.postgres = &server{config: config, pooler: between}
	db.useOne(openPool(between.through(config), 2))
	db.readLockTable = db.catalogued
	db.schema = postgresSchema(db.Main, between.place, nil, migrations.Postgres())
	return db, nil
}

func inspectSQLite(path string) (*Inspection, error) {
	// Without the settings of a node: they would change the file's journal.
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(1)"
	pool, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("coordination database: %w", err)
	}
	pool.SetMaxOpenConns(2)
	db := &Inspection{newDB(newRenderings(sqliteDialect()), slog.New(slog.DiscardHandler))}
	db.path = path
	db.useOne(pool)
	db.schema = sqliteSchema(pool, pool, path, migrations.SQLite())
	return db, nil
}

// useOne uses one pool for everything.
func (x *Inspection) useOne(pool *sql.DB) {
	x.Main, x.Read, x.Lease, x.Acquire = pool, pool, pool, pool
}

// Hosts are the hosts of the URL with their ports, in its order.
func (x *Inspection) Hosts() []string {
	config := x.postgres.config
	hosts := []string{net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))}
	for _, other := range config.Fallbacks { // With and without TLS, perhaps.
		host := net.JoinHostPort(other.Host, strconv.Itoa(int(other.Port)))
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// TakesAnyServer reports whether the URL accepts any of its hosts, also a read-only one.
func (x *Inspection) TakesAnyServer() bool { return x.postgres.config.ValidateConnect == nil }

// Pooling is the connection pooling before PostgreSQL, as far as it is known.
func (x *Inspection) Pooling() status.Pooling { return x.postgres.pooler.Pooling() }

// Schema is the schema in which our tables are, or will be created. Run a statement
// first.
func (x *Inspection) Schema() string { return x.postgres.pooler.place.names.Load().ours }

// SearchPath are the schemas in which our tables were looked for. Run a statement first.
func (x *Inspection) SearchPath() []string { return *x.postgres.pooler.place.path.Load() }

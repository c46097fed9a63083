package sqldb

import (
	"context"
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

// Inspect prepares a DB for looking alone: one pool, no settings in its sessions, and
// nothing prepared, as a pooler may be between, and would hand both on to others. A
// missing file of SQLite is not made. anyServer takes a server of PostgreSQL that
// cannot be written, too.
func Inspect(text string, anyServer bool) (*DB, error) {
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
	db := newDB(postgresDialect(), between.log)
	db.postgres = &server{config: config, pooler: between, place: between.place}
	db.useOne(openPool(between.through(config), 2, between.place))
	db.readLockTable = func(ctx context.Context) (lockTable, error) { return readLockTable(ctx, db.Lease) }
	db.schema = postgresSchema(db.Main, between.place, nil, migrations.Postgres())
	return db, nil
}

func inspectSQLite(path string) (*DB, error) {
	// Without the settings of a node: they would change the file's journal.
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(1)"
	pool, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("coordination database: %w", err)
	}
	pool.SetMaxOpenConns(2)
	db := newDB(sqliteDialect(), slog.New(slog.DiscardHandler))
	db.path = path
	db.useOne(pool)
	db.schema = sqliteSchema(pool, pool, path, migrations.SQLite())
	return db, nil
}

// useOne makes one pool all of them.
func (db *DB) useOne(pool *sql.DB) { db.Main, db.Read, db.Lease, db.Acquire = pool, pool, pool, pool }

// Hosts are the hosts of a URL of PostgreSQL with their ports, in its order.
func (db *DB) Hosts() []string {
	config := db.postgres.config
	hosts := []string{net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))}
	for _, other := range config.Fallbacks { // With and without TLS, perhaps.
		host := net.JoinHostPort(other.Host, strconv.Itoa(int(other.Port)))
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// TakesAnyServer reports whether the URL asks for any of the hosts, also one that
// cannot be written.
func (db *DB) TakesAnyServer() bool { return db.postgres.config.ValidateConnect == nil }

// Pooling is what is known so far of a connection pooler before PostgreSQL.
func (db *DB) Pooling() status.Pooling { return db.postgres.pooler.Pooling() }

// Schema is the schema of PostgreSQL in which our tables are, or will be made, and
// SearchPath are the schemas in which they were looked for. A statement has to come first.
func (db *DB) Schema() string { return db.postgres.place.names.Load().ours }

// SearchPath is described with [DB.Schema].
func (db *DB) SearchPath() []string { return *db.postgres.place.path.Load() }

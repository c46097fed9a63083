package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
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

func openPostgres(o Options) (*DB, error) {
	config, err := pgx.ParseConfig(o.URL)
	if err != nil {
		// The parser's error may repeat parts of the URL, and it holds a password.
		return nil, errors.New("coordination database: the postgres:// URL cannot be read; write postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full")
	}
	setDefault(config.RuntimeParams, "application_name", "observerd")
	setDefault(config.RuntimeParams, "statement_timeout", millis(statementTimeout))
	setDefault(config.RuntimeParams, "idle_in_transaction_session_timeout", millis(idleInTxTimeout))
	setDefault(config.RuntimeParams, "lock_timeout", millis(o.LockTimeout))
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 5 * time.Second
	}
	// A plan that was made while a table was empty must not serve it when it
	// has a million rows: statements are described once and planned each time.
	mainConfig := config.Copy()
	mainConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	main := openPool(mainConfig, o.PoolSize)
	db := &DB{
		main: main, read: main, lease: openPool(config, 2),
		d: postgresDialect(), backend: "postgres", log: o.Logger, metrics: newMetrics(o.Registerer),
	}
	unlimited := config.Copy()
	unlimited.RuntimeParams["statement_timeout"] = "0"
	db.schema = postgresSchema(db.main, func() *sql.DB { return openPool(unlimited, 2) }, migrations.Postgres())
	db.engine = &postgresEngine{db: db, stalled: o.StalledCopy}
	return db, nil
}

func openPool(config *pgx.ConnConfig, size int) *sql.DB {
	pool := stdlib.OpenDB(*config)
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

// recognise reads which generation of Spring's table INT_LOCK is.
func (e *postgresEngine) recognise(ctx context.Context) error {
	columns := map[string]bool{}
	err := e.db.query(ctx, "look at the columns of INT_LOCK", `
		SELECT attname::text
		  FROM pg_attribute
		 WHERE attrelid = to_regclass('int_lock') AND attnum > 0 AND NOT attisdropped`,
		func(scan func(...any) error) error {
			var name string
			err := scan(&name)
			columns[name] = true
			return err
		})
	if err != nil {
		return err
	}
	for _, name := range []string{"lock_key", "region", "client_id", "created_date"} {
		if !columns[name] {
			return fmt.Errorf("%w: %s is missing", ErrMixedTable, name)
		}
	}
	e.db.table.set(columns["expired_after"])
	return nil
}

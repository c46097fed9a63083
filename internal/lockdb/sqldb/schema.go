package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/gofrs/flock"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	gooselock "github.com/pressly/goose/v3/lock"

	"github.com/observerd/observerd/internal/fn"
)

// SchemaTable remembers which migrations have run.
const SchemaTable = "obs_migration"

// schema says where the migrations are and how they run.
type schema struct {
	// up returns the versions that it has applied, also before an error.
	up    func(ctx context.Context) (applied []int64, err error)
	state func(ctx context.Context) (current, target int64, err error)
}

// Migrate brings the schema up to date. Nodes that start together run it one
// after the other, under a lock. It returns [ErrSchemaNewer] for a database
// that a newer binary has migrated, and [ErrUnreleased] for one of a commit before the first
// release, and changes nothing then.
func (db *DB) Migrate(ctx context.Context) error {
	_, err := db.MigrateBy(ctx)
	return err
}

// MigrateBy is Migrate, and returns the versions that this call has applied, also before an
// error.
func (db *DB) MigrateBy(ctx context.Context) (applied []int64, err error) {
	current, target, err := db.schema.state(ctx)
	if err != nil {
		return nil, err
	}
	if current > target {
		return nil, ErrSchemaNewer
	}
	if current == target {
		return nil, nil
	}
	if current == 0 {
		if err := db.warnOfOwner(ctx); err != nil {
			return nil, err
		}
	}
	applied, err = db.schema.up(ctx)
	switch obstacle := Obstacle(err); {
	case obstacle != "":
		err = fmt.Errorf("migrate the coordination database: %s; no step is half done: %w", obstacle, err)
	case err != nil:
		err = fmt.Errorf("migrate the coordination database: %w", err)
	}
	return applied, err
}

// SchemaVersion returns the version of the database and that of the binary.
func (db *DB) SchemaVersion(ctx context.Context) (current, target int64, err error) {
	return db.schema.state(ctx)
}

// postgresSchema migrates through a pool of its own, which migrations opens:
// its sessions have no limit on the time of a statement, and a search_path, since
// migrations do not name the schema.
func postgresSchema(pool *sql.DB, p *place, migrations func() *sql.DB, files fs.FS) schema {
	return schema{
		up: func(ctx context.Context) (applied []int64, err error) {
			migrating := migrations()
			defer func() { err = errors.Join(err, migrating.Close()) }()
			unlock, err := lockMigrations(ctx, migrating)
			if err != nil {
				return nil, fmt.Errorf("lock the migrations: %w", err)
			}
			defer func() { err = errors.Join(err, unlock()) }()
			n, err := p.look(ctx, pool) // Another client may have made tables meanwhile.
			switch {
			case err != nil:
				return nil, err
			case !n.migrated:
				err = makeVersionTable(ctx, migrating)
			case !n.kin:
				err = fmt.Errorf("%w: %s in the schema %s belongs to a role whose rights this one has not, and whose code would run with its rights; migrate as that role",
					ErrSearchPath, SchemaTable, n.ours)
			}
			if err != nil {
				return nil, err
			}
			return migrateUp(ctx, goose.DialectPostgres, migrating, files)
		},
		state: func(ctx context.Context) (int64, int64, error) {
			return postgresState(ctx, pool, p, files)
		},
	}
}

// makeVersionTable makes the table of migrations. It fails where the table exists by
// now: goose would use it whichever role has made it.
func makeVersionTable(ctx context.Context, pool *sql.DB) error {
	table, err := database.NewStore(database.DialectPostgres, SchemaTable)
	if err != nil {
		return err
	}
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	err = table.CreateVersionTable(ctx, tx)
	if err == nil {
		err = table.Insert(ctx, tx, database.InsertRequest{}) // What goose begins with.
	}
	return EndTx(tx, err)
}

// undefinedTable is the SQLSTATE of a table that is not there.
const undefinedTable = "42P01"

// postgresState looks once more for tables that are not where they were.
func postgresState(ctx context.Context, pool *sql.DB, p *place, files fs.FS) (current, target int64, err error) {
	made := func() (string, error) {
		n, err := p.look(ctx, pool)
		if err != nil || !n.migrated {
			return "", err
		}
		return pgx.Identifier{n.ours, SchemaTable}.Sanitize(), nil
	}
	current, target, err = schemaState(ctx, goose.DialectPostgres, pool, files, made)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == undefinedTable {
		p.forget()
		current, target, err = schemaState(ctx, goose.DialectPostgres, pool, files, made)
	}
	return current, target, err
}

// lockMigrations waits until no other client migrates. A transaction of its own holds the
// lock: behind a pooler in transaction mode the unlocking of a session may meet
// another session. All versions of this program lock the same key.
func lockMigrations(ctx context.Context, pool *sql.DB) (unlock func() error, err error) {
	tx, err := pool.BeginTx(context.WithoutCancel(ctx), nil) // It is ended after the migrations, not beside them.
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{
		`SELECT set_config('statement_timeout', '0', TRUE), set_config('lock_timeout', '0', TRUE), set_config('idle_in_transaction_session_timeout', '0', TRUE)`,
		fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, gooselock.DefaultLockID),
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return nil, errors.Join(err, Rollback(tx))
		}
	}
	return func() error { return Rollback(tx) }, nil
}

// sqliteSchema protects the migrations with a lock on a file beside the
// database: SQLite's own lock is given back between two migrations.
// Looking goes through the readers, so that it waits for no writer.
func sqliteSchema(pool, readers *sql.DB, path string, files fs.FS) schema {
	return schema{
		up: func(ctx context.Context) (applied []int64, err error) {
			migrating := flock.New(path + ".migrate.lock")
			if _, err := migrating.TryLockContext(ctx, 50*time.Millisecond); err != nil {
				return nil, fmt.Errorf("lock the migrations: %w", err)
			}
			defer func() { err = errors.Join(err, migrating.Unlock()) }()
			return migrateUp(ctx, goose.DialectSQLite3, pool, files)
		},
		state: func(ctx context.Context) (int64, int64, error) {
			made := func() (table string, err error) {
				err = readers.QueryRowContext(ctx, `SELECT coalesce(max(name), '') FROM sqlite_master WHERE name = '`+SchemaTable+`'`).Scan(&table)
				return table, err
			}
			current, target, err := schemaState(ctx, goose.DialectSQLite3, readers, files, made)
			return current, target, noDatabase(path, err)
		},
	}
}

func migrateUp(ctx context.Context, d goose.Dialect, pool *sql.DB, files fs.FS) (applied []int64, err error) {
	provider, err := newGoose(d, pool, files)
	if err != nil {
		return nil, err
	}
	done, err := provider.Up(ctx)
	if partial, ok := errors.AsType[*goose.PartialError](err); ok {
		done = partial.Applied
	}
	return fn.Each(done, func(m *goose.MigrationResult) int64 { return m.Source.Version }), err
}

// schemaState compares without writing: goose would create its table. made returns that
// table's name; empty where there is none.
func schemaState(ctx context.Context, d goose.Dialect, pool *sql.DB, files fs.FS, made func() (string, error)) (current, target int64, err error) {
	provider, err := newGoose(d, pool, files)
	if err != nil {
		return 0, 0, err
	}
	sources := provider.ListSources() // In their order.
	first, target := sources[0].Version, sources[len(sources)-1].Version
	table, err := made()
	if err != nil {
		return 0, 0, fmt.Errorf("look at the schema of the coordination database: %w", err)
	}
	if table == "" {
		return 0, target, nil
	}
	err = pool.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+table).Scan(&current)
	if err != nil {
		return 0, 0, fmt.Errorf("look at the schema of the coordination database: %w", err)
	}
	if current > 0 && current < first {
		return 0, 0, ErrUnreleased
	}
	return current, target, nil
}

func newGoose(d goose.Dialect, pool *sql.DB, files fs.FS) (*goose.Provider, error) {
	return goose.NewProvider(d, pool, files, goose.WithTableName(SchemaTable), goose.WithDisableGlobalRegistry(true))
}

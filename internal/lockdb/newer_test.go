package lockdb_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/locks/database"
	"github.com/observerd/observerd/migrations"
)

// TestNodeGoesOnBesideANewerOne has a newer binary migrate the tables of a node that is at
// work: its next release adds a column to each of them, and a table, and its nodes write
// another mark. What the node has begun goes on, and so do its statements, which its
// sessions have prepared by then.
func TestNodeGoesOnBesideANewerOne(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		ctx, leases := t.Context(), db.Leases()
		general := database.On(db, slog.New(slog.DiscardHandler))
		share := func() lock.Grant {
			t.Helper()
			r := request("shared")
			r.Mode = lock.Shared
			g, err := general.Acquire(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		g, shared := acquire(t, db, "order-observer-poll"), share()
		s := db.Store(g)
		cursor := cursorOf(t, s, "orders")
		sweep := startSweep(t, db, "orders", observer.SweepBackfill).ID
		work := func() {
			t.Helper()
			for _, n := range []int{3, 2500} { // By one statement, and by COPY.
				cursor = mustCommit(t, s, step(cursor, n, sweep, fmt.Sprint(2021+cursor.Version)))
			}
			if now := cursorOf(t, s, "orders"); now != cursor {
				t.Errorf("the cursor is\n%+v, want\n%+v", now, cursor)
			}
			if renewed, err := general.Renew(ctx, []lock.Grant{g, shared}); err != nil || renewed[0] != lock.Renewed || renewed[1] != lock.Renewed {
				t.Errorf("renewal: %v, %v", renewed, err)
			}
			other := share()
			_, held := leases.Acquire(ctx, request("order-observer-poll"))
			_, found := general.Find(ctx, lock.Query{Region: "DEFAULT", Limit: 10})
			_, turns := db.Turns().Turn(ctx, "order", request("order-observer-poll"))
			_, sweeps := db.Sweeps().Latest(ctx, "")
			_, streams := db.Streams().Statuses(ctx)
			if err := errors.Join(general.Release(ctx, other), found, turns, sweeps, streams); err != nil || !errors.Is(held, lock.ErrHeld) {
				t.Errorf("%v; an acquisition: %v", err, held)
			}
		}
		work()
		migrateFurther(t, url)
		for _, err := range []error{db.Ready(ctx), db.Migrate(ctx)} { // At its next start.
			if !errors.Is(err, sqldb.ErrSchemaNewer) {
				t.Errorf("the node says %v", err)
			}
		}
		update := `UPDATE obs_cursor SET marks = '{"mark_of_the_next":[1]}'`
		exec(ctx, t, url, map[string]string{"sqlite": update, "postgres": update})
		cursor = cursorOf(t, s, "orders")
		work()
		if n := count(t, url, `SELECT count(*) FROM obs_cursor WHERE marks LIKE '%"identity":"test:%"mark_of_the_next":[1]%'`); n != 1 {
			t.Error("a mark of the newer node is gone")
		}
		if n := count(t, url, `SELECT count(*) FROM obs_event WHERE of_the_next = 'none'`); n != 2*2503 {
			t.Errorf("%d events", n)
		}
	})
}

// migrateFurther runs the migrations of the next release.
func migrateFurther(t *testing.T, url string) {
	t.Helper()
	pool, dialect := raw(t, url)
	of := map[string]struct {
		goose goose.Dialect
		files fs.FS
		from  string
	}{
		"sqlite":   {goose.DialectSQLite3, migrations.SQLite(), `sqlite_master WHERE type = 'table' AND`},
		"postgres": {goose.DialectPostgres, migrations.Postgres(), `(SELECT tablename AS name FROM pg_tables) t WHERE`},
	}[dialect]
	next := []string{"-- +goose Up", "CREATE TABLE obs_next (id INTEGER PRIMARY KEY);"}
	for _, table := range names(t, pool, `SELECT name FROM `+of.from+` name LIKE 'obs\_%' ESCAPE '\' AND name NOT IN ('obs_migration', 'obs_fence')`) {
		next = append(next, `ALTER TABLE `+table+` ADD COLUMN of_the_next TEXT NOT NULL DEFAULT 'none';`)
	}
	if len(next) < 17 {
		t.Fatalf("the next release changes %q", next)
	}
	files := fstest.MapFS{"99999_next.sql": {Data: []byte(strings.Join(next, "\n"))}}
	all, err := fs.Glob(of.files, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		text, err := fs.ReadFile(of.files, name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	provider, err := goose.NewProvider(of.goose, pool, files, goose.WithTableName(sqldb.SchemaTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// names reads a column.
func names(t *testing.T, pool *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := pool.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		all = append(all, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

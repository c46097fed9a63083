package lockdb_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// empty runs a test on a database of each dialect that was never migrated, and through
// a pooler in transaction mode.
func empty(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, "sqlite:"+filepath.Join(t.TempDir(), "new", "observerd.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, pgtest.New(t))
	})
	t.Run("pooled", func(t *testing.T) {
		t.Parallel()
		for name, tracker := range trackers(t) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, tracker(t, pgtest.New(t)))
			})
		}
	})
}

func TestPendingMigrationsAreNotReady(t *testing.T) {
	t.Parallel()
	empty(t, func(t *testing.T, url string) {
		db := open(t, url)
		if err := db.Ready(t.Context()); !errors.Is(err, sqldb.ErrPending) || !errors.Is(err, sqldb.ErrNoTables) {
			t.Fatalf("before the migrations: %v", err)
		}
		for range 2 {
			if err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		current, target, err := db.SQL().SchemaVersion(t.Context())
		if err != nil || current != target || current == 0 {
			t.Errorf("schema %d of %d, %v", current, target, err)
		}
	})
}

func TestNodesMigrateTogether(t *testing.T) {
	t.Parallel()
	empty(t, func(t *testing.T, url string) {
		var nodes sync.WaitGroup
		for range 5 {
			db := open(t, url)
			nodes.Go(func() {
				if err := db.Migrate(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		nodes.Wait()
		if n := count(t, url, `SELECT count(*) - count(DISTINCT version_id) FROM obs_migration`); n != 0 {
			t.Errorf("%d migrations are noted twice", n)
		}
	})
}

// TestOtherSchemasAreRefused has tables of a newer release, and of commits before the first.
func TestOtherSchemasAreRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		for version, want := range map[int]error{99999: sqldb.ErrSchemaNewer, 19: sqldb.ErrUnreleased, 1: sqldb.ErrUnreleased} {
			update := fmt.Sprintf(`UPDATE obs_migration SET version_id = %d WHERE version_id > 0`, version)
			exec(t.Context(), t, url, map[string]string{"sqlite": update, "postgres": update})
			for name, err := range map[string]error{"ready": db.Ready(t.Context()), "migrate": db.Migrate(t.Context())} {
				if !errors.Is(err, want) {
					t.Errorf("version %d, %s: %v", version, name, err)
				}
			}
		}
	})
}

// TestSpringsTableIsLeftAlone shows that a table of Spring Integration 6 is
// used as it is, with the rows that are in it.
func TestSpringsTableIsLeftAlone(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	exec(t.Context(), t, url, map[string]string{"postgres": `
		CREATE TABLE INT_LOCK (
		  LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), CREATED_DATE TIMESTAMP NOT NULL,
		  constraint INT_LOCK_PK primary key (LOCK_KEY, REGION))`})
	exec(t.Context(), t, url, map[string]string{"postgres": `
		INSERT INTO INT_LOCK VALUES ('order-observer-poll', 'DEFAULT', 'java', clock_timestamp() AT TIME ZONE 'UTC')`})
	db := open(t, url)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(t, url, `SELECT count(*) FROM pg_index WHERE indrelid = 'int_lock'::regclass`); n != 1 {
		t.Errorf("Spring's table has %d indexes, want its own alone", n)
	}
	if n := count(t, url, `SELECT count(*) FROM pg_trigger WHERE tgrelid = 'int_lock'::regclass`); n != 0 {
		t.Errorf("%d triggers hang on Spring's table", n)
	}
	if _, err := db.Leases().Acquire(t.Context(), request("order-observer-poll")); err == nil {
		t.Error("the lock of a Java node was taken")
	}
	acquire(t, db, "wes-observer-poll")
}

func TestForeignTableIsRefused(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	exec(t.Context(), t, url, map[string]string{"postgres": `CREATE TABLE INT_LOCK (id INTEGER)`})
	db := open(t, url)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Ready(t.Context()); !errors.Is(err, sqldb.ErrMixedTable) {
		t.Errorf("a table of somebody else: %v", err)
	}
}

func TestUnusableURLs(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "mysql://x", "sqlite:", "sqlite::memory:", "postgres://user:hunter2@host:port/db"} {
		db, err := lockdb.Open(lockdb.Options{URL: url})
		if err == nil {
			_ = db.Close()
			t.Errorf("%q was accepted", url)
			continue
		}
		if s := err.Error(); len(s) < 20 || contains(s, "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func TestDatabaseThatIsDownIsUnavailable(t *testing.T) {
	t.Parallel()
	db := open(t, "postgres://observerd:hunter2@127.0.0.1:1/none?sslmode=disable&connect_timeout=1")
	err := db.Ready(t.Context())
	if !sqldb.Unavailable(err) || contains(err.Error(), "hunter2") {
		t.Errorf("nobody listens there: %v", err)
	}
}

// TestTableMayChangeWhileNodesRun covers the migration from Spring Integration
// 6 to 7 under nodes that are at work.
func TestTableMayChangeWhileNodesRun(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	db := open(t, url)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t.Context(), t, url, map[string]string{"postgres": `ALTER TABLE INT_LOCK ADD EXPIRED_AFTER TIMESTAMP NOT NULL`})
	acquire(t, db, "order-observer-poll")
	if n := count(t, url, `SELECT count(*) FROM int_lock WHERE expired_after > clock_timestamp() AT TIME ZONE 'UTC'`); n != 1 {
		t.Error("the lease has no expiry of its own")
	}
}

// TestMigrationsBehindABusyPooler has other clients that take every session of the pool
// while a node migrates: it must not need one of those again.
func TestMigrationsBehindABusyPooler(t *testing.T) {
	t.Parallel()
	for name, tracker := range trackers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			db, _ := raw(t, database)
			// The table of an earlier attempt, which can be read for now.
			if _, err := db.ExecContext(t.Context(), `CREATE TABLE obs_migration (id int PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY,
				version_id bigint NOT NULL, is_applied boolean NOT NULL, tstamp timestamp NOT NULL DEFAULT now());
				INSERT INTO obs_migration (version_id, is_applied) VALUES (0, TRUE)`); err != nil {
				t.Fatal(err)
			}
			held, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := held.ExecContext(t.Context(), `LOCK TABLE obs_migration IN EXCLUSIVE MODE`); err != nil {
				t.Fatal(err)
			}
			pooled := tracker(t, database)
			node, done := open(t, pooled), make(chan error, 1)
			go func() { done <- node.Migrate(t.Context()) }()
			eventually(t, func() error {
				if count(t, database, `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'obs_migration'::regclass`) == 0 {
					return errors.New("no migration waits")
				}
				return nil
			})
			release := use(t, pooled, 3)
			if err := errors.Join(held.Rollback(), <-done); err != nil {
				t.Error(err)
			}
			release()
			untouched(t, pooled)
		})
	}
}

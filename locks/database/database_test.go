package database_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/database"
	"github.com/observerd/observerd/test/kit/lockdbtest"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) {
	servertest.SideBySide(10)
	waittest.VerifyNoLeaks(pgtest.Wrap(m))
}

// springSeven is INT_LOCK as Spring Integration 7 makes it.
const springSeven = `CREATE TABLE INT_LOCK (
	LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36),
	CREATED_DATE TIMESTAMP NOT NULL, EXPIRED_AFTER TIMESTAMP NOT NULL, PRIMARY KEY (LOCK_KEY, REGION))`

// onBoth runs a test on migrated databases.
func onBoth(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	for name, url := range map[string]func(*testing.T) string{
		"sqlite":                      func(t *testing.T) string { return lockdbtest.SQLite(t) },
		"postgres":                    func(t *testing.T) string { return lockdbtest.Postgres(t, "") },
		"postgres with EXPIRED_AFTER": func(t *testing.T) string { return lockdbtest.Postgres(t, springSeven) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, url(t))
		})
	}
}

// open returns a manager as another process would have it.
func open(t *testing.T, url, node string) *locks.Manager {
	t.Helper()
	return openWith(t, url, locks.Options{Node: node})
}

func openWith(t *testing.T, url string, o locks.Options) *locks.Manager {
	t.Helper()
	p, err := database.Open(t.Context(), url, database.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o.Provider = p
	m, err := locks.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return m
}

var audit = locks.Descriptor{
	Subject: "audit", Predicate: "processing", Resources: []string{"status-reconciliation"}, TTL: 5 * time.Minute,
	Metadata: map[string]string{"purpose": "quarterly \"audit\"", "scope": "all"},
}

func acquire(t *testing.T, m *locks.Manager, d locks.Descriptor) *locks.Lease {
	t.Helper()
	l, err := m.Acquire(t.Context(), d, locks.FailFast())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// pool is the database as the caller of the library has it.
func pool(t *testing.T, url string) *sql.DB {
	t.Helper()
	driver, source := "pgx", url
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, source = "sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_txlock=immediate"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestLocksOfTwoProcesses(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		a, b := open(t, url, "a"), open(t, url, "b")
		l := acquire(t, a, audit)
		held := refused(t, b, audit)
		if held.Node != "a" || held.Left <= 4*time.Minute || held.Left > audit.TTL {
			t.Errorf("%+v", held)
		}
		db := pool(t, url)
		var name, descriptor, metadata string
		if err := db.QueryRowContext(t.Context(), `SELECT name, descriptor, metadata FROM obs_lock`).Scan(&name, &descriptor, &metadata); err != nil {
			t.Fatal(err)
		}
		if name != audit.Key() || descriptor != audit.String() || metadata != `{"purpose":"quarterly \"audit\"","scope":"all"}` {
			t.Errorf("the row says %s, %s, %s", name, descriptor, metadata)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		next := acquire(t, b, audit)
		if next.Fence() <= l.Fence() || next.Term() == l.Term() {
			t.Errorf("fence %d after %d", next.Fence(), l.Fence())
		}
	})
}

// A contender with a short TTL waits for the holder's, which was extended.
func TestExtendedLeaseKeepsContendersOut(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		a, b := open(t, url, "a"), open(t, url, "b")
		short := audit
		short.TTL = time.Second
		l := acquire(t, a, audit)
		if err := l.Extend(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		back := `UPDATE int_lock SET created_date = created_date - interval '10 minutes'`
		if strings.HasPrefix(url, "sqlite:") {
			back = `UPDATE int_lock SET created_date = strftime('%Y-%m-%d %H:%M:%f000', created_date, '-10 minutes')`
		}
		if _, err := pool(t, url).ExecContext(t.Context(), back); err != nil {
			t.Fatal(err)
		}
		if held := refused(t, b, short); held.Left < 49*time.Minute {
			t.Errorf("%+v", held)
		}
	})
}

// refused returns the refusal of a lock with its holder, which a busy server may not tell in time.
func refused(t *testing.T, m *locks.Manager, d locks.Descriptor) (held *locks.HeldError) {
	t.Helper()
	waittest.Eventually(t, time.Minute, func() error {
		l, err := m.Acquire(t.Context(), d, locks.FailFast())
		if err == nil {
			t.Fatalf("%s was acquired", l.Descriptor())
		}
		if !errors.As(err, &held) || held.Node == "" {
			return err
		}
		return nil
	})
	return held
}

// INT_LOCK gets EXPIRED_AFTER while an extension finds the row locked.
func TestExtensionFollowsTheTableThatChanges(t *testing.T) {
	t.Parallel()
	for _, d := range []locks.Descriptor{audit, reading} {
		t.Run(d.Subject, func(t *testing.T) {
			t.Parallel()
			url := lockdbtest.Postgres(t, "")
			m, db := open(t, url, "a"), pool(t, url)
			do := func(query string) {
				t.Helper()
				if _, err := db.ExecContext(t.Context(), query); err != nil {
					t.Fatal(err)
				}
			}
			l := acquire(t, m, d)
			do(`CREATE SEQUENCE tries`)
			do(`CREATE FUNCTION locked() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS
				$$ BEGIN PERFORM nextval('tries'); RAISE EXCEPTION USING ERRCODE = 'lock_not_available'; END $$`)
			do(`CREATE TRIGGER locked BEFORE UPDATE ON int_lock FOR EACH ROW EXECUTE FUNCTION locked()`)
			extended := make(chan error, 1)
			go func() { extended <- l.Extend(t.Context(), time.Hour) }()
			waittest.Eventually(t, time.Minute, func() (err error) {
				if tries := rowsOf(t, db, `SELECT 1 FROM tries WHERE is_called`); len(tries) == 0 {
					err = errors.New("the extension has not begun")
				}
				return err
			})
			do(`ALTER TABLE int_lock ADD expired_after TIMESTAMP NOT NULL DEFAULT (now() AT TIME ZONE 'UTC' + interval '5 minutes')`)
			do(`ALTER TABLE int_lock ALTER expired_after DROP DEFAULT`)
			other := audit
			other.Resources = []string{"other"}
			acquire(t, m, other) // Which tells the process.
			do(`DROP TRIGGER locked ON int_lock`)
			if err := <-extended; err != nil {
				t.Fatal(err)
			}
			if long := rowsOf(t, db, `SELECT 1 FROM int_lock WHERE expired_after > now() AT TIME ZONE 'UTC' + interval '50 minutes'`); len(long) != 1 {
				t.Error("the expiry is not that of the extension")
			}
		})
	}
}

func TestShortestTTL(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		short, least := audit, time.Second
		short.TTL = time.Millisecond
		if strings.HasPrefix(url, "sqlite:") {
			least = 15 * time.Second
		}
		if l := acquire(t, open(t, url, "a"), short); l.TTL() != least || l.Descriptor().TTL != least {
			t.Errorf("TTL %s, want %s", l.TTL(), least)
		}
	})
}

// The lease is lost in the middle of the caller's work: what it writes after that must
// not be committed.
func TestGuard(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		m, db := open(t, url, "a"), pool(t, url)
		l := acquire(t, m, audit)
		write := func() error {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			if err := l.Guard(t.Context(), tx); err != nil {
				return err
			}
			return tx.Commit()
		}
		if err := write(); err != nil {
			t.Fatalf("under the lock: %v", err)
		}
		if _, err := db.ExecContext(t.Context(), `DELETE FROM int_lock`); err != nil { // As an operator may release it.
			t.Fatal(err)
		}
		if err := write(); !errors.Is(err, locks.ErrFenced) {
			t.Errorf("after the lease has ended: %v, want ErrFenced", err)
		}
		select { // Its next renewal would be in 100 s.
		case <-l.Context().Done():
			if cause := context.Cause(l.Context()); !errors.Is(cause, locks.ErrLost) {
				t.Errorf("the context ends with %v, want ErrLost", cause)
			}
		case <-time.After(time.Minute):
			t.Error("the context has not ended")
		}
		acquire(t, open(t, url, "b"), audit)
		if err := write(); !errors.Is(err, locks.ErrFenced) {
			t.Errorf("after another has the lock: %v, want ErrFenced", err)
		}
	})
}

// A transaction that is guarded keeps a thief out until it ends.
func TestGuardedTransactionIsNotOvertaken(t *testing.T) {
	t.Parallel()
	url := lockdbtest.Postgres(t, "")
	m, other := open(t, url, "a"), open(t, url, "b")
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	l := acquire(t, m, audit)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Guard(t.Context(), database.Tx(tx)); err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	go func() { released <- l.Release(t.Context()) }() // The row is locked: it waits.
	if _, err := other.Acquire(t.Context(), audit, locks.Within(500*time.Millisecond)); !errors.Is(err, locks.ErrHeld) {
		t.Errorf("the lock was taken beside a guarded transaction: %v", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-released; err != nil {
		t.Errorf("release: %v", err)
	}
	if _, err := other.Acquire(t.Context(), audit, locks.Within(10*time.Second)); err != nil {
		t.Error(err)
	}
}

// A transaction that keeps its snapshot begins with Guard. One that has read before cannot see
// a renewal that came since: it fails with 40001, which says nothing of the lease, and begins
// anew. Under a lease that has ended it fails in either order.
func TestGuardInATransactionWithASnapshot(t *testing.T) {
	t.Parallel()
	url := lockdbtest.Postgres(t, "")
	m, db := open(t, url, "a"), pool(t, url)
	write := func(level sql.IsolationLevel, l *locks.Lease, since func() error) error {
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if since != nil {
			if err := tx.QueryRowContext(t.Context(), `SELECT count(*) FROM obs_node`).Scan(new(int)); err != nil {
				t.Fatal(err)
			}
			if err := since(); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Guard(t.Context(), tx); err != nil {
			return err
		}
		return tx.Commit()
	}
	serialization := func(err error) bool {
		refused, ok := errors.AsType[*pgconn.PgError](err)
		return ok && refused.Code == "40001" && !errors.Is(err, locks.ErrFenced)
	}
	for _, level := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
		for _, d := range []locks.Descriptor{audit, reading} {
			l := acquire(t, m, d)
			renew := func() error { return l.Extend(t.Context(), l.TTL()) }
			if err := write(level, l, func() error { return nil }); err != nil {
				t.Errorf("%s, %s: after a read: %v", level, d, err)
			}
			if err := write(level, l, renew); !serialization(err) {
				t.Errorf("%s, %s: after a read and a renewal: %v, want 40001", level, d, err)
			}
			if err := write(level, l, nil); err != nil {
				t.Errorf("%s, %s: anew: %v", level, d, err)
			}
			var thief *locks.Lease
			lose := func() (err error) {
				thief, err = m.Steal(t.Context(), find(t, m, l), d)
				return err
			}
			if err := write(level, l, lose); !serialization(err) {
				t.Errorf("%s, %s: after a read and a theft: %v, want 40001", level, d, err)
			}
			if err := write(level, l, nil); !errors.Is(err, locks.ErrFenced) {
				t.Errorf("%s, %s: anew after the theft: %v, want ErrFenced", level, d, err)
			}
			release(t, thief)
		}
	}
}

func TestDatabasesThatAreNotReady(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none.db")
	if _, err := database.Open(t.Context(), "sqlite:"+path, database.Options{}); !errors.Is(err, database.ErrPending) {
		t.Errorf("without a file: %v, want ErrPending", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the library has made a database: %v", err)
	}
	if _, err := database.Open(t.Context(), pgtest.New(t), database.Options{}); !errors.Is(err, database.ErrPending) {
		t.Errorf("without tables: %v, want ErrPending", err)
	}
	for url, want := range map[string]string{
		"mysql://x":                              "use sqlite:PATH or postgres://",
		"postgres://nobody:secret@127.0.0.1:1/x": "coordination database",
	} {
		if _, err := database.Open(t.Context(), url, database.Options{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

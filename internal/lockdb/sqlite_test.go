package lockdb_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdbtest"
)

// TestStoppedWriterStopsTheOthers holds the docs to what they say of SQLite: a
// process that is stopped in a transaction is waited for, whatever has expired
// meanwhile, and the others go on when it has gone.
func TestStoppedWriterStopsTheOthers(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "observerd.db")
	db := open(t, url)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := acquire(t, db, "order-observer-poll")
	expire(t.Context(), t, url, g)

	stopped, _ := raw(t, url)
	conn, err := stopped.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	take := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := db.Leases().Acquire(ctx, lock.Request{Key: g.Key, Region: g.Region, TTL: time.Minute})
		return err
	}
	if err := take(300 * time.Millisecond); !lockdb.Unavailable(err) {
		t.Errorf("a lease was acquired beside a process that is stopped in a transaction: %v", err)
	}
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := take(time.Minute); err != nil {
		t.Errorf("acquire after it has gone: %v", err)
	}
}

// TestCommitEncodesBeforeTheWriteLock has another process take the write lock
// whenever a commit encodes something: a process that is stopped there must stop
// nobody.
func TestCommitEncodesBeforeTheWriteLock(t *testing.T) {
	t.Parallel()
	url := lockdbtest.SQLite(t)
	db := open(t, url)
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := db.Store(acquire(t, db, "order-observer-poll"))
	ch := chunk(cursorOf(t, s, "orders"), 3)
	other, _ := raw(t, url)
	other.SetMaxOpenConns(1)
	if _, err := other.ExecContext(t.Context(), "PRAGMA busy_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	encoded := 0
	db.OnEncode(func() {
		encoded++
		if _, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE; ROLLBACK"); err != nil {
			t.Errorf("the commit encodes while it holds the write lock: %v", err)
		}
	})
	mustCommit(t, s, ch)
	if want := len(ch.Events); encoded < want {
		t.Errorf("%d values were encoded, want at least %d", encoded, want)
	}
}

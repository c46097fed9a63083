package lockdb_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/turn"
	"github.com/observerd/observerd/test/kit/lockdbtest"
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

// TestLineBeforeTheFileIsBusy has another process hold the write lock. The call that
// waits for it tells that the database does not answer; those that stand in line
// behind that call, on this node, tell that all connections are busy.
func TestLineBeforeTheFileIsBusy(t *testing.T) {
	t.Parallel()
	url := lockdbtest.SQLite(t)
	db := open(t, url)
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	held := acquire(t, db, "ours")
	stopped, _ := raw(t, url)
	tx, err := stopped.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	calls := map[string]func(ctx context.Context) error{
		"acquire":  func(ctx context.Context) error { _, err := db.Leases().Acquire(ctx, request("c")); return err },
		"the note": func(ctx context.Context) error { return db.NoteStream(ctx, held, turn.StreamTaken{Stream: "c"}) },
		"the turn": func(ctx context.Context) error { return db.TakeTurn(ctx, held, turn.Taken{Type: "c"}) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	for what, call := range calls {
		first := make(chan error, 1)
		waiting.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			first <- call(ctx)
		})
		_, before := db.Line()
		eventually(t, func() error {
			if inUse, _ := db.Line(); inUse == 0 {
				return errors.New("nobody waits for the file")
			}
			return nil
		})
		// It has the connection as soon as the first gives it back.
		next, leave := context.WithCancel(ctx)
		waiting.Go(func() {
			for next.Err() == nil { // An attempt ends after a while.
				_ = db.TakeTurn(next, held, turn.Taken{Type: "next"})
			}
		})
		eventually(t, func() error {
			if _, now := db.Line(); now == before {
				return errors.New("nobody stands in line")
			}
			return nil
		})
		if err := <-first; !lockdb.Unavailable(err) || errors.Is(err, turn.ErrBusy) {
			t.Errorf("%s: %v, want that the database does not answer", what, err)
		}
		eventually(t, func() error { // A call may come between two attempts.
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			if err := call(ctx); !errors.Is(err, turn.ErrBusy) {
				return fmt.Errorf("%s: %w, want that all connections are busy", what, err)
			}
			return nil
		})
		leave()
		eventually(t, func() error {
			if inUse, _ := db.Line(); inUse > 0 {
				return errors.New("somebody waits for the file")
			}
			return nil
		})
	}
	if _, err := tx.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
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

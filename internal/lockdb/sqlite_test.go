package lockdb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
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
	if err := take(300 * time.Millisecond); !sqldb.Unavailable(err) {
		t.Errorf("a lease was acquired beside a process that is stopped in a transaction: %v", err)
	}
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := take(time.Minute); err != nil {
		t.Errorf("acquire after it has gone: %v", err)
	}
}

// TestEmptiedFenceIsRefilled empties the counter of the fencing tokens: each way to draw one
// goes on past all that were drawn.
func TestEmptiedFenceIsRefilled(t *testing.T) {
	t.Parallel()
	shared := lock.Request{Key: "shared", Region: "LOCKS", TTL: time.Minute, Mode: lock.Shared}
	for name, draw := range map[string]func(ctx context.Context, db *lockdb.DB) (int64, error){
		"a lock": func(ctx context.Context, db *lockdb.DB) (int64, error) {
			g, err := db.Leases().Acquire(ctx, lock.Request{Key: "alone", Region: "LOCKS", TTL: time.Minute})
			return g.Fence, err
		},
		"a lock that is shared": func(ctx context.Context, db *lockdb.DB) (int64, error) {
			g, err := general(db).Acquire(ctx, shared)
			return g.Fence, err
		},
		"a place in line": func(ctx context.Context, db *lockdb.DB) (int64, error) {
			r := shared
			r.Place.ID = "c"
			turns, err := general(db).Wait(ctx, []lock.Request{r})
			if err != nil {
				return 0, err
			}
			return turns[0].Ticket, nil
		},
	} {
		for table, fill := range map[string]string{
			"obs_lock": `UPDATE obs_lock SET fence = 4000000000000000`, "obs_hold": `UPDATE obs_hold SET fence = 4000000000000000`,
			"obs_wait":        `UPDATE obs_wait SET ticket = 4000000000000000`,
			"all have gone":   `UPDATE obs_lock SET fence = 1`,
			"obs_sink_offset": `INSERT INTO obs_sink_offset (sink, stream, last_seq, epoch, updated_at) VALUES ('a', 'a', 1, 4000000000000000, '')`,
		} {
			t.Run(name+" after "+table, func(t *testing.T) {
				t.Parallel()
				url := "sqlite:" + filepath.Join(t.TempDir(), "observerd.db")
				db := open(t, url)
				if err := db.Migrate(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := general(db).Acquire(t.Context(), shared); err != nil {
					t.Fatal(err)
				}
				waits := shared
				waits.Place.ID = "w"
				if _, err := general(db).Wait(t.Context(), []lock.Request{waits}); err != nil {
					t.Fatal(err)
				}
				file, _ := raw(t, url)
				for _, text := range []string{fill, `DELETE FROM obs_fence`} {
					if _, err := file.ExecContext(t.Context(), text); err != nil {
						t.Fatal(err)
					}
				}
				drawn := int64(4_000_000_000_000_000)
				if table == "all have gone" {
					drawn = 1_000_000_000_000 // A thousand a second for 31 years.
				}
				n, err := draw(t.Context(), db)
				if err != nil || n <= drawn {
					t.Errorf("drew %d, %v, after %d", n, err, drawn)
				}
				var last, rows int64
				if err := file.QueryRowContext(t.Context(), `SELECT max(last_value), count(*) FROM obs_fence`).Scan(&last, &rows); err != nil || last != n || rows != 1 {
					t.Errorf("the last is %d in %d rows, %v", last, rows, err)
				}
			})
		}
	}
}

// TestLineBeforeTheFileIsBusy has another process hold the write lock. The call that
// waits for it reports that the database does not answer; a call that finds the
// connection taken, on this node, reports that all connections are busy.
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
		"acquire": func(ctx context.Context) error { _, err := db.Leases().Acquire(ctx, request("c")); return err },
		"the note": func(ctx context.Context) error {
			return db.Turns().NoteStream(ctx, held, turn.StreamTaken{Stream: "c"})
		},
		"the turn": func(ctx context.Context) error { return db.Turns().TakeTurn(ctx, held, turn.Taken{Type: "c"}) },
	}
	try := func(call func(ctx context.Context) error, within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return call(ctx)
	}
	var waiting sync.WaitGroup
	defer waiting.Wait()
	for what, call := range calls {
		first := make(chan error, 1)
		waiting.Go(func() { first <- try(call, 2*time.Second) })
		eventually(t, func() error {
			if !db.Occupied() {
				return fmt.Errorf("%s: the call does not wait for the file", what)
			}
			return nil
		})
		release := db.Occupy(t) // From the first call, when its time is over.
		if err := <-first; !sqldb.Unavailable(err) || errors.Is(err, turn.ErrBusy) {
			t.Errorf("%s: %v, want that the database does not answer", what, err)
		}
		if err := try(call, 50*time.Millisecond); !errors.Is(err, turn.ErrBusy) {
			t.Errorf("%s: %v, want that all connections are busy", what, err)
		}
		release()
	}
	if _, err := tx.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
}

// TestCommitEncodesBeforeTheWriteLock has another process take the write lock
// whenever a commit encodes something: a process that is stopped there must stop
// no other.
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

// TestFileIsTakenAway takes the file away from a process, puts another in its place, and puts the
// file back. Nothing is written into one that other processes do not have, and none is made.
func TestFileIsTakenAway(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "observerd.db")
	db := open(t, "sqlite:"+path)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := acquire(t, db, "order-observer-poll")
	move := func(from, to string) {
		t.Helper()
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Rename(from+suffix, to+suffix); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Each of many needs a connection, of which most are new.
	attempts := func() (failed []error) {
		t.Helper()
		all := make([]error, 22)
		all[20], all[21] = db.Ready(t.Context()), db.Turns().TakeTurn(t.Context(), g, turn.Taken{Type: "order", At: time.Now(), Node: "a"})
		var wait sync.WaitGroup
		for i := range 20 {
			wait.Go(func() { _, all[i] = db.Turns().Turn(t.Context(), "order", lock.Request{Key: g.Key, Region: g.Region}) })
		}
		wait.Wait()
		return all
	}
	gone := func(what string) {
		t.Helper()
		for _, err := range attempts() {
			if !errors.Is(err, sqldb.ErrReplaced) {
				t.Fatalf("%s: %v, want ErrReplaced", what, err)
			}
		}
	}
	aside := path + ".aside"
	move(path, aside)
	gone("the file is gone")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
	other := open(t, "sqlite:"+path)
	if err := errors.Join(other.Migrate(t.Context()), other.Close()); err != nil {
		t.Fatal(err)
	}
	gone("another is there")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	move(aside, path)
	if err := errors.Join(attempts()...); err != nil {
		t.Errorf("the file is back: %v", err)
	}
}

// TestFileBehindALink makes the file that a link leads to, as one to another volume does at first.
func TestFileBehindALink(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path, target := filepath.Join(folder, "observerd.db"), filepath.Join(folder, "real.db")
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	if err := open(t, "sqlite:"+path).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode()&0o007 != 0 {
		t.Errorf("the file: %v, %v", info, err)
	}
}

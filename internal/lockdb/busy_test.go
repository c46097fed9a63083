package lockdb_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/turn"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// TestReleasesDoNotQueueBehindTurns keeps the connections on which turns look at
// the database, and those on which they take locks, busy for as long as a stranger
// has the rows locked. A lease is renewed and released meanwhile. A call that finds
// no connection says so, and not that the database does not answer.
func TestReleasesDoNotQueueBehindTurns(t *testing.T) {
	t.Parallel()
	url, keys := pgtest.New(t), []string{"a", "b"}
	db := quiet(t, url, func(o *lockdb.Options) { o.AcquireWait, o.LockTimeout, o.PoolSize = patience, patience, 2 })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	held := acquire(t, db, "ours")
	tx := stranger(t, url, `INSERT INTO int_lock VALUES ($1, 'DEFAULT', 'java', '2000-01-01')`, keys)
	if _, err := tx.ExecContext(t.Context(), `LOCK TABLE obs_schedule`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for _, key := range keys {
		waiting.Go(func() {
			for ctx.Err() == nil { // An attempt ends after a while.
				_, _ = db.Leases().Acquire(ctx, request(key))
			}
		})
		waiting.Go(func() { _, _ = db.Turns().Turn(ctx, key, request(key)) })
	}
	defer waiting.Wait()
	defer func() { _ = tx.Rollback() }()
	defer cancel()
	waitFor(t, url, `SELECT (count(*) >= 4)::int FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)

	for what, call := range map[string]func(ctx context.Context) error{
		"look":    func(ctx context.Context) error { _, err := db.Turns().Turn(ctx, "c", request("c")); return err },
		"acquire": func(ctx context.Context) error { _, err := db.Leases().Acquire(ctx, request("c")); return err },
		"streams": func(ctx context.Context) error { _, err := db.Turns().Streams(ctx, []string{"c"}); return err },
		"the note": func(ctx context.Context) error {
			return db.Turns().NoteStream(ctx, held, turn.StreamTaken{Stream: "c"})
		},
		"the turn": func(ctx context.Context) error { return db.Turns().TakeTurn(ctx, held, turn.Taken{Type: "c"}) },
	} {
		var err error
		for range 5 { // One may come between two attempts.
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			err = call(ctx)
			cancel()
			if errors.Is(err, turn.ErrBusy) {
				break
			}
		}
		if !errors.Is(err, turn.ErrBusy) {
			t.Errorf("%s: %v, want that all connections are busy", what, err)
		}
	}
	if r, err := db.Leases().Renew(t.Context(), []lock.Grant{held}); err != nil || r[0] != lock.Renewed {
		t.Errorf("renewal: %v, %v", r, err)
	}
	if err := db.Leases().Release(t.Context(), held); err != nil {
		t.Errorf("release: %v", err)
	}
}

// TestADatabaseThatDoesNotAnswerIsNotBusy has every call wait in the database.
func TestADatabaseThatDoesNotAnswerIsNotBusy(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	db := quiet(t, url, func(o *lockdb.Options) { o.AcquireWait, o.LockTimeout = patience, patience })
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	tx := stranger(t, url, `INSERT INTO int_lock VALUES ($1, 'DEFAULT', 'java', '2000-01-01')`, []string{"a"})
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), `LOCK TABLE obs_schedule`); err != nil {
		t.Fatal(err)
	}
	for what, call := range map[string]func(ctx context.Context) error{
		"look":    func(ctx context.Context) error { _, err := db.Turns().Turn(ctx, "a", request("a")); return err },
		"acquire": func(ctx context.Context) error { _, err := db.Leases().Acquire(ctx, request("a")); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, turn.ErrBusy) || !sqldb.Unavailable(err) {
			t.Errorf("%s: %v, want that the database does not answer", what, err)
		}
		cancel()
	}
}

// TestOurOwnQueueEndsNoWait has many callers of one process wait for one lock, and the
// connections for acquisitions busy for longer than an attempt lasts.
func TestOurOwnQueueEndsNoWait(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		m, err := locks.Open(t.Context(), locks.Options{Provider: general(db)})
		if err != nil {
			t.Fatal(err)
		}
		const callers = 200
		release := db.OccupyAcquire(t)
		var waiting sync.WaitGroup
		var ended atomic.Int64
		for range callers {
			waiting.Go(func() {
				defer ended.Add(1)
				l, err := m.Acquire(t.Context(), locks.Descriptor{Subject: "page", Predicate: "writing", Resources: []string{"1"}}, locks.Within(5*time.Minute))
				if err == nil {
					err = l.Release(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(6 * time.Second) // An attempt lasts for 5 s at most.
		if n := ended.Load(); n > 0 {
			t.Errorf("%d of %d callers have ended", n, callers)
		}
		release()
		waiting.Wait()
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := count(t, url, `SELECT count(*) FROM obs_wait`); n != 0 {
			t.Errorf("%d places are left in the line", n)
		}
	})
}

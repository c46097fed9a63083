package lockdb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/locks/database"
)

// onPostgres runs a test on both forms of INT_LOCK. On SQLite a guarded transaction keeps
// all others from writing. An attempt waits for a row that is locked for as long as the test
// needs.
func onPostgres(t *testing.T, test func(t *testing.T, db *lockdb.DB, url string)) {
	t.Helper()
	for dialect, url := range dialects {
		if strings.HasPrefix(dialect, "sqlite") {
			continue
		}
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			where := url(t)
			if err := open(t, where).Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			db, err := lockdb.Open(lockdb.Options{URL: where, AcquireWait: time.Minute, LockTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			test(t, db, where)
		})
	}
}

func inMode(key string, mode lock.Mode) lock.Request {
	r := request(key)
	r.Mode = mode
	return r
}

func take(t *testing.T, db *lockdb.DB, r lock.Request) lock.Grant {
	t.Helper()
	g, err := general(db).Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func renewal(t *testing.T, db *lockdb.DB, g lock.Grant) lock.Renewal {
	t.Helper()
	got, err := general(db).Renew(t.Context(), []lock.Grant{g})
	if err != nil {
		t.Fatal(err)
	}
	return got[0]
}

// guarded begins a transaction that the lease guards.
func guarded(t *testing.T, db *lockdb.DB, url string, g lock.Grant) *sql.Tx {
	t.Helper()
	return guardedAfter(t, db, url, g, `SELECT 1`)
}

// outlived begins a transaction that is guarded by a lease whose time is over, as others
// see it: what it was renewed by is not committed.
func outlived(t *testing.T, db *lockdb.DB, url string, g lock.Grant) *sql.Tx {
	t.Helper()
	expire(t.Context(), t, url, g)
	return guardedAfter(t, db, url, g, `UPDATE obs_hold SET touched_at = clock_timestamp() WHERE term = $1`, g.Term)
}

func guardedAfter(t *testing.T, db *lockdb.DB, url string, g lock.Grant, first string, args ...any) *sql.Tx {
	t.Helper()
	pool, _ := raw(t, url)
	tx, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	if _, err := tx.ExecContext(t.Context(), first, args...); err != nil {
		t.Fatal(err)
	}
	text, args := general(db).GuardSQL(g)
	result, err := tx.ExecContext(t.Context(), text, args...)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := result.RowsAffected(); n != 1 || err != nil {
		t.Fatalf("the guard found %d rows: %v", n, err)
	}
	return tx
}

// Others who share a lock renew, come and go while a guarded transaction of one runs.
func TestGuardLeavesThoseWhoShareTheLockAlone(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, db *lockdb.DB, url string) {
		reader, other := take(t, db, inMode("doc", lock.Shared)), take(t, db, inMode("doc", lock.Shared))
		tx := guarded(t, db, url, reader)
		second := guarded(t, db, url, other)
		if err := second.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := renewal(t, db, other); got != lock.Renewed {
			t.Errorf("renewal of another: %v", got)
		}
		if got := renewal(t, db, reader); got != lock.Unknown {
			t.Errorf("its own renewal: %v, want unknown", got)
		}
		late := take(t, db, inMode("doc", lock.Intent))
		for _, g := range []lock.Grant{other, late} {
			if err := general(db).Release(t.Context(), g); err != nil {
				t.Errorf("release: %v", err)
			}
		}
		if _, err := general(db).Acquire(t.Context(), inMode("doc", lock.Exclusive)); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("a writer beside a guarded transaction: %v", err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := renewal(t, db, reader); got != lock.Renewed {
			t.Errorf("its own renewal afterwards: %v", got)
		}
	})
}

// A guarded transaction outlives its lease. Those who take the lock wait for its end, and
// its lease has ended then, though the transaction has renewed it.
func TestGuardOutlivesItsLease(t *testing.T) {
	t.Parallel()
	for _, mode := range []lock.Mode{lock.Exclusive, lock.IntentExclusive} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			onPostgres(t, func(t *testing.T, db *lockdb.DB, url string) {
				reader := take(t, db, inMode("doc", lock.Shared))
				if mode == lock.IntentExclusive {
					take(t, db, inMode("doc", lock.Intent)) // It keeps the group alive.
				}
				tx := outlived(t, db, url, reader)
				if mode == lock.Exclusive {
					expireRow(t.Context(), t, url, groupOf(t, url, reader))
				}
				taken := make(chan error, 1)
				go func() {
					_, err := general(db).Acquire(context.WithoutCancel(t.Context()), inMode("doc", mode))
					taken <- err
				}()
				waitFor(t, url, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)
				select {
				case err := <-taken:
					t.Fatalf("the lock was taken while the transaction ran: %v", err)
				default:
				}
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
				if err := <-taken; err != nil {
					t.Errorf("after the transaction: %v", err)
				}
				if got := renewal(t, db, reader); got != lock.Lost {
					t.Errorf("renewal of the reader beside the new holder: %v, want lost", got)
				}
			})
		})
	}
}

// The last of those who share a lock and are not dead leaves it, while a transaction runs
// that is guarded by one whose lease is over. The lock is free only after it.
func TestLastReaderLeavesBesideAGuard(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(ctx context.Context, db *lockdb.DB, g lock.Grant) error{
		"released": func(ctx context.Context, db *lockdb.DB, g lock.Grant) error { return general(db).Release(ctx, g) },
		"released by an operator": func(ctx context.Context, db *lockdb.DB, g lock.Grant) error {
			return general(db).ReleaseLock(ctx, g.Region, g.Key, g.Term, by("op"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onPostgres(t, func(t *testing.T, db *lockdb.DB, url string) {
				reader, last := take(t, db, inMode("doc", lock.Shared)), take(t, db, inMode("doc", lock.Shared))
				tx := outlived(t, db, url, reader)
				if err := leave(t.Context(), db, last); err != nil {
					t.Fatal(err)
				}
				if n := count(t, url, `SELECT count(*) FROM int_lock WHERE lock_key = 'doc'`); n != 1 {
					t.Error("the lock is free while the transaction runs")
				}
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
				if got := renewal(t, db, reader); got != lock.Renewed {
					t.Errorf("renewal of the reader: %v", got)
				}
			})
		})
	}
}

// Readers who come need not wait for the transaction of one whose lease is over: it is in
// nobody's way.
func TestReaderComesBesideAGuard(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, db *lockdb.DB, url string) {
		reader, other := take(t, db, inMode("doc", lock.Shared)), take(t, db, inMode("doc", lock.Shared))
		tx := outlived(t, db, url, reader)
		late := take(t, db, inMode("doc", lock.Shared))
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		for _, g := range []lock.Grant{reader, other, late} {
			if got := renewal(t, db, g); got != lock.Renewed {
				t.Errorf("renewal: %v", got)
			}
		}
	})
}

// A holder that changes its lease in its guarded transaction does not keep others from being
// renewed, and changes it after the transaction.
func TestChangesBesideItsOwnGuard(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(l *database.Provider, ctx context.Context, own lock.Grant) error{
		"release": (*database.Provider).Release,
		"extend": func(l *database.Provider, ctx context.Context, own lock.Grant) error {
			return l.Extend(ctx, own, time.Hour)
		},
		"release after": func(l *database.Provider, ctx context.Context, own lock.Grant) error {
			return l.ReleaseAfter(ctx, own, time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changesBesideItsOwnGuard(t, change)
		})
	}
}

func changesBesideItsOwnGuard(t *testing.T, change func(*database.Provider, context.Context, lock.Grant) error) {
	onPostgres(t, func(t *testing.T, db *lockdb.DB, url string) {
		own, other := take(t, db, inMode("doc", lock.Shared)), take(t, db, inMode("doc", lock.Shared))
		tx := guarded(t, db, url, own)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		changed := make(chan error, 1)
		go func() { changed <- change(general(db), ctx, own) }()
		for range 10 {
			eventually(t, func() error {
				if got := renewal(t, db, other); got != lock.Renewed {
					return fmt.Errorf("renewal of another: %v", got)
				}
				return nil
			})
			time.Sleep(20 * time.Millisecond)
		}
		select {
		case err := <-changed:
			t.Errorf("changed in its guarded transaction: %v", err)
		default:
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-changed; err != nil {
			t.Errorf("changed after it: %v", err)
		}
	})
}

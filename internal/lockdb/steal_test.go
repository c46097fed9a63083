package lockdb_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/test/kit/netfault"
)

// see returns the holder with the grant's term.
func see(t *testing.T, db *lockdb.DB, g lock.Grant) lock.Held {
	t.Helper()
	found, err := general(db).Find(t.Context(), lock.Query{Region: g.Region, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Term == g.Term {
			return f
		}
	}
	t.Fatalf("the term of %s is not found", g.Key)
	return lock.Held{}
}

func holds(t *testing.T, db *lockdb.DB, g lock.Grant, want bool) {
	t.Helper()
	got, err := general(db).Renew(t.Context(), []lock.Grant{g})
	if err != nil || (got[0] == lock.Renewed) != want {
		t.Errorf("renewal of %s: %v, %v; want that it holds: %t", g.Node, got, err, want)
	}
}

// guardRows returns how many rows the guard of a grant changes, as its transaction asks.
func guardRows(t *testing.T, db *lockdb.DB, url string, g lock.Grant) int64 {
	t.Helper()
	text, args := general(db).GuardSQL(g)
	pool, _ := raw(t, url)
	defer pool.Close()
	result, err := pool.ExecContext(t.Context(), text, args...)
	if err != nil {
		t.Fatal(err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestStolenHolderWritesNothingMore has the former holder commit and guard.
func TestStolenHolderWritesNothingMore(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		victim := acquire(t, db, "order-observer-poll")
		s := db.Store(victim)
		before := mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 1))
		r := request("order-observer-poll")
		r.Node = "thief"
		g, err := general(db).Steal(t.Context(), r, see(t, db, victim), by("alice"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(), chunk(before, 1)); !errors.Is(err, lock.ErrFenced) {
			t.Errorf("commit of the former holder: %v, want ErrFenced", err)
		}
		if n := guardRows(t, db, url, victim); n != 0 {
			t.Error("the guard of the former holder holds")
		}
		if n := guardRows(t, db, url, g); n != 1 {
			t.Error("the guard of the thief does not hold")
		}
		mustCommit(t, db.Store(g), chunk(before, 1))

		r.Key, r.Mode = "shared", lock.Shared
		reader, err := general(db).Acquire(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		r.Mode = lock.Exclusive
		if _, err := general(db).Steal(t.Context(), r, see(t, db, reader), by("bob")); err != nil {
			t.Fatal(err)
		}
		if n := guardRows(t, db, url, reader); n != 0 {
			t.Error("the guard of a former reader holds")
		}
		acts, err := db.Operations().Acts(t.Context(), lockdb.ActFilter{Limit: 10})
		if err != nil || len(acts) != 2 {
			t.Fatalf("audit: %+v, %v", acts, err)
		}
		for i, want := range []lockdb.Act{
			{Actor: "bob", Action: "steal-lock", Subject: "DEFAULT shared", Detail: reader.Term},
			{Actor: "alice", Action: "steal-lock", Subject: "DEFAULT order-observer-poll", Detail: victim.Term},
		} {
			want.At = acts[i].At
			if acts[i] != want {
				t.Errorf("audit: %+v, want %+v", acts[i], want)
			}
		}
	})
}

// TestStealThatIsRefusedChangesNothing has the database refuse the last statement.
func TestStealThatIsRefusedChangesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		exec(t.Context(), t, url, map[string]string{
			"sqlite":   `CREATE TRIGGER refuse BEFORE INSERT ON obs_audit BEGIN SELECT RAISE(ABORT, 'no'); END`,
			"postgres": `ALTER TABLE obs_audit ADD CONSTRAINT refuse CHECK (action <> 'steal-lock')`,
		})
		r := request("a")
		for _, mode := range []lock.Mode{"", lock.Shared} {
			r.Mode = mode
			victim, err := general(db).Acquire(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			_, err = general(db).Steal(t.Context(), r, see(t, db, victim), by("alice"))
			if err == nil || errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrRenewed) {
				t.Errorf("steal: %v, want the refusal of the database", err)
			}
			holds(t, db, victim, true)
			if err := general(db).Release(t.Context(), victim); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestStealWaitsForALockedRowBriefly has a forgotten transaction keep the row.
func TestStealWaitsForALockedRowBriefly(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"postgres": newPostgres(t), "postgres with EXPIRED_AFTER": withExpiry(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log logged
			db := quiet(t, url, func(o *lockdb.Options) {
				o.LockTimeout, o.Logger = time.Minute, slog.New(slog.NewTextHandler(&log, nil))
			})
			victim := acquire(t, db, "a")
			seen := see(t, db, victim)
			tx := stranger(t, url, `SELECT 1 FROM int_lock WHERE lock_key = $1 FOR UPDATE`, []string{"a"})
			_, err := general(db).Steal(t.Context(), request("a"), seen, by("alice"))
			if !errors.Is(err, lock.ErrHeld) || !strings.Contains(err.Error(), "another transaction has locked its row") {
				t.Errorf("steal of a lock whose row is locked: %v", err)
			}
			if n := strings.Count(log.String(), "is locked by another transaction"); n != 1 {
				t.Errorf("%d words of it:\n%s", n, &log)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			if _, err := general(db).Steal(t.Context(), request("a"), seen, by("alice")); err != nil {
				t.Errorf("steal of a lock whose row is free again: %v", err)
			}
			holds(t, db, victim, false)
		})
	}
}

// TestStealWhoseAnswerIsLostIsGivenBack cuts the connection after the commit was sent.
func TestStealWhoseAnswerIsLostIsGivenBack(t *testing.T) {
	t.Parallel()
	direct := newPostgres(t)
	proxied, proxy := netfault.StartBefore(t, direct)
	db := open(t, proxied)
	victim := acquire(t, db, "a")
	seen := see(t, db, victim)
	var sent, cut atomic.Bool
	proxy.Inspect(func(request []byte) netfault.Fault {
		if bytes.Contains(request, []byte("steal-lock")) {
			sent.Store(true)
		}
		if sent.Load() && bytes.Contains(request, []byte("commit\x00")) && cut.CompareAndSwap(false, true) {
			return netfault.Fault{LoseAnswer: true}
		}
		return netfault.Fault{}
	})
	_, err := general(db).Steal(t.Context(), request("a"), seen, by("alice"))
	proxy.Inspect(nil)
	if !cut.Load() {
		t.Fatal("the connection was never cut: the test proves nothing")
	}
	if err == nil || errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrLost) {
		t.Errorf("steal: %v", err)
	}
	if n := count(t, direct, `SELECT count(*) FROM obs_audit`); n != 1 {
		t.Errorf("%d steals were carried out, want 1", n)
	}
	if n := count(t, direct, `SELECT count(*) FROM int_lock`); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}

// TestStealSeesWhatAGuardHasRenewed has a guarded transaction end while the steal waits.
func TestStealSeesWhatAGuardHasRenewed(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, db *lockdb.DB, url string) {
		for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
			victim := take(t, db, inMode("doc", mode))
			seen := see(t, db, victim)
			tx := guarded(t, db, url, victim)
			stolen := make(chan error, 1)
			go func() {
				_, err := general(db).Steal(context.WithoutCancel(t.Context()), inMode("doc", lock.Exclusive), seen, by("alice"))
				stolen <- err
			}()
			eventually(t, func() error {
				if count(t, url, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`) == 0 {
					return errors.New("nobody waits for the transaction")
				}
				return nil
			})
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-stolen; !errors.Is(err, lock.ErrRenewed) {
				t.Errorf("steal beside a guarded transaction in mode %s: %v, want ErrRenewed", mode, err)
			}
			holds(t, db, victim, true)
			if err := general(db).Release(t.Context(), victim); err != nil {
				t.Error(err)
			}
		}
	})
}

package lockdb_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
)

// bringBack puts the row of a lease back that was given back, as a failover to a standby
// that lags does.
func bringBack(t *testing.T, url string, g lock.Grant) {
	t.Helper()
	exec(t.Context(), t, url, map[string]string{
		"sqlite":   `INSERT INTO int_lock (lock_key, region, client_id, created_date) SELECT lock_key, region, term, acquired_at FROM obs_lock WHERE lock_key = ?1`,
		"postgres": `INSERT INTO int_lock (lock_key, region, client_id, created_date) SELECT lock_key, region, term, acquired_at AT TIME ZONE 'UTC' FROM obs_lock WHERE lock_key = $1`,
	}, g.Key)
}

// freedAfterReturn brings a lease back and waits until it is gone again.
func freedAfterReturn(t *testing.T, url string, g lock.Grant) {
	t.Helper()
	bringBack(t, url, g)
	eventually(t, func() error {
		if count(t, url, `SELECT count(*) FROM int_lock WHERE lock_key = '`+g.Key+`'`) > 0 {
			return errors.New("its row is there")
		}
		return nil
	})
}

// TestLeaseOfAnEndedTermIsFreed brings leases back that this process has given up,
// beside one that it holds. It frees the former itself, long before their TTL.
func TestLeaseOfAnEndedTermIsFreed(t *testing.T) {
	t.Parallel()
	for dialect, newDatabase := range livenessDatabases {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			url := newDatabase(t)
			w := watch(t, url)
			held := acquire(t, w.db, "held")
			for range 3 {
				g := acquire(t, w.db, "given-back")
				if err := w.db.Leases().Release(t.Context(), g); err != nil {
					t.Fatal(err)
				}
				freedAfterReturn(t, url, g)
			}
			if n := w.logged("Lease freed", "rule=own-term-ended", "lock=given-back"); n == 0 {
				t.Error("nothing is said of it")
			}
			if h, err := w.db.Leases().Holder(t.Context(), held.Request); err != nil || h.Term != held.Term {
				t.Errorf("the lease that is held: %+v, %v", h, err)
			}
		})
	}
}

// TestLeaseThatCannotBeFreedIsToldOnce refuses each deletion of a lease, as a full disk
// does, while a node tries it several times.
func TestLeaseThatCannotBeFreedIsToldOnce(t *testing.T) {
	t.Parallel()
	for dialect, newDatabase := range livenessDatabases {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			url := newDatabase(t)
			w := watch(t, url)
			g := acquire(t, w.db, "given-back")
			if err := w.db.Leases().Release(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			exec(t.Context(), t, url, map[string]string{
				"sqlite":   `CREATE TABLE attempts (last_value INTEGER)`,
				"postgres": `CREATE SEQUENCE attempts`,
			})
			exec(t.Context(), t, url, map[string]string{
				"sqlite": `INSERT INTO attempts VALUES (0)`,
				"postgres": `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT
					AS 'BEGIN PERFORM nextval(''attempts''); RAISE EXCEPTION ''no room'' USING ERRCODE = ''53100''; END'`,
			})
			exec(t.Context(), t, url, map[string]string{
				"sqlite": `CREATE TRIGGER refuse BEFORE DELETE ON int_lock
					BEGIN UPDATE attempts SET last_value = last_value + 1; SELECT RAISE(FAIL, 'no room'); END`,
				"postgres": `CREATE TRIGGER refuse BEFORE DELETE ON int_lock FOR EACH ROW EXECUTE PROCEDURE refuse()`,
			})
			bringBack(t, url, g)
			eventually(t, func() error {
				if n := count(t, url, `SELECT last_value FROM attempts`); n < 4 {
					return fmt.Errorf("%d attempts", n)
				}
				return nil
			})
			exec(t.Context(), t, url, map[string]string{
				"sqlite": `DROP TRIGGER refuse`, "postgres": `DROP TRIGGER refuse ON int_lock`,
			})
			eventually(t, func() error {
				if w.logged("Leases without a holder can be freed again") == 0 {
					return errors.New("the end is not told")
				}
				return nil
			})
			if n := w.logged("Lease without a holder not freed"); n != 1 {
				t.Errorf("told %d times", n)
			}
			if n := w.logged("Lease freed", "lock=given-back"); n != 1 {
				t.Errorf("freed %d times", n)
			}
		})
	}
}

// TestTermInFlightIsNotTouched lets looks pass between an acquisition and its answer.
func TestTermInFlightIsNotTouched(t *testing.T) {
	t.Parallel()
	for dialect, newDatabase := range livenessDatabases {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			url := newDatabase(t)
			w := watch(t, url)
			marker := acquire(t, w.db, "marker")
			if err := w.db.Leases().Release(t.Context(), marker); err != nil {
				t.Fatal(err)
			}
			w.db.SlowAnswers(func() {
				for range 3 { // The look that frees this one sees the other, too.
					freedAfterReturn(t, url, marker)
				}
			})
			g := acquire(t, w.db, "slow")
			if h, err := w.db.Leases().Holder(t.Context(), g.Request); err != nil || h.Term != g.Term {
				t.Errorf("the lease: %+v, %v", h, err)
			}
		})
	}
}

// TestTermsAreLeft ends acquisitions in every way: none stays in the registry.
func TestTermsAreLeft(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		leases := db.Leases()
		held := acquire(t, db, "held")
		complain := func(want int) {
			t.Helper()
			if n := db.TermsHeld(); n != want {
				t.Errorf("%d terms may be held, want %d", n, want)
			}
		}
		complain(1)
		if _, err := leases.Acquire(t.Context(), request("held")); !errors.Is(err, lock.ErrHeld) {
			t.Fatal(err)
		}
		complain(1)
		ctx, cancel := context.WithCancelCause(t.Context())
		db.SlowAnswers(func() { cancel(errors.New("given up")) })
		if _, err := db.Leases().Acquire(ctx, request("given up")); err == nil {
			t.Fatal("acquired what nobody waits for any more")
		}
		complain(1)
		if err := leases.Release(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		complain(0)
		db.SlowAnswers(func() {})
		lost := acquire(t, db, "lost")
		exec(t.Context(), t, url, map[string]string{"sqlite": `DELETE FROM int_lock`, "postgres": `DELETE FROM int_lock`})
		renewals, err := leases.Renew(t.Context(), []lock.Grant{lost})
		if err != nil || renewals[0] != lock.Lost {
			t.Fatal(renewals, err)
		}
		complain(0)
	})
}

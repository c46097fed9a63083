package database_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/locks"
)

// find returns the lock as the lease holds it.
func find(t *testing.T, m *locks.Manager, l *locks.Lease) locks.Found {
	t.Helper()
	d := l.Descriptor()
	found, err := m.Find(t.Context(), locks.Filter{Subject: d.Subject, Resources: d.Resources})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Term == l.Term() {
			return f
		}
	}
	t.Fatalf("%s is not found", d)
	return locks.Found{}
}

// A transaction that is guarded keeps a thief out until it ends, and shows that its holder
// lives. After the theft the former holder writes nothing more.
func TestStealBesideGuardedTransactions(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		for _, held := range []locks.Descriptor{audit, reading} {
			a, b, db := open(t, url, "a"), open(t, url, "b"), pool(t, url)
			held.TTL = time.Hour // It is not renewed by the keeper meanwhile.
			victim := acquire(t, a, held)
			wanted := held
			wanted.Mode = locks.Exclusive
			seen := find(t, b, victim)
			time.Sleep(2 * time.Millisecond) // The clock of SQLite is as coarse as half of that.
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := victim.Guard(t.Context(), tx); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(url, "sqlite:") { // There all others wait for the transaction.
				if _, err := b.Steal(t.Context(), seen, wanted); !errors.Is(err, locks.ErrHeld) || !strings.Contains(err.Error(), "has locked its row") {
					t.Errorf("steal beside a guarded transaction: %v", err)
				}
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Steal(t.Context(), seen, wanted); !errors.Is(err, locks.ErrRenewed) {
				t.Errorf("steal after a guarded transaction: %v, want ErrRenewed", err)
			}
			l, err := b.Steal(t.Context(), find(t, b, victim), wanted, locks.StolenBy("alice", ""))
			if err != nil {
				t.Fatal(err)
			}
			if l.Fence() <= victim.Fence() || l.Term() == victim.Term() {
				t.Errorf("fence %d after %d", l.Fence(), victim.Fence())
			}
			for lease, want := range map[*locks.Lease]error{victim: locks.ErrFenced, l: nil} {
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := lease.Guard(t.Context(), tx); !errors.Is(err, want) {
					t.Errorf("guard: %v, want %v", err, want)
				}
				if err := tx.Rollback(); err != nil {
					t.Error(err)
				}
			}
			release(t, l)
			if err := victim.Release(t.Context()); !errors.Is(err, locks.ErrLost) {
				t.Errorf("release of the former holder: %v", err)
			}
		}
		var thefts int
		if err := pool(t, url).QueryRowContext(t.Context(), `SELECT count(*) FROM obs_audit WHERE actor = 'alice' AND action = 'steal-lock'`).Scan(&thefts); err != nil || thefts != 2 {
			t.Errorf("%d thefts are noted, want 2: %v", thefts, err)
		}
	})
}

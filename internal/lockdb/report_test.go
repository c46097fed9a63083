package lockdb_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

func TestReportHasSweepsAndRefusedAccounts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		if r, err := db.Report(t.Context(), nil); err != nil || len(r.Sweeps) != 0 || len(r.Accounts) != 0 {
			t.Fatalf("of nothing: %+v, %v", r, err)
		}
		s := db.Store(acquire(t, db, "order-observer-poll"))
		running := startSweep(t, db, "orders", observer.SweepBackfill)
		mustCommit(t, s, step(cursorOf(t, s, "orders"), 3, running.ID, "2021"))
		cancelled := startSweep(t, db, "orders", observer.SweepReconcile)
		if err := db.Sweeps().Cancel(t.Context(), cancelled.ID, by("bob")); err != nil {
			t.Fatal(err)
		}
		a := lockdb.Account{ID: "erp/reader", Node: "a", Reason: "ORA-01017", Salt: []byte{1}, Digest: []byte{1}}
		a = refuse(t, db, a)
		r, err := db.Report(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Sweeps) != 1 || len(r.Accounts) != 1 {
			t.Fatalf("sweeps %+v, accounts %+v", r.Sweeps, r.Accounts)
		}
		sweep := r.Sweeps[0]
		if sweep.ID != running.ID || sweep.Observer != "orders" || sweep.Kind != "backfill" || sweep.From != "2020" || sweep.Before != "2026" ||
			sweep.Position != "2021" || sweep.Rows != 3 || sweep.Events != 3 || !sweep.StartedAt.Equal(running.StartedAt) || sweep.UpdatedAt.IsZero() {
			t.Errorf("sweep: %+v", sweep)
		}
		account := r.Accounts[0]
		if account.ID != a.ID || account.Node != "a" || account.Reason != "ORA-01017" || !account.Since.Equal(a.RefusedAt) {
			t.Errorf("account: %+v of %+v", account, a)
		}
	})
}

// A cluster whose general locks are many shows those of its pollers all the same.
func TestReportBoundsTheLocks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		var requests []lock.Request
		for i := range 250 {
			r := request(fmt.Sprint("job-", i))
			r.Region, r.Mode = "A", lock.Exclusive
			requests = append(requests, r)
		}
		for some := range slices.Chunk(requests, 25) { // In the time of one attempt, also on a slow machine.
			if _, err := general(db).AcquireAll(t.Context(), some); err != nil {
				t.Fatal(err)
			}
		}
		acquire(t, db, "order-observer-poll")
		shared := request("schema")
		shared.Mode = lock.Shared
		for range 2 {
			if _, err := general(db).Acquire(t.Context(), shared); err != nil {
				t.Fatal(err)
			}
		}
		r, err := db.Report(t.Context(), []string{"DEFAULT"})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Locks) != 200 || r.MoreLocks != 52 || r.Locks[0].Key != "order-observer-poll" || r.Locks[1].Holder != "2 holders" {
			t.Errorf("%d locks and %d more, first %+v, %+v", len(r.Locks), r.MoreLocks, r.Locks[0], r.Locks[1])
		}
	})
}

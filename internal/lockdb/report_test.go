package lockdb_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
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

// TestReportSaysWhatWasRefused until it is accepted, or the sweep that has refused it ends.
func TestReportSaysWhatWasRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		s := db.Store(acquire(t, db, "order-observer-poll"))
		reported := func(when, want string) {
			t.Helper()
			if r, err := db.Report(t.Context(), nil); err != nil || len(r.Observers) != 1 || r.Observers[0].Refusal != want {
				t.Errorf("%s: %+v, %v; want %q", when, r.Observers, err, want)
			}
		}
		refuse := func(r observer.Refusal) {
			t.Helper()
			refusing := chunk(cursorOf(t, s, "orders"), 1)
			refusing.After.Refusal, refusing.After.Accepted = r.Encode(), ""
			mustCommit(t, s, refusing)
		}
		refuse(observer.Refusal{Kind: observer.RefusalGone, Text: "8 of 8 rows are gone"})
		reported("refused by a poll", "8 of 8 rows are gone")
		if err := db.Operations().Accept(t.Context(), "orders", by("alice"), cursorOf(t, s, "orders").Refusal, ""); err != nil {
			t.Fatal(err)
		}
		reported("accepted", "")
		sweep := startSweep(t, db, "orders", observer.SweepReconcile)
		refuse(observer.Refusal{Kind: observer.RefusalAdded, Sweep: observer.SweepReconcile, Text: "a column was added"})
		reported("refused by a sweep", "a column was added")
		if err := db.Sweeps().Cancel(t.Context(), sweep.ID, by("bob")); err != nil {
			t.Fatal(err)
		}
		reported("the sweep was cancelled", "")
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

// TestPast reads the polls of the last hour again and again.
func TestPast(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		g := acquire(t, db, "order-observer-poll")
		now, err := db.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		note := func(stream string, ago time.Duration) {
			t.Helper()
			end := now.Add(-ago)
			err := db.Turns().NoteStream(t.Context(), g, turn.StreamTaken{
				Stream: stream, Type: "order", Node: "a", At: end, Started: end.Add(-time.Second), Finished: end, Outcome: turn.OK, Poison: 2,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		var past lockdb.Past
		polls := func(now time.Time) (all []string) {
			t.Helper()
			read, err := past.Polls(t.Context(), db, now)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range read {
				all = append(all, fmt.Sprint(p.Observer, " ", now.Sub(p.FinishedAt).Round(time.Minute), " ", p.Duration, p.Node, p.Type, p.Outcome, p.Poison))
			}
			return all
		}
		if all := polls(now); len(all) != 0 {
			t.Fatalf("of nothing: %v", all)
		}
		note("rare", 5*time.Hour)
		note("orders", 10*time.Minute)
		want := []string{"rare 5h0m0s 1saorderok2", "orders 10m0s 1saorderok2"}
		for range 2 {
			if all := polls(now); !slices.Equal(all, want) {
				t.Errorf("polls %q", all)
			}
		}
		for i := range 70 {
			note("orders", 9*time.Minute-time.Duration(i)*time.Millisecond)
		}
		if all := polls(now); len(all) != 72 || all[71] != "orders 9m0s 1saorderok2" {
			t.Errorf("%d polls", len(all))
		}
		if all := polls(now.Add(2 * time.Hour)); len(all) != 61 || all[0] != "rare 7h0m0s 1saorderok2" {
			t.Errorf("%d polls, the first is %s", len(all), all[0])
		}
		if all := polls(now.Add(-3 * time.Hour)); len(all) != 72 { // The clock went back.
			t.Errorf("%d polls", len(all))
		}
	})
}

func TestReportCountsTheLocks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		for i, mode := range []lock.Mode{lock.Exclusive, lock.Exclusive, lock.Shared} {
			r := request(fmt.Sprint("page-", i))
			r.Mode, r.Descriptor = mode, fmt.Sprintf("lock:%s:page%%3Aweb:writing:%d", mode, i)
			if _, err := general(db).Acquire(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		r, err := db.Report(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, k := range r.LockKinds {
			kinds = append(kinds, fmt.Sprint(k.Subject, " ", k.Mode, " ", k.Locks, " ", k.Oldest.Name, " ", k.Oldest.AcquiredAt.IsZero()))
		}
		if got := fmt.Sprint(kinds); got != "[page:web exclusive 2 page-0 false page:web shared 1 page-2 false]" {
			t.Errorf("%s; locks %+v", got, r.Locks)
		}
	})
}

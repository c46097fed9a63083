package lockdb_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

// buryRows notes poison rows of two streams, and returns the records of the first.
func buryRows(t *testing.T, db *lockdb.DB, g lock.Grant) []lockdb.DeadRow {
	t.Helper()
	s := db.Store(g)
	for _, stream := range []string{"orders", "stock"} {
		ch := chunk(cursorOf(t, s, stream), 1)
		for i := range 3 {
			ch.Dead = append(ch.Dead, observer.Dead{Key: fmt.Sprint("k", i), Reason: "column qty: not a number", Raw: []byte(`{"k":1}`)})
		}
		ch.Refused = stream == "stock"
		mustCommit(t, s, ch)
	}
	return deadOf(t, db, lockdb.DeadFilter{Streams: []string{"orders"}})
}

func deadOf(t *testing.T, db *lockdb.DB, f lockdb.DeadFilter) []lockdb.DeadRow {
	t.Helper()
	found, err := db.Operations().Dead(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRecordsOfPoisonRowsAreFound(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		orders := buryRows(t, db, acquire(t, db, "order-observer-poll"))
		exec(t.Context(), t, url, map[string]string{
			"sqlite":   `UPDATE obs_dead SET last_at = strftime('%Y-%m-%d %H:%M:%f000', 'now', '-2 hours') WHERE key = 'k0'`,
			"postgres": `UPDATE obs_dead SET last_at = now() - interval '2 h' WHERE key = 'k0'`,
		})
		for name, tc := range map[string]struct {
			f    lockdb.DeadFilter
			want int
		}{
			"all":         {lockdb.DeadFilter{}, 6},
			"a limit":     {lockdb.DeadFilter{Limit: 4}, 4},
			"a number":    {lockdb.DeadFilter{IDs: []int64{orders[0].ID}}, 1},
			"two numbers": {lockdb.DeadFilter{IDs: []int64{orders[0].ID, orders[2].ID, 999}}, 2},
			"a stream":    {lockdb.DeadFilter{Streams: []string{"stock", "other"}}, 3},
			"a key":       {lockdb.DeadFilter{Key: "k1"}, 2},
			"an hour":     {lockdb.DeadFilter{Since: time.Hour}, 4},
			"nothing":     {lockdb.DeadFilter{Streams: []string{"stock"}, IDs: []int64{orders[0].ID}}, 0},
		} {
			if found := deadOf(t, db, tc.f); len(found) != tc.want {
				t.Errorf("%s: %d records, want %d", name, len(found), tc.want)
			}
		}
		all := deadOf(t, db, lockdb.DeadFilter{Raw: true})
		first, last := all[0], all[5]
		if string(first.Raw) != `{"k":1}` || first.Reason != "column qty: not a number" || first.FirstAt.IsZero() || first.Refused != (first.Stream == "stock") {
			t.Errorf("record %+v", first)
		}
		if last.Key != "k0" || !last.LastAt.Before(first.LastAt) {
			t.Errorf("the oldest is %+v, the newest %+v", last, first)
		}
		if plain := deadOf(t, db, lockdb.DeadFilter{})[0]; len(plain.Raw) > 0 {
			t.Errorf("not asked for: %s", plain.Raw)
		}
	})
}

func TestRecordsOfPoisonRowsAreDropped(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		orders := buryRows(t, db, acquire(t, db, "order-observer-poll"))
		stock := deadOf(t, db, lockdb.DeadFilter{Streams: []string{"stock"}})
		act := lockdb.Act{Actor: "alice", Action: "drop-dead", Subject: "orders", Detail: "a test"}
		// One that is another stream's is not dropped by the way.
		ids := []int64{orders[0].ID, orders[1].ID, stock[0].ID}
		for _, want := range []int64{2, 0} {
			if n, err := db.Operations().DropDead(t.Context(), ids, act); n != want || err != nil {
				t.Errorf("dropped %d, %v; want %d", n, err, want)
			}
		}
		if left := deadOf(t, db, lockdb.DeadFilter{}); len(left) != 4 {
			t.Errorf("%d records are left", len(left))
		}
		acts, err := db.Operations().Acts(t.Context(), lockdb.ActFilter{})
		if err != nil || len(acts) != 1 || acts[0].Detail != "a test" || acts[0].Actor != "alice" {
			t.Errorf("audit: %+v, %v", acts, err)
		}
	})
}

// The records of rows that were observed go under the lease alone.
func TestRecordsAreSettledUnderTheLease(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		g := acquire(t, db, "order-observer-poll")
		orders := buryRows(t, db, g)
		ids := []int64{orders[0].ID, orders[2].ID}
		ended := g
		ended.Term = "0198c0de-0000-7000-8000-000000000001"
		if err := db.Operations().SettleDead(t.Context(), ended, "orders", ids); !errors.Is(err, lock.ErrFenced) {
			t.Errorf("under another lease: %v", err)
		}
		if left := deadOf(t, db, lockdb.DeadFilter{Streams: []string{"orders"}}); len(left) != 3 {
			t.Errorf("%d records are left", len(left))
		}
		if err := db.Operations().SettleDead(t.Context(), g, "orders", ids); err != nil {
			t.Error(err)
		}
		if left := deadOf(t, db, lockdb.DeadFilter{Streams: []string{"orders"}}); len(left) != 1 || left[0].ID != orders[1].ID {
			t.Errorf("left %+v", left)
		}
	})
}

func TestActsAreFound(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		o := db.Operations()
		for _, act := range []lockdb.Act{
			{Actor: "alice", Action: "reset", Subject: "orders"},
			{Actor: "bob", Action: "release-lock", Subject: "LOCKS page:fs-1:7"},
			{Actor: "bob", Action: "steal-lock", Subject: "LOCKS page:fs-1:77"},
			{Actor: "alice", Action: "pause", Subject: "late-orders"},
		} {
			if err := o.Note(t.Context(), act); err != nil {
				t.Fatal(err)
			}
		}
		exec(t.Context(), t, url, map[string]string{
			"sqlite":   `UPDATE obs_audit SET at = strftime('%Y-%m-%d %H:%M:%f000', 'now', '-2 hours') WHERE actor = 'bob'`,
			"postgres": `UPDATE obs_audit SET at = now() - interval '2 h' WHERE actor = 'bob'`,
		})
		for name, tc := range map[string]struct {
			f    lockdb.ActFilter
			want []string
		}{
			"all":        {lockdb.ActFilter{}, []string{"pause", "steal-lock", "release-lock", "reset"}},
			"a limit":    {lockdb.ActFilter{Limit: 2}, []string{"pause", "steal-lock"}},
			"an hour":    {lockdb.ActFilter{Since: time.Hour}, []string{"pause", "reset"}},
			"an actor":   {lockdb.ActFilter{Actor: "bob"}, []string{"steal-lock", "release-lock"}},
			"an action":  {lockdb.ActFilter{Action: "reset"}, []string{"reset"}},
			"a stream":   {lockdb.ActFilter{Subject: "orders"}, []string{"reset"}},
			"a lock":     {lockdb.ActFilter{Subject: "page:fs-1:7"}, []string{"release-lock"}},
			"its region": {lockdb.ActFilter{Subject: "LOCKS page:fs-1:7"}, []string{"release-lock"}},
			"nothing":    {lockdb.ActFilter{Subject: "order"}, nil},
			"a long one": {lockdb.ActFilter{Subject: "an observer with a longer name than any subject"}, nil},
		} {
			acts, err := o.Acts(t.Context(), tc.f)
			var got []string
			for _, a := range acts {
				got = append(got, a.Action)
			}
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("%s: %q, %v; want %q", name, got, err, tc.want)
			}
		}
	})
}

package lockdb_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
	"github.com/observerd/observerd/internal/turn"
)

func retention() lockdb.Retention {
	return lockdb.Retention{
		Events: time.Hour, Polls: time.Hour, Dead: time.Hour, Audit: time.Hour, Nodes: time.Hour, StaleLocks: time.Hour,
		Sinks: []string{"file"},
	}
}

// age moves a column of a table far into the past.
func age(t *testing.T, url, table, column string) {
	t.Helper()
	exec(t.Context(), t, url, map[string]string{
		"sqlite":   `UPDATE ` + table + ` SET ` + column + ` = '2000-01-01 00:00:00.000000'`,
		"postgres": `UPDATE ` + table + ` SET ` + column + ` = '2000-01-01'`,
	})
}

// A reader that died leaves a row of obs_hold: of others who share the lock, none is removed.
func TestCleanRemovesThoseWhoSharedALock(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		r := request("orders")
		r.Mode = lock.Shared
		var readers []lock.Grant
		for range 2 {
			g, err := general(db).Acquire(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			readers = append(readers, g)
		}
		expire(t.Context(), t, url, readers[0])
		if n, err := db.Clean(t.Context(), retention()); n != 1 || err != nil {
			t.Errorf("%d rows removed, %v", n, err)
		}
		if err := general(db).Release(t.Context(), readers[1]); err != nil {
			t.Error(err)
		}
	})
}

func TestCleanBoundsEveryHistory(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		ctx := t.Context()
		g := acquire(t, db, "order-observer-poll")
		s := db.Store(g)
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 10))
		now := time.Now()
		for range 3 {
			if err := db.Turns().NoteStream(ctx, g, turn.StreamTaken{Stream: "orders", Type: "order", At: now, Started: now, Finished: now}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.Operations().Pause(ctx, "orders", by("alice"), 0); err != nil {
			t.Fatal(err)
		}
		if err := db.Nodes().Beat(ctx, turn.Node{BootID: "1"}); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"obs_poll finished_at", "obs_audit at", "obs_node seen_at", "obs_event logged_at", "obs_lock acquired_at"} {
			table, column, _ := strings.Cut(at, " ")
			age(t, url, table, column)
		}
		if _, err := db.Clean(ctx, retention()); err != nil {
			t.Fatal(err)
		}
		for table, want := range map[string]int{
			"obs_poll": 0, "obs_audit": 0, "obs_node": 0,
			"obs_event": 10, // No sink has stored them.
			"int_lock":  1,  // Its lease is alive, whatever the age of obs_lock says.
			"obs_lock":  1,
		} {
			if n := count(t, url, `SELECT count(*) FROM `+table); n != want {
				t.Errorf("%s has %d rows, want %d", table, n, want)
			}
		}
		acknowledge(t, db, "file", 7)
		expire(ctx, t, url, g)
		if _, err := db.Clean(ctx, retention()); err != nil {
			t.Fatal(err)
		}
		for table, want := range map[string]int{"obs_event": 3, "int_lock": 0, "obs_lock": 0, "obs_observed": 10, "obs_cursor": 1} {
			if n := count(t, url, `SELECT count(*) FROM `+table); n != want {
				t.Errorf("%s has %d rows, want %d", table, n, want)
			}
		}
	})
}

func TestCleanKeepsTheLastSweeps(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		sweeps := func(kind observer.SweepKind, times int) {
			for range times {
				if err := db.Sweeps().Cancel(t.Context(), startSweep(t, db, "orders", kind).ID, by("bob")); err != nil {
					t.Fatal(err)
				}
			}
		}
		sweeps(observer.SweepReconcile, 3)
		sweeps(observer.SweepBackfill, 2)
		running := startSweep(t, db, "orders", observer.SweepBackfill)
		refuse(t, db, lockdb.Account{ID: "erp/reader", Salt: []byte{1}, Digest: []byte{1}})
		if _, err := db.Clean(t.Context(), retention()); err != nil {
			t.Fatal(err)
		}
		if n := count(t, url, `SELECT count(*) FROM obs_sweep`); n != 6 {
			t.Errorf("%d of the 6 sweeps of the last hour are left", n)
		}
		for _, column := range []string{"obs_sweep updated_at", "obs_account refused_at"} {
			table, column, _ := strings.Cut(column, " ")
			age(t, url, table, column)
		}
		before := sweepOf(t, db, "orders", observer.SweepReconcile)
		if _, err := db.Clean(t.Context(), retention()); err != nil {
			t.Fatal(err)
		}
		if n := count(t, url, `SELECT count(*) FROM obs_sweep`); n != 2 {
			t.Errorf("%d sweeps are left, want the last of each kind", n)
		}
		if got := sweepOf(t, db, "orders", observer.SweepReconcile); got != before {
			t.Errorf("the last reconcile was\n%+v, is\n%+v", before, got)
		}
		if got := sweepOf(t, db, "orders", observer.SweepBackfill); got.ID != running.ID || got.State != observer.SweepRunning {
			t.Errorf("the running backfill: %+v", got)
		}
		if n := count(t, url, `SELECT count(*) FROM obs_account`); n != 1 {
			t.Error("the janitor has accepted an account")
		}
	})
}

// TestAcceptedPoisonRowsOutliveTheirRetention has a person accept the poison rows of a
// stream, whose records then are older than their retention while the stream is not polled.
// They lose what was kept of the rows, and no poll refuses these again, whether polls have
// succeeded without them or not. Records that were refused are removed, and those of a stream
// that is forgotten.
func TestAcceptedPoisonRowsOutliveTheirRetention(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		ctx, g, now := t.Context(), acquire(t, db, "order-observer-poll"), time.Now()
		src := observertest.NewSource()
		for i := range 12 {
			row := observertest.At(fmt.Sprint("k", i), "?", -1)
			row.Err = errors.New("column qty: not a number")
			src.Add(row)
		}
		o, err := observer.New(observer.Spec{
			Stream: "orders", EventType: "Seen", Detect: observer.DetectSnapshot, Query: observer.Query{Table: "orders", Key: []string{"id"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		poll := func() (observer.Stats, error) {
			t.Helper()
			stats, err := o.Poll(ctx, src, db.Store(g))
			if err == nil {
				err = db.Turns().NoteStream(ctx, g, turn.StreamTaken{Stream: "orders", Type: "order", At: now, Started: now, Finished: now, Outcome: turn.OK})
			}
			return stats, err
		}
		clean := func(want, raw int) {
			t.Helper()
			if _, err := db.Clean(ctx, retention()); err != nil {
				t.Fatal(err)
			}
			if n := count(t, url, `SELECT count(*) FROM obs_dead`); n != want {
				t.Errorf("%d records are left, want %d", n, want)
			}
			if n := count(t, url, `SELECT count(*) FROM obs_dead WHERE raw <> ''`); n != raw {
				t.Errorf("the values of %d rows are left, want %d", n, raw)
			}
		}
		if _, err := poll(); !errors.Is(err, observer.ErrMostlyPoison) {
			t.Fatalf("the first poll: %v", err)
		}
		refusal, _, err := db.Streams().Refused(ctx, "orders")
		if err == nil {
			err = db.Operations().Accept(ctx, "orders", by("alice"), refusal, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := poll(); err != nil {
			t.Fatalf("the poll that leaves them out: %v", err)
		}
		other := chunk(cursorOf(t, db.Store(g), "stock"), 1)
		other.Dead, other.Refused = []observer.Dead{{Key: "a", Reason: "r"}}, true
		mustCommit(t, db.Store(g), other)
		clean(13, 12)
		age(t, url, "obs_dead", "last_at")
		clean(12, 0)
		if stats, err := poll(); err != nil || stats.Poison != 12 {
			t.Errorf("the poll after a pause: %v, %d records noted again", err, stats.Poison)
		}
		clean(12, 12)
		age(t, url, "obs_dead", "last_at")
		clean(12, 0)
		exec(ctx, t, url, map[string]string{"sqlite": `DELETE FROM obs_cursor`, "postgres": `DELETE FROM obs_cursor`})
		clean(0, 0)
	})
}

func TestCleanLeavesTheLocksOfOthers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		g := acquire(t, db, "order-observer-poll")
		// A Java node takes the lock after us: our row of obs_lock says nothing of it.
		exec(t.Context(), t, url, map[string]string{
			"sqlite":   `UPDATE int_lock SET client_id = 'java', created_date = '2000-01-01 00:00:00.000000' WHERE lock_key = ?1`,
			"postgres": `UPDATE int_lock SET client_id = 'java', created_date = '2000-01-01' WHERE lock_key = $1`,
		}, g.Key)
		if _, err := db.Clean(t.Context(), retention()); err != nil {
			t.Fatal(err)
		}
		if n := count(t, url, `SELECT count(*) FROM int_lock`); n != 1 {
			t.Error("the janitor removed a stranger's lock")
		}
	})
}

func TestCleanForgetsFormerSinks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		s := db.Store(acquire(t, db, "order-observer-poll"))
		mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 1))
		for _, sink := range []string{"file", "former"} {
			acknowledge(t, db, sink, 1)
		}
		age(t, url, "obs_sink_offset", "updated_at")
		if _, err := db.Clean(t.Context(), retention()); err != nil {
			t.Fatal(err)
		}
		if n := count(t, url, `SELECT count(*) FROM obs_sink_offset WHERE sink = 'former'`); n != 0 {
			t.Errorf("%d offsets of the former sink are left", n)
		}
		if n := count(t, url, `SELECT count(*) FROM obs_sink_offset WHERE sink = 'file'`); n != 2 {
			t.Errorf("%d offsets of the configured sink are left, want 2", n)
		}
	})
}

// acknowledge has a relay store the stream up to seq.
func acknowledge(t *testing.T, db *lockdb.DB, sink string, seq int64) {
	t.Helper()
	if _, err := db.Log().Claim(t.Context(), sink, 1); err != nil {
		t.Fatal(err)
	}
	if err := settle(t, db.Log(), sink, "orders", seq, 1); err != nil {
		t.Fatal(err)
	}
}

// TestCleanKeepsWhatSinksOfOthersNeed covers nodes whose configurations
// differ, as they do while one is being changed.
func TestCleanKeepsWhatSinksOfOthersNeed(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*testing.T, *lockdb.DB){
		"a live node has it": func(t *testing.T, db *lockdb.DB) {
			if err := db.Nodes().Beat(t.Context(), turn.Node{BootID: "other", Sinks: []string{"audit"}}); err != nil {
				t.Fatal(err)
			}
		},
		"a relay has fed it": func(t *testing.T, db *lockdb.DB) { acknowledge(t, db, "audit", 4) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
				s := db.Store(acquire(t, db, "order-observer-poll"))
				mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 10))
				acknowledge(t, db, "file", 10)
				prepare(t, db)
				age(t, url, "obs_event", "logged_at")
				if _, err := db.Clean(t.Context(), retention()); err != nil {
					t.Fatal(err)
				}
				if n := count(t, url, `SELECT count(*) FROM obs_event WHERE seq > 4`); n != 6 {
					t.Errorf("%d of the 6 events that sink audit has not stored are left", n)
				}
			})
		})
	}
}

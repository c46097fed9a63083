package lockdb_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

func startSweep(t *testing.T, db *lockdb.DB, stream string, kind observer.SweepKind) observer.Sweep {
	t.Helper()
	s, err := db.Sweeps().Start(t.Context(), observer.Sweep{Stream: stream, Kind: kind, From: "2020", Before: "2026"}, by("alice"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sweepOf returns the sweep that is shown of a stream and kind.
func sweepOf(t *testing.T, db *lockdb.DB, stream string, kind observer.SweepKind) observer.Sweep {
	t.Helper()
	all, err := db.Sweeps().Latest(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Kind == kind && s.Stream == stream {
			return s
		}
	}
	t.Fatalf("there is no %s of %s", kind, stream)
	return observer.Sweep{}
}

// step makes a chunk that is a step of the sweep and moves no mark.
func step(c observer.Cursor, n int, id int64, position string) observer.Chunk {
	ch := chunk(c, n)
	ch.After.Low, ch.After.Newest = c.Low, c.Newest
	ch.Sweep = &observer.SweepStep{ID: id, Position: position, Rows: int64(n), Events: int64(len(ch.Events))}
	return ch
}

// sizes are chunks that take the single statement of PostgreSQL, and its COPY.
var sizes = []int{3, 2500}

func TestStepOfASweepCommitsWithItsRows(t *testing.T) {
	t.Parallel()
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
				started := startSweep(t, db, "orders", observer.SweepBackfill)
				if started.ID == 0 || started.State != observer.SweepRunning || started.Position != "2020" || started.StartedAt.IsZero() {
					t.Fatalf("started: %+v", started)
				}
				s := db.Store(acquire(t, db, "order-observer-poll"))
				c := mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 2)) // a poll, beside
				c = mustCommit(t, s, step(c, n, started.ID, "2021"))
				middle := sweepOf(t, db, "orders", started.Kind)
				want := started
				want.Position, want.Rows, want.Events, want.UpdatedAt = "2021", int64(n), int64(n), middle.UpdatedAt
				if middle != want || middle.UpdatedAt.Before(started.UpdatedAt) {
					t.Errorf("after a step\n%+v, want\n%+v", middle, want)
				}
				last := step(c, n, started.ID, "2026")
				last.Sweep.Done = true
				c = mustCommit(t, s, last)
				if again := cursorOf(t, s, "orders"); again != c {
					t.Errorf("cursor in the database %+v, as the commit said %+v", again, c)
				}
				end := sweepOf(t, db, "orders", started.Kind)
				if end.State != observer.SweepDone || end.Rows != 2*int64(n) || end.Events != 2*int64(n) || end.Position != "2026" {
					t.Errorf("at the end: %+v", end)
				}
				if got := count(t, url, `SELECT count(*) FROM obs_event`); got != 2+2*n {
					t.Errorf("%d events, want %d", got, 2+2*n)
				}
			})
		})
	}
}

// TestSweepThatDoesNotRunRefusesItsStep shows that nothing at all is written.
func TestSweepThatDoesNotRunRefusesItsStep(t *testing.T) {
	t.Parallel()
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
				s := db.Store(acquire(t, db, "order-observer-poll"))
				mustCommit(t, s, chunk(cursorOf(t, s, "orders"), 2))
				cancelled := startSweep(t, db, "orders", observer.SweepBackfill).ID
				if err := db.Sweeps().Cancel(t.Context(), cancelled, by("bob")); err != nil {
					t.Fatal(err)
				}
				last := step(cursorOf(t, s, "orders"), 0, startSweep(t, db, "orders", observer.SweepBackfill).ID, "2026")
				last.Sweep.Done = true
				mustCommit(t, s, last)
				other := startSweep(t, db, "tasks", observer.SweepBackfill).ID
				before, sweeps := cursorOf(t, s, "orders"), mustSweeps(t, db)
				for name, id := range map[string]int64{
					"cancelled": cancelled, "done": last.Sweep.ID, "another stream's": other, "unknown": other + 1000,
				} {
					if _, err := s.Commit(t.Context(), step(before, n, id, "2021")); !errors.Is(err, observer.ErrConflict) {
						t.Errorf("step of a sweep, %s: %v", name, err)
					}
				}
				nothingWritten(t, db, url, before, sweeps)
				mustCommit(t, s, chunk(before, 1)) // A poll is not refused.
			})
		})
	}
}

// TestRefusedCommitStepsNoSweep looks at the sweep's row when it is the lease
// or the cursor that refuses.
func TestRefusedCommitStepsNoSweep(t *testing.T) {
	t.Parallel()
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
				g := acquire(t, db, "order-observer-poll")
				s := db.Store(g)
				old := cursorOf(t, s, "orders")
				c := mustCommit(t, s, chunk(old, 2))
				id, before := startSweep(t, db, "orders", observer.SweepBackfill).ID, mustSweeps(t, db)
				if _, err := s.Commit(t.Context(), step(old, n, id, "2021")); !errors.Is(err, observer.ErrConflict) {
					t.Errorf("commit from an old cursor: %v", err)
				}
				nothingWritten(t, db, url, c, before)
				expire(t.Context(), t, url, g)
				if _, err := s.Commit(t.Context(), step(c, n, id, "2021")); !errors.Is(err, lock.ErrFenced) {
					t.Errorf("commit under an ended lease: %v", err)
				}
				nothingWritten(t, db, url, c, before)
			})
		})
	}
}

// nothingWritten compares with what there was when two rows had been committed.
func nothingWritten(t *testing.T, db *lockdb.DB, url string, before observer.Cursor, sweeps []observer.Sweep) {
	t.Helper()
	if after := cursorOf(t, db.Peek(), "orders"); after != before {
		t.Errorf("the cursor moved from %+v to %+v", before, after)
	}
	for _, table := range []string{"obs_event", "obs_observed"} {
		if n := count(t, url, `SELECT count(*) FROM `+table); n != 2 {
			t.Errorf("%s has %d rows, want 2", table, n)
		}
	}
	if after := mustSweeps(t, db); fmt.Sprint(after) != fmt.Sprint(sweeps) {
		t.Errorf("the sweeps were\n%+v, are\n%+v", sweeps, after)
	}
}

func mustSweeps(t *testing.T, db *lockdb.DB) []observer.Sweep {
	t.Helper()
	all, err := db.Sweeps().Latest(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestNodesStartOneSweepTogether(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, url string) {
		nodes := []*lockdb.DB{db, open(t, url)}
		const each = 5
		ids, errs := make([]int64, each*len(nodes)), make([]error, each*len(nodes))
		var all sync.WaitGroup
		for i := range ids {
			all.Go(func() {
				s, err := nodes[i%len(nodes)].Sweeps().Start(t.Context(), observer.Sweep{Stream: "orders", Kind: observer.SweepBackfill}, by("alice"))
				ids[i], errs[i] = s.ID, err
			})
		}
		all.Wait()
		started := 0
		for i, err := range errs {
			if err == nil {
				started++
			} else if !errors.Is(err, lockdb.ErrSweepRunning) {
				t.Error(err)
			}
			if ids[i] == 0 || ids[i] != ids[0] {
				t.Errorf("one was told of sweep %d, another of %d", ids[0], ids[i])
			}
		}
		if started != 1 {
			t.Errorf("%d have started it", started)
		}
		if n := count(t, url, `SELECT count(*) FROM obs_audit WHERE action = 'start-sweep'`); n != 1 {
			t.Errorf("%d audit rows, want 1", n)
		}
		startSweep(t, db, "orders", observer.SweepReconcile) // Another kind may run beside.
		startSweep(t, db, "tasks", observer.SweepBackfill)
	})
}

func TestOperatorCancelsASweep(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, db *lockdb.DB, _ string) {
		first := startSweep(t, db, "orders", observer.SweepBackfill)
		if err := db.Sweeps().Cancel(t.Context(), first.ID, by("bob")); err != nil {
			t.Fatal(err)
		}
		if got := sweepOf(t, db, "orders", first.Kind); got.State != observer.SweepCancelled || got.ID != first.ID {
			t.Errorf("after it was cancelled: %+v", got)
		}
		for _, id := range []int64{first.ID, first.ID + 1000} {
			if err := db.Sweeps().Cancel(t.Context(), id, by("bob")); !errors.Is(err, lockdb.ErrSweepEnded) {
				t.Errorf("sweep %d cancelled: %v", id, err)
			}
		}
		second := startSweep(t, db, "orders", observer.SweepBackfill)
		if got := sweepOf(t, db, "orders", first.Kind); got != second {
			t.Errorf("the last one is\n%+v, shown is\n%+v", second, got)
		}
		acts, err := db.Operations().Acts(t.Context(), lockdb.ActFilter{Limit: 10})
		if err != nil || len(acts) != 3 || acts[1].Action != "cancel-sweep" || acts[1].Actor != "bob" || acts[1].Subject != "orders" ||
			acts[1].Detail != fmt.Sprint("backfill ", first.ID) || acts[0].Action != "start-sweep" || acts[0].Actor != "alice" {
			t.Errorf("audit: %+v, %v", acts, err)
		}
	})
}

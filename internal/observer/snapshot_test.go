package observer_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// snapshots are the keys of the events that are of rows which were there before, and of
// the others.
func (s *stage) snapshots() (before, since []string) {
	for _, e := range s.db.Events(stream) {
		if e.Snapshot {
			before = append(before, e.Subject)
		} else {
			since = append(since, e.Subject)
		}
	}
	return before, since
}

func (s *stage) checkSnapshots(t *testing.T, before, since []string) {
	t.Helper()
	gotBefore, gotSince := s.snapshots()
	equalList(t, "rows that were there before", gotBefore, before...)
	equalList(t, "rows since then", gotSince, since...)
}

// A first reading takes several polls, while rows come and change.
func TestFirstReadingIsASnapshot(t *testing.T) {
	t.Parallel()
	for _, detect := range []observer.Detect{observer.DetectChange, observer.DetectSnapshot} {
		s := setup(t, detect, func(s *observer.Spec) { s.MaxChanged, s.ChunkRows = 2, 1 })
		s.src.Keyed = true
		for i := range 4 {
			s.src.Add(observertest.At(key(i), "a", int64(i)+1))
		}
		s.src.SetClock(10)
		s.poll()
		s.src.Put(key(9), "a")
		for range 4 {
			s.poll()
		}
		s.src.Add(observertest.At("late", "a", 2)) // It is read by a generation alone.
		s.src.Put(key(0), "b")
		for range 4 {
			s.poll()
		}
		since := []string{key(9), key(0)}
		if detect == observer.DetectSnapshot {
			since = []string{key(9), key(0), "late"}
		}
		s.checkSnapshots(t, []string{key(0), key(1), key(2), key(3)}, since)
	}
}

func TestFirstReadingWithoutTimestampsIsASnapshot(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot, noTimestamp)
	s.put(0, 2)
	s.poll()
	s.put(2, 1)
	s.poll()
	s.checkSnapshots(t, []string{key(0), key(1)}, []string{key(2)})
}

// What lies before the start is a snapshot, and so is what a sweep finds below it.
func TestSweepsFindSnapshots(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.Start.Now = true })
	s.src.Add(observertest.At("backfilled", "a", 1))
	s.src.SetClock(10)
	s.poll()
	s.put(0, 1)
	s.poll()
	s.sweep(s.db.StartSweep(stream, observer.SweepBackfill, "", observertest.CursorAt(10)).ID, observer.Budget{})
	s.src.Pass(10)
	s.put(1, 1)
	s.poll()
	s.src.Add(observertest.At("old", "a", 2), observertest.At("back-dated", "a", 12))
	s.sweep(s.db.StartSweep(stream, observer.SweepReconcile, "", "").ID, observer.Budget{})
	s.checkSnapshots(t, []string{"backfilled", "old"}, []string{key(0), key(1), "back-dated"})
}

func TestRowsWithoutATimestampAreSnapshotsInTheFirstReading(t *testing.T) {
	t.Parallel()
	for _, now := range []bool{false, true} {
		s := setup(t, observer.DetectChange, func(s *observer.Spec) { s.Start.Now = now })
		s.src.Add(observertest.At("old", "a", -1))
		s.src.SetClock(10)
		s.poll()
		s.src.Pass(1000)
		s.src.Add(observertest.At("later", "a", -1))
		s.poll()
		s.checkSnapshots(t, []string{"old"}, []string{"later"})
	}
}

// A reset finds what was missed: that came later.
func TestWhatAResetFindsIsNoSnapshot(t *testing.T) {
	t.Parallel()
	for _, adapt := range []func(*observer.Spec){func(*observer.Spec) {}, noTimestamp} {
		var log bytes.Buffer
		s := setup(t, observer.DetectSnapshot, adapt, func(s *observer.Spec) { s.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		s.put(0, 1)
		s.src.Pass(10)
		s.poll()
		equal(t, "said of a new one", strings.Count(log.String(), "The observer is new"), 1)
		s.put(1, 1)
		s.src.Pass(1000)
		s.db.Reset(stream)
		log.Reset()
		s.poll()
		equal(t, "said of a reset", strings.Count(log.String(), "The observer was reset"), 1)
		s.checkSnapshots(t, []string{key(0)}, []string{key(1)})
	}
}

// While the source's clock is back where it was before the first reading, rows are written
// that look older.
func TestRowsOfAClockThatWentBackAreNoSnapshots(t *testing.T) {
	t.Parallel()
	for _, now := range []bool{false, true} {
		s := setup(t, observer.DetectChange, func(s *observer.Spec) { s.Start.Now = now })
		s.src.SetClock(10000)
		s.poll()
		s.put(0, 1)
		s.poll()
		s.src.TurnBack(5000)
		s.put(1, 2)
		s.poll()
		s.src.SetClock(20000)
		s.put(3, 1)
		s.poll()
		s.checkSnapshots(t, nil, []string{key(0), key(1), key(2), key(3)})
	}
}

func TestRowsOfAReplacedSourceAreNoSnapshots(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	s.src.SetIdentity("db:1")
	s.put(0, 1)
	s.src.Pass(10)
	s.poll()
	s.src.SetIdentity("db:2")
	s.src.Add(observertest.At("undated", "a", -1), observertest.At("dated", "a", 1))
	s.poll()
	s.poll()
	s.checkSnapshots(t, []string{key(0)}, []string{"undated", "dated"})
}

func TestAnEmptyTableHasNoSnapshots(t *testing.T) {
	t.Parallel()
	for _, adapt := range []func(*observer.Spec){func(*observer.Spec) {}, noTimestamp} {
		s := setup(t, observer.DetectSnapshot, adapt, func(s *observer.Spec) { s.MaxChanged, s.ChunkRows = 2, 1 })
		s.src.Keyed = true
		s.src.SetClock(10)
		s.poll()
		s.src.Pass(1000)
		s.put(0, 5)
		for range 5 {
			s.poll()
		}
		s.checkSnapshots(t, nil, []string{key(0), key(1), key(2), key(3), key(4)})
	}
}

// held is a source that cannot tell since when the oldest transaction is open.
type held struct {
	*observertest.Source
	is bool
}

func (h *held) Horizon(ctx context.Context, q observer.Query) (observer.Horizon, error) {
	o, err := h.Source.Horizon(ctx, q)
	if h.is {
		o.Cursor, o.Earliest = "", ""
	}
	return o, err
}

func TestRowsOfAHeldHorizonAreNoSnapshots(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	h := &held{Source: s.src, is: true}
	poll := func() {
		if _, err := s.observer().Poll(t.Context(), h, s.db.Acquire()); err != nil {
			t.Fatal(err)
		}
	}
	s.src.SetClock(100)
	tx := s.src.Begin()
	tx.Put("late", "a")
	s.src.SetClock(1000)
	poll()
	tx.Commit()
	h.is = false
	poll()
	s.checkSnapshots(t, nil, []string{"late"})
}

// A person is told once that history becomes events.
func TestNewObserverTellsOfHistory(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	s.put(0, 1)
	s.poll()
	s.poll()
	if n := strings.Count(log.String(), "'start: now' leaves out those of before"); n != 1 {
		t.Errorf("told %d times: %s", n, &log)
	}
}

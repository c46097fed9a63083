package observer_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

func TestSweepIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		adapt func(*stage, int64)
		want  error
	}{
		"a snapshot":        {func(s *stage, _ int64) { s.spec.Detect, s.spec.Start = observer.DetectSnapshot, observer.Start{} }, observer.ErrNotSwept},
		"without timestamp": {func(s *stage, _ int64) { s.spec.Query.Timestamp, s.spec.Start = "", observer.Start{} }, observer.ErrNotSwept},
		"another query":     {func(s *stage, _ int64) { s.spec.Query.Table = "u" }, observer.ErrQueryChanged},
		"another database":  {func(s *stage, _ int64) { s.src.SetIdentity("db:2") }, observer.ErrSourceReplaced},
		"other columns":     {func(s *stage, _ int64) { s.src.SetColumns(columns("id", "text")...) }, observer.ErrColumnsChanged},
		"cancelled":         {func(s *stage, id int64) { s.db.CancelSweep(id) }, observer.ErrConflict},
		"a poll comes between": {func(s *stage, _ int64) {
			s.db.Step = func(call string) error {
				if call == "commit" {
					s.db.Step = nil
					s.src.Pass(100)
					s.put(500, 1)
					s.poll()
				}
				return nil
			}
		}, observertest.ErrFenced},
		"mostly poison": {func(s *stage, _ int64) {
			for i := range 20 {
				s.src.Add(bad(key(100+i), 10))
			}
			s.spec.ChunkRows = 100
		}, observer.ErrMostlyPoison},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectNew)
			s.src.SetIdentity("db:1")
			for i := range 10 {
				s.src.Add(observertest.At(key(i), "a", int64(i)+1))
			}
			s.src.SetClock(30)
			s.spec.Start.At = observertest.Time(20)
			s.put(50, 30)
			s.poll()
			sweep := s.db.StartSweep(stream, observer.SweepBackfill, "", observertest.CursorAt(20))
			test.adapt(s, sweep.ID)
			if _, err := s.trySweep(sweep.ID, observer.Budget{}); !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			now := s.db.Sweep(sweep.ID)
			now.State = sweep.State
			equal(t, "sweep", now, sweep)
			equal(t, "swept", contains(s.story(), key(0)+" new 1"), false)
		})
	}
}

// The next poll begins at the start, so what a backfill has not come to is still
// for the backfill to read.
func TestBackfillGoesOnInTheDatabaseThatIsThereNow(t *testing.T) {
	t.Parallel()
	s := history(t, observer.DetectNew, 40)
	s.src.SetIdentity("db:1")
	s.poll()
	id := s.db.StartSweep(stream, observer.SweepBackfill, "", observertest.CursorAt(21)).ID
	if _, err := s.trySweep(id, observer.Budget{Rows: 5}); err != nil {
		t.Fatal(err)
	}
	equal(t, "events of the first step", len(s.story()), 25)
	s.src.SetIdentity("db:2")
	_, err := s.trySweep(id, observer.Budget{})
	if !errors.Is(err, observer.ErrSourceReplaced) || !strings.Contains(err.Error(), "continues after that") {
		t.Fatalf("got %v", err)
	}
	s.poll()
	equal(t, "events of the poll", len(s.story()), 25)
	s.sweep(id, observer.Budget{})
	equal(t, "events", len(s.checkLog()), 40)
}

// A few poison rows are kept, as a poll would keep them; those at which a step
// ends are not judged again by the next.
func TestPoisonRowsOfASweep(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.ChunkRows = 100 })
	for i := range 30 {
		s.src.Add(observertest.At(key(i), "a", 10))
	}
	for i := range 12 {
		s.src.Add(bad(key(100+i), 11))
	}
	s.src.Add(observertest.At("end", "a", 12))
	s.src.SetClock(30)
	s.spec.Start.At = observertest.Time(20)
	s.put(50, 3)
	s.poll()
	id := s.db.StartSweep(stream, observer.SweepBackfill, "", "").ID
	s.sweep(id, observer.Budget{Rows: 42})
	equal(t, "poison rows", len(s.db.Dead(stream)), 12)
	equal(t, "events", len(s.checkLog()), 34)
}

// What a sweep refuses is noted for a person, whose answer the polls leave to the sweep.
func TestPoisonOfASweepIsAccepted(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.ChunkRows = 100 })
	for i := range 20 {
		s.src.Add(observertest.At(key(i), "a", 9), bad(key(100+i), 10), bad(key(200+i), 10))
	}
	s.src.SetClock(30)
	s.spec.Start.At = observertest.Time(20)
	s.put(50, 3)
	s.poll()
	id := s.db.StartSweep(stream, observer.SweepBackfill, "", "").ID
	for range 2 {
		if _, err := s.trySweep(id, observer.Budget{}); !errors.Is(err, observer.ErrMostlyPoison) {
			t.Fatalf("got %v", err)
		}
		s.poll()
	}
	r, err := observer.DecodeRefusal(s.db.Cursor(stream).Refusal)
	if err != nil || r.Kind != observer.RefusalPoison || r.Sweep != observer.SweepBackfill || r.Rows != 40 {
		t.Fatalf("refused %+v: %v", r, err)
	}
	s.db.Accept(stream)
	s.poll()
	s.sweep(id, observer.Budget{})
	equal(t, "what is left", s.db.Cursor(stream).Refusal+s.db.Cursor(stream).Accepted, "")
	equal(t, "poison rows", len(s.db.Dead(stream)), 40)
	equal(t, "events", len(s.checkLog()), 23)
}

// TestSweepCrashesAtEveryStep ends steps of a sweep at each of their calls, in
// each of the ways that a poll can end; later steps finish it.
func TestSweepCrashesAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"failure", "death"} {
		for n := 1; n <= 40; n++ {
			s := history(t, observer.DetectChange, 24)
			s.src.Add(observertest.At("hidden", "a", 20))
			id := s.db.StartSweep(stream, observer.SweepReconcile, "", "").ID
			var calls atomic.Int64
			s.src.Step = func(string) error {
				if calls.Add(1) == int64(n) && way == "failure" {
					return errBroken
				}
				return nil
			}
			s.db.Step = s.src.Step
			for s.db.Sweep(id).State == observer.SweepRunning {
				st := s.db.Acquire()
				if way == "death" {
					st = &dying{st, int64(n%4) + 1}
				}
				_, _, err := s.observer().Sweep(t.Context(), s.src, st, s.db.Sweep(id), observer.Budget{Rows: 7})
				if err != nil && !errors.Is(err, errBroken) {
					t.Fatal(err)
				}
			}
			if got := len(s.checkLog()); got != 25 || !slices.Contains(s.story(), "hidden new 1") {
				t.Fatalf("%s at call %d: %d events", way, n, got)
			}
		}
	}
}

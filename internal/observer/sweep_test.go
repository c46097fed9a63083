package observer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// trySweep takes one step under a new lease.
func (s *stage) trySweep(id int64, b observer.Budget) (observer.Stats, error) {
	s.t.Helper()
	got, stats, err := s.observer().Sweep(s.t.Context(), s.src, s.db.Acquire(), s.db.Sweep(id), b)
	if want := s.db.Sweep(id); err == nil && got != want {
		s.t.Fatalf("step returned %+v, committed was %+v", got, want)
	}
	return stats, err
}

// sweep takes steps until the sweep is done, and returns their positions.
func (s *stage) sweep(id int64, b observer.Budget) (positions []string) {
	s.t.Helper()
	for s.db.Sweep(id).State == observer.SweepRunning {
		before := s.db.Sweep(id).Position
		if _, err := s.trySweep(id, b); err != nil {
			s.t.Fatalf("sweep: %v", err)
		}
		after := s.db.Sweep(id)
		if after.Position <= before && after.State != observer.SweepDone {
			s.t.Fatalf("step did not move from %q", before)
		}
		positions = append(positions, after.Position)
	}
	return positions
}

// history is a source with a row at each of so many instants, from 1, polled
// from the middle on.
func history(t tester, detect observer.Detect, rows int, adapt ...func(*observer.Spec)) *stage {
	t.Helper()
	s := setup(t, detect, adapt...)
	for i := range rows {
		s.src.Add(observertest.At(key(i), "a", int64(i)+1))
	}
	s.src.SetClock(int64(rows) + 1)
	s.spec.Start.At = observertest.Time(int64(rows)/2 + 1)
	s.poll()
	return s
}

func TestBackfillReadsWhatLiesBeforeTheStart(t *testing.T) {
	t.Parallel()
	for _, detect := range []observer.Detect{observer.DetectNew, observer.DetectChange} {
		s := history(t, detect, 40)
		equal(t, "events of the poll", len(s.story()), 20)
		cursor := s.db.Cursor(stream)
		id := s.db.StartSweep(stream, observer.SweepBackfill, observertest.CursorAt(3), observertest.CursorAt(21)).ID
		positions := s.sweep(id, observer.Budget{Rows: 5})
		equalList(t, "positions", positions,
			observertest.CursorAt(7), observertest.CursorAt(11), observertest.CursorAt(15), observertest.CursorAt(19), observertest.CursorAt(21))
		equal(t, "events", len(s.checkLog()), 38)
		done := s.db.Sweep(id)
		equal(t, "rows, of which four are read twice", done.Rows, 22)
		equal(t, "events of the sweep", done.Events, 18)
		equal(t, "marks", marks(s.db.Cursor(stream)), marks(cursor))
		equal(t, "last full read", s.db.Cursor(stream).Marks.RereadAt, cursor.Marks.RereadAt)
		for _, r := range s.src.Ranges()[1:] {
			equal(t, "read before", r.Before, observertest.CursorAt(21))
		}
	}
}

// A timestamp was set back by hand, below the low-water mark.
func TestReconcileFindsWhatIsBackDated(t *testing.T) {
	t.Parallel()
	for detect, want := range map[observer.Detect][]string{
		observer.DetectNew:    {"hidden new 1"},
		observer.DetectChange: {"hidden new 1", key(3) + " changed 2"},
	} {
		s := setup(t, detect)
		s.src.SetClock(100)
		s.put(0, 20)
		s.poll()
		changed := observertest.At(key(3), "b", 110)
		s.src.Delete(key(3))
		s.src.Add(observertest.At("hidden", "a", 105), changed)
		s.poll()
		equal(t, "events of polls", len(s.story()), 20)
		id := s.db.StartSweep(stream, observer.SweepReconcile, "", "").ID
		s.sweep(id, observer.Budget{Rows: 4})
		equalList(t, "events", s.story()[20:], want...)
		equal(t, "events of the sweep", s.db.Sweep(id).Events, int64(len(want)))
		again := s.db.StartSweep(stream, observer.SweepReconcile, "", "").ID
		s.sweep(again, observer.Budget{})
		equal(t, "events of another sweep", s.db.Sweep(again).Events, 0)
		s.checkLog()
	}
}

// A transaction is open; its row lies just above the low-water mark, below rows
// that a sweep would have passed had it read on.
func TestSweepEndsAtTheLowWaterMark(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.put(0, 10)
	tx := s.src.Begin()
	tx.Put("late", "a")
	s.put(20, 10)
	s.poll()
	low := s.db.Cursor(stream).Low
	for _, before := range []string{"", observertest.CursorAt(5000)} {
		id := s.db.StartSweep(stream, observer.SweepReconcile, "", before).ID
		s.sweep(id, observer.Budget{})
		reads := s.src.Ranges()
		equal(t, "read before", reads[len(reads)-1].Before, low)
		equal(t, "position", s.db.Sweep(id).Position, low)
	}
	tx.Commit()
	s.poll()
	equal(t, "events", len(s.checkLog()), 21)
	equal(t, "last event", s.story()[20], "late new 1")
}

func TestNothingIsSweptBeforeTheFirstPoll(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.put(0, 10)
	id := s.db.StartSweep(stream, observer.SweepReconcile, "", "").ID
	if _, err := s.trySweep(id, observer.Budget{}); err != nil {
		t.Fatal(err)
	}
	equal(t, "reads", len(s.src.Reads()), 0)
	equal(t, "state", s.db.Sweep(id).State, observer.SweepRunning)
	equal(t, "chunks", len(s.db.Chunks(stream)), 0)
}

// The first step of a backfill comes before the first poll.
func TestSweepGivesANewStreamItsStart(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.Start.Now = true })
	s.src.SetIdentity("db:1")
	s.put(0, 10)
	s.src.Pass(10)
	start := observertest.CursorAt(s.src.Clock())
	id := s.db.StartSweep(stream, observer.SweepBackfill, "", start).ID
	s.sweep(id, observer.Budget{})
	equal(t, "events of the sweep", len(s.story()), 10)
	c := s.db.Cursor(stream)
	equal(t, "low-water mark", c.Low, start)
	equal(t, "remembered", fmt.Sprintln(c.Marks.Identity, c.Fingerprint != "", c.Marks.Columns != ""), "db:1 true true\n")
	s.src.Pass(100)
	s.put(20, 5)
	s.poll()
	equal(t, "events", len(s.checkLog()), 15)
}

func TestStepOfASweepPassesALargeGroup(t *testing.T) {
	t.Parallel()
	for _, b := range []observer.Budget{{Rows: 2}, {Time: 1}, {Rows: 2, Time: 1}} {
		s := setup(t, observer.DetectChange)
		s.src.SetClock(100)
		s.src.Add(observertest.At("first", "a", 1))
		for i := range 30 {
			s.src.Add(observertest.At(key(i), "a", 42))
		}
		s.src.Add(observertest.At("next", "a", 43))
		s.spec.Start.At = observertest.Time(50)
		s.src.Add(observertest.At("later", "a", 60))
		s.poll()
		id := s.db.StartSweep(stream, observer.SweepBackfill, "", "").ID
		s.sweep(id, b)
		equal(t, "events", len(s.checkLog()), 33)
		equal(t, "poison rows", len(s.db.Dead(stream)), 0)
	}
}

func TestStepOfASweepEndsWithItsTime(t *testing.T) {
	t.Parallel()
	s := history(t, observer.DetectNew, 40)
	id := s.db.StartSweep(stream, observer.SweepBackfill, "", "").ID
	positions := s.sweep(id, observer.Budget{Time: 1})
	equal(t, "position of the first step, a chunk", positions[0], observertest.CursorAt(3))
	equal(t, "events", len(s.checkLog()), 40)
	again := s.db.StartSweep(stream, observer.SweepBackfill, "", "").ID
	equal(t, "steps that have time", len(s.sweep(again, observer.Budget{Time: time.Hour})), 1)
}

// What a sweep reads and knows already costs one commit a step.
func TestSweepCommitsItsPositionOverKnownRows(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	s.put(0, 30)
	s.poll()
	before := len(s.db.Chunks(stream))
	id := s.db.StartSweep(stream, observer.SweepReconcile, "", "").ID
	steps := len(s.sweep(id, observer.Budget{Rows: 10}))
	equal(t, "commits", len(s.db.Chunks(stream))-before, steps)
	equal(t, "rows", s.db.Sweep(id).Rows, int64(29+steps-1))
	equal(t, "events", s.db.Sweep(id).Events, 0)
}

// The mark went back below a sweep: all that is left is the polls' to read.
func TestSweepAboveTheMarkIsDone(t *testing.T) {
	t.Parallel()
	s := history(t, observer.DetectNew, 40)
	id := s.db.StartSweep(stream, observer.SweepReconcile, observertest.CursorAt(1000), "").ID
	s.sweep(id, observer.Budget{})
	equal(t, "reads of the sweep", len(s.src.Reads())-1, 0)
	equal(t, "position", s.db.Sweep(id).Position, observertest.CursorAt(1000))
}

// The limit of changed rows is one of polls; a step has its own budget.
func TestSweepIsNotBoundByTheChangedRowsOfAPoll(t *testing.T) {
	t.Parallel()
	s := history(t, observer.DetectNew, 40)
	s.spec.MaxChanged = 4
	id := s.db.StartSweep(stream, observer.SweepBackfill, "", "").ID
	equal(t, "steps", len(s.sweep(id, observer.Budget{Rows: 100})), 1)
	equal(t, "events", len(s.checkLog()), 40)
}

// Timestamps that cannot be read, such as zero dates, come first and use up the
// rows of a step, which is then not the last.
func TestSweepGoesOnBehindTimestampsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := history(t, observer.DetectNew, 40)
	for i := range 7 {
		s.src.Add(bad(key(100+i), 0))
	}
	id := s.db.StartSweep(stream, observer.SweepBackfill, "", observertest.CursorAt(21)).ID
	src := &zeroDates{Source: s.src}
	for s.db.Sweep(id).State == observer.SweepRunning {
		if _, _, err := s.observer().Sweep(t.Context(), src, s.db.Acquire(), s.db.Sweep(id), observer.Budget{Rows: 5}); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "events", len(s.checkLog()), 40)
	equal(t, "poison", len(s.db.Dead(stream)), 7)
}

// zeroDates is a source that cannot read the timestamps of its poison rows.
type zeroDates struct{ *observertest.Source }

func (z *zeroDates) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	rows, err := z.Source.Read(ctx, q, in)
	return unreadable{rows}, err
}

type unreadable struct{ observer.Rows }

func (u unreadable) Row() *observer.Row {
	row := u.Rows.Row()
	if row.Err != nil {
		row.Cursor, row.Time = "", time.Time{}
	}
	return row
}

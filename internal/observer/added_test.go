package observer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// stepRows is the budget of a step of the reconciles here.
var stepRows = observer.Budget{Rows: 10}

func (s *stage) reconcile() int64 {
	return s.db.StartSweep(stream, observer.SweepReconcile, "", "").ID
}

// refusesColumns fails the test unless reading refuses the columns as the texts say, and makes no
// event.
func (s *stage) refusesColumns(reading func() (observer.Stats, error), want ...string) {
	s.t.Helper()
	before, marks := len(s.db.Events(stream)), s.db.Cursor(stream).Marks
	_, err := reading()
	if !errors.Is(err, observer.ErrColumnsChanged) {
		s.t.Fatalf("the columns were not refused: %v", err)
	}
	for _, text := range append(want, "`observerd observers accept orders`") {
		if !strings.Contains(err.Error(), text) {
			s.t.Fatalf("%q lacks %q", err, text)
		}
	}
	if n := len(s.db.Events(stream)) - before; n > 0 {
		s.t.Fatalf("a reading that refuses made %d events", n)
	}
	if now := s.db.Cursor(stream).Marks; now.Columns != marks.Columns || now.FullColumns != marks.FullColumns {
		s.t.Fatalf("remembered after a refusal: %+v", now)
	}
}

// refusesAdded polls, or takes a step of the sweep, which refuses an added column.
func (s *stage) refusesAdded(column string, sweep ...int64) {
	s.t.Helper()
	s.refusesColumns(func() (observer.Stats, error) {
		if len(sweep) > 0 {
			return s.trySweep(sweep[0], stepRows)
		}
		return s.tryPoll()
	}, fmt.Sprintf("column %q (text) was added, which makes an event of each row", column), "set `columns`")
}

// settled fails the test unless nothing is refused, and the columns are remembered that all
// rows were read with.
func (s *stage) settled(t *testing.T, columns ...observer.Column) {
	t.Helper()
	c := s.db.Cursor(stream)
	equal(t, "refused or accepted", c.Refusal+c.Accepted, "")
	equal(t, "remembered", c.Marks.FullColumns, observer.EncodeColumns(columns))
}

// setMarks commits other marks.
func (s *stage) setMarks(set func(*observer.Marks)) {
	s.t.Helper()
	chunk := observer.Chunk{CommitID: uuid.New(), Before: s.db.Cursor(stream)}
	after := chunk.Before
	set(&after.Marks)
	chunk.Advance(after)
	if _, err := s.db.Acquire().Commit(s.t.Context(), chunk); err != nil {
		s.t.Fatal(err)
	}
}

// TestAddedColumnOfAllRowsIsAccepted adds a column where each poll reads all rows. What is
// accepted holds to the end of the reading, whoever dies on the way.
func TestAddedColumnOfAllRowsIsAccepted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		detect observer.Detect
		adapt  func(*stage)
	}{
		"without a timestamp": {observer.DetectChange, func(s *stage) { s.spec.Query.Timestamp, s.src.Unordered = "", true }},
		"a snapshot":          {observer.DetectSnapshot, func(*stage) {}},
		"a snapshot by key":   {observer.DetectSnapshot, func(s *stage) { s.src.Keyed = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, test.detect, func(s *observer.Spec) { s.MaxChanged = 20 })
			test.adapt(s)
			s.put(0, 30)
			for len(s.db.Events(stream)) < 30 {
				s.poll()
			}
			s.src.AddColumn("note")
			for range 2 {
				s.refusesAdded("note")
			}
			s.db.Accept(stream)
			s.db.Step = failAt("commit", 1)
			if _, err := s.tryPoll(); !errors.Is(err, errBroken) {
				t.Fatalf("got %v, want %v", err, errBroken)
			}
			s.db.Step = nil
			if _, err := s.observer().Poll(t.Context(), s.src, &dying{s.db.Acquire(), 2}); err == nil {
				t.Fatal("did not die")
			}
			for s.poll().Events > 0 {
			}
			for key, events := range s.checkLog() {
				equal(t, "versions of "+key, len(events), 2)
			}
			s.settled(t, columns("id", "text", "value", "text", "note", "text")...)
			s.src.AddColumn("notes")
			s.refusesAdded("notes")
		})
	}
}

// TestAddedColumnPasses adds a column where it makes events of few rows, or of none, or where
// nobody knows with which columns all rows were read.
func TestAddedColumnPasses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		detect observer.Detect
		rows   int
		adapt  func(*stage)
		again  int // Rows that become events for the column alone.
	}{
		"of new rows":       {observer.DetectNew, 30, func(s *stage) { s.spec.Query.Timestamp, s.src.Unordered = "", true }, 0},
		"of a small table":  {observer.DetectSnapshot, 10, func(*stage) {}, 10},
		"behind the cursor": {observer.DetectChange, 30, func(*stage) {}, 1},
		"named in columns":  {observer.DetectSnapshot, 30, func(s *stage) { s.spec.Query.Columns = []string{"id", "value", "note"} }, 30},
		"in an empty table": {observer.DetectSnapshot, 0, func(*stage) {}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, test.detect)
			test.adapt(s)
			s.put(0, test.rows)
			s.poll()
			s.src.AddColumn("note")
			s.put(100, 40)
			for s.poll().Events > 0 {
			}
			equal(t, "events", len(s.db.Events(stream)), test.rows+40+test.again)
			equal(t, "refused", s.db.Cursor(stream).Refusal, "")
			s.checkLog()
		})
	}
}

// A stream that an earlier version has polled has nothing to compare with, until all its rows
// are read once.
func TestColumnsOfAllRowsAreUnknownAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	for _, detect := range []observer.Detect{observer.DetectSnapshot, observer.DetectChange} {
		s := setup(t, detect)
		s.put(0, 30)
		s.poll()
		s.setMarks(func(m *observer.Marks) { m.FullColumns = "" })
		s.src.AddColumn("note")
		s.poll()
		if detect == observer.DetectChange {
			equal(t, "remembered by a poll that reads few rows", s.db.Cursor(stream).Marks.FullColumns, "")
			s.sweep(s.reconcile(), stepRows)
		}
		s.settled(t, columns("id", "text", "value", "text", "note", "text")...)
		s.src.AddColumn("more")
		if detect == observer.DetectChange {
			s.poll()
			s.refusesAdded("more", s.reconcile())
			continue
		}
		s.refusesAdded("more")
	}
}

// TestReconcileAsksForAddedColumn has a reconcile meet the rows that polls do not read again,
// of columns that these let pass. It dies on the way, and the polls go on.
func TestReconcileAsksForAddedColumn(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	s.put(0, 40)
	s.poll()
	for _, name := range []string{"note", "more"} {
		s.src.AddColumn(name)
		s.put(50, 1)
		s.poll()
	}
	id := s.reconcile()
	for range 2 {
		s.refusesAdded("note", id)
		s.refusesAdded("more", id)
		s.poll()
	}
	s.db.Accept(stream)
	s.poll()
	_, _, err := s.observer().Sweep(t.Context(), s.src, &dying{s.db.Acquire(), 2}, s.db.Sweep(id), stepRows)
	if !errors.Is(err, errBroken) {
		t.Fatalf("got %v, want %v", err, errBroken)
	}
	s.poll()
	s.sweep(id, stepRows)
	for key, events := range s.checkLog() {
		if len(events) < 2 {
			t.Errorf("%s has no event with the columns", key)
		}
	}
	s.settled(t, columns("id", "text", "value", "text", "note", "text", "more", "text")...)
	before := len(s.db.Events(stream))
	s.sweep(s.reconcile(), stepRows)
	equal(t, "events of another", len(s.db.Events(stream)), before)
}

// A backfill asks nobody: a person has begun it.
func TestBackfillPassesAnAddedColumn(t *testing.T) {
	t.Parallel()
	s := history(t, observer.DetectChange, 40)
	s.src.AddColumn("note")
	s.poll()
	s.sweep(s.db.StartSweep(stream, observer.SweepBackfill, "", observertest.CursorAt(21)).ID, stepRows)
	equal(t, "observed", len(s.checkLog()), 40)
	s.refusesAdded("note", s.reconcile())
}

// What is refused is over when the column is gone, or left out by the configuration; another
// column than the one that was accepted is refused again.
func TestRefusedColumnThatIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot)
	s.put(0, 30)
	s.poll()
	s.src.AddColumn("note")
	s.refusesAdded("note")
	s.src.DropColumn("note")
	s.poll()
	s.settled(t, columns("id", "text", "value", "text")...)

	s.src.AddColumn("note")
	s.refusesAdded("note")
	named := *s
	named.spec.Query.Columns = []string{"id", "value"}
	s.src.DropColumn("note") // It is not read.
	named.poll()
	s.settled(t)
	s.poll()
	equal(t, "events", len(s.db.Events(stream)), 30)

	s.src.AddColumn("note")
	s.refusesAdded("note")
	named.spec.Query.Columns = []string{"id", "value", "note"}
	named.poll()
	equal(t, "events of a column that is named", len(s.db.Events(stream)), 60)
	s.poll()
	s.settled(t, columns("id", "text", "value", "text", "note", "text")...)

	s.src.AddColumn("more")
	s.refusesAdded("more")
	s.db.Accept(stream)
	s.src.AddColumn("most")
	s.refusesAdded("most")
	s.db.Accept(stream)
	s.poll()
	equal(t, "events", len(s.db.Events(stream)), 90)
}

// A column that is renamed is a missing one and an added one, for one answer.
func TestRenamedColumnIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot)
	s.src.AddColumn("note")
	s.put(0, 30)
	s.poll()
	s.src.DropColumn("note")
	s.src.AddColumn("remark")
	s.refusesColumns(s.tryPoll, `column "note" (text) is missing`, `column "remark" (text) was added`)
	s.db.Accept(stream)
	s.poll()
	equal(t, "events", len(s.db.Events(stream)), 60)
	s.settled(t, columns("id", "text", "value", "text", "remark", "text")...)
}

// A reconcile compares with the columns that all rows were read with last, and not with all
// that there have ever been.
func TestColumnThatWasRemovedRefusesNoReconcile(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	s.put(0, 30)
	s.poll()
	s.src.AddColumn("note")
	s.poll()
	id := s.reconcile()
	s.refusesAdded("note", id)
	s.src.DropColumn("note")
	s.refusesColumns(s.tryPoll, `column "note" (text) is missing`)
	s.db.Accept(stream)
	s.poll()
	s.sweep(id, stepRows)
	s.settled(t, columns("id", "text", "value", "text")...)

	s.src.AddColumn("note")
	s.poll()
	id = s.reconcile()
	s.refusesAdded("note", id)
	s.db.Accept(stream)
	s.sweep(id, stepRows)
	s.src.DropColumn("note")
	s.refusesColumns(s.tryPoll, `column "note" (text) is missing`)
	s.db.Accept(stream)
	s.poll()
	s.sweep(s.reconcile(), stepRows)
	s.settled(t, columns("id", "text", "value", "text")...)
	s.src.AddColumn("note")
	s.poll()
	s.refusesAdded("note", s.reconcile())
}

// Columns that come and go between reads, as those of two replicas may, stop no reading for
// ever: those of either kind pass when all rows were read with them.
func TestColumnsThatAlternate(t *testing.T) {
	t.Parallel()
	for _, keyed := range []bool{false, true} {
		s := setup(t, observer.DetectSnapshot, func(s *observer.Spec) { s.MaxChanged = 20 })
		s.src.Keyed = keyed
		s.put(0, 30)
		for len(s.db.Events(stream)) < 30 {
			s.poll()
		}
		for i := range 3 {
			s.src.AddColumn("note")
			s.refusesAdded("note")
			s.src.DropColumn("note")
			s.put(100+i, 1)
			for s.poll().Events > 0 {
			}
			equal(t, "events", len(s.db.Events(stream)), 31+i)
		}
		s.src.AddColumn("note")
		s.refusesAdded("note")
		s.db.Accept(stream)
		for range 3 {
			s.poll()
			s.src.DropColumn("note")
			s.refusesColumns(s.tryPoll, `column "note" (text) is missing`)
			s.src.AddColumn("note")
		}
		for s.poll().Events > 0 {
		}
		equal(t, "events", len(s.db.Events(stream)), 66)
		s.settled(t, columns("id", "text", "value", "text", "note", "text")...)
	}
}

// Columns that alternate between the statements of one reading leave it where it was.
func TestColumnsThatAlternateWithinAReading(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot, func(s *observer.Spec) { s.StatementTime = 1 })
	s.src.Keyed = true
	s.put(0, 30)
	s.poll()
	there := false
	s.src.Step = func(call string) error {
		switch {
		case call != "read":
		case there:
			s.src.DropColumn("note")
		default:
			s.src.AddColumn("note")
		}
		there = there != (call == "read")
		return nil
	}
	s.put(100, 1)
	refused := 0
	for len(s.db.Events(stream)) < 31 && refused < 100 {
		if _, err := s.tryPoll(); errors.Is(err, observer.ErrColumnsChanged) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "events", len(s.checkLog()), 31)
	if refused < 2 {
		t.Errorf("%d readings were refused, want one that went on and was refused again", refused)
	}
}

// TestRemovedColumnOfASweepIsAccepted has a sweep and polls meet a column that is missing: the
// answer is for the poll, after which the sweep goes on.
func TestRemovedColumnOfASweepIsAccepted(t *testing.T) {
	t.Parallel()
	for _, kind := range []observer.SweepKind{observer.SweepReconcile, observer.SweepBackfill} {
		s := setup(t, observer.DetectChange)
		s.src.AddColumn("note")
		s.put(0, 30)
		s.poll()
		id := s.db.StartSweep(stream, kind, "", "").ID
		if _, err := s.trySweep(id, stepRows); err != nil {
			t.Fatal(err)
		}
		s.src.DropColumn("note")
		step := func() (observer.Stats, error) { return s.trySweep(id, stepRows) }
		s.refusesColumns(step, `column "note" (text) is missing`)
		s.refusesColumns(s.tryPoll, `column "note" (text) is missing`)
		s.db.Accept(stream)
		s.refusesColumns(step, `column "note" (text) is missing`)
		s.poll()
		s.sweep(id, stepRows)
		c := s.db.Cursor(stream)
		equal(t, "refused or accepted", c.Refusal+c.Accepted, "")
		equal(t, "remembered", c.Marks.Columns, `[["id","text"],["value","text"]]`)
	}
}

// The first poll after a reset that keeps the cursor remembers the columns, also if it takes
// up what it had compared when its time was over.
func TestColumnsStayWhenAPollGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, observer.DetectChange, func(s *observer.Spec) { s.PollTime = time.Minute })
		s.src.SetTies("id")
		s.src.SetClock(10)
		s.src.Begin() // It holds the low-water mark at the rows.
		for i := range 200 {
			s.src.Add(observertest.At(key(i), "a", 11))
		}
		s.poll()
		equal(t, "marks", marks(s.db.Cursor(stream)), "11/11")
		s.setMarks(func(m *observer.Marks) { *m = m.Reset(false, false) })
		s.takes(time.Second, 1)
		s.poll()
		s.settled(t, columns("id", "text", "value", "text")...)
	})
}

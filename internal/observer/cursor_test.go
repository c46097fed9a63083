package observer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// marks are the marks of a cursor.
func marks(c observer.Cursor) string {
	return strings.TrimLeft(c.Low, "0") + "/" + strings.TrimLeft(c.Newest, "0")
}

func TestMarksFollowTheChunks(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	for i := range 8 {
		s.src.Add(observertest.At(key(i), "a", int64(10+i)))
	}
	s.src.SetClock(14)
	tx := s.src.Begin()
	s.src.SetClock(20)
	s.poll()
	var got []string
	for _, ch := range s.db.Chunks(stream) {
		got = append(got, marks(ch.After))
	}
	equalList(t, "low-water mark, newest", got, "12/12", "15/15", "15/17")
	tx.Commit()
	s.poll()
	equalList(t, "reads began at", s.src.Reads(), "", observertest.CursorAt(15))
	equal(t, "marks after the horizon moved", marks(s.db.Cursor(stream)), "17/17")
}

func TestRowsWithoutATimestampMoveNoMark(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.SetClock(50)
	s.src.Add(observertest.At("dated", "a", 7))
	for i := range 10 {
		s.src.Add(observertest.At(key(i), "a", -1))
	}
	for range 3 {
		s.poll()
	}
	equal(t, "marks", marks(s.db.Cursor(stream)), "7/7")
	equal(t, "events", len(s.story()), 11)
}

func TestPollWithoutChangesCommitsOnlyMovedMarks(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	s.poll()
	equal(t, "chunks of the first poll, for the fingerprint", len(s.db.Chunks(stream)), 1)
	s.poll()
	equal(t, "chunks of an empty poll", len(s.db.Chunks(stream)), 1)

	s.put(0, 9)
	s.poll()
	equal(t, "chunks of nine rows", len(s.db.Chunks(stream)), 4)
	s.poll()
	equal(t, "chunks when nothing moved", len(s.db.Chunks(stream)), 4)
	for i := range 9 {
		s.src.Put(key(i), "a") // The same data under a new timestamp.
	}
	s.poll()
	equal(t, "chunks when only the marks moved", len(s.db.Chunks(stream)), 5)
	equal(t, "marks", marks(s.db.Cursor(stream)), "36/36")
}

func TestLateCommitsAreObserved(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.put(0, 4)
	tx := s.src.Begin()
	tx.Put("late", "a")
	s.put(10, 10)
	s.poll()
	s.poll()
	equal(t, "events before the commit", len(s.story()), 14)
	tx.Commit()
	s.poll()
	equal(t, "last event", s.story()[14], "late new 1")
	s.checkLog()
}

// A transaction commits after the first of horizon and read, whichever that
// is. Were it the read, the horizon would pass a row that the read lacks.
func TestCommitBetweenHorizonAndRead(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	tx := s.src.Begin()
	tx.Put("late", "a")
	s.put(0, 5)
	n := 0
	s.src.Step = func(call string) error {
		if call == "horizon" || call == "read" {
			if n++; n == 2 {
				tx.Commit()
			}
		}
		return nil
	}
	s.poll()
	s.poll()
	equal(t, "events", len(s.checkLog()), 6)
}

func TestEqualTimestampsAcrossChunks(t *testing.T) {
	t.Parallel()
	for _, maxChanged := range []int{0, 1, 2, 3, 4, 7, 100} {
		s := setup(t, observer.DetectChange, func(s *observer.Spec) { s.MaxChanged = maxChanged })
		s.src.SetClock(100)
		for i := range 25 {
			s.src.Add(observertest.At(key(i), "a", 42))
		}
		polls := 1
		if maxChanged > 0 {
			polls = (25 + maxChanged - 1) / maxChanged
		}
		for range polls {
			if stats := s.poll(); maxChanged > 0 && stats.Events > int64(maxChanged) {
				t.Fatalf("%d events with a limit of %d", stats.Events, maxChanged)
			}
		}
		equal(t, fmt.Sprintf("events with a limit of %d", maxChanged), len(s.story()), 25)
	}
}

// A limit that is met exactly is not a reason to stop short of the end.
func TestLimitDoesNotHoldBackUnchangedRows(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	tx := s.src.Begin()
	s.put(0, 10)
	s.poll()
	tx.Commit()
	s.src.Add(observertest.At("late", "a", 1))
	s.spec.MaxChanged = 1
	equal(t, "rows", s.poll().Rows, 11)
	equal(t, "marks", marks(s.db.Cursor(stream)), "21/21")
}

func TestChangedQueryIsRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change  func(*observer.Spec)
		refused bool
	}{
		"table":     {func(s *observer.Spec) { s.Query.Table = "u" }, true},
		"sql":       {func(s *observer.Spec) { s.Query.Table, s.Query.SQL = "", "SELECT 1" }, true},
		"key":       {func(s *observer.Spec) { s.Query.Key = []string{"id", "line"} }, true},
		"timestamp": {func(s *observer.Spec) { s.Query.Timestamp = "created" }, true},
		"detection": {func(s *observer.Spec) { s.Detect = observer.DetectChange }, true},
		"columns":   {func(s *observer.Spec) { s.Query.Columns = []string{"id"} }, false},
		"overlap":   {func(s *observer.Spec) { s.Query.Overlap = 5 }, false},
		"nothing":   {func(*observer.Spec) {}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectNew)
			s.put(0, 3)
			s.poll()
			test.change(&s.spec)
			_, err := s.tryPoll()
			equal(t, "refused", errors.Is(err, observer.ErrQueryChanged), test.refused)
			if test.refused {
				equal(t, "reads", len(s.src.Reads()), 1)
				equal(t, "says what to do", strings.Contains(err.Error(), "observerd observers reset orders"), true)
				equal(t, "and what else", strings.Contains(err.Error(), "--keep-cursor"), true)
			}
		})
	}
}

func TestRowsOutOfOrderAreRefused(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.put(0, 9)
	_, err := s.observer().Poll(t.Context(), backwards{s.src}, s.db.Acquire())
	if !errors.Is(err, observer.ErrOutOfOrder) {
		t.Fatalf("got %v", err)
	}
	equal(t, "low-water mark", s.db.Cursor(stream).Low, "")
}

// backwards is a source that sorts otherwise than it compares.
type backwards struct{ *observertest.Source }

func (backwards) Compare(a, b string) int { return strings.Compare(b, a) }

func TestChunksAreBounded(t *testing.T) {
	t.Parallel()
	size := len(observertest.At(key(0), "a", 0).Data) + len(key(0))
	tests := map[string]struct{ rows, bytes, chunks int }{
		"by rows":          {4, 0, 3},
		"by bytes":         {100, 5 * size, 2},
		"a byte too small": {100, 5*size - 1, 3},
		"larger rows":      {100, 1, 10},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectNew, func(s *observer.Spec) {
				s.ChunkRows, s.ChunkBytes = test.rows, test.bytes
			})
			s.put(0, 10)
			s.poll()
			equal(t, "chunks", len(s.db.Chunks(stream)), test.chunks)
			equal(t, "events", len(s.story()), 10)
		})
	}
}

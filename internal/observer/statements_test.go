package observer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// shortStatements ends each statement at the first row behind which another can begin.
func shortStatements(s *observer.Spec) { s.StatementTime = time.Nanosecond }

func TestStatementsFollowOneAnother(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange, shortStatements)
	s.src.SetClock(100)
	for i := range 4 {
		s.src.Add(observertest.At(key(i), "a", int64(i)+1))
	}
	s.src.Add(observertest.At("null", "a", -1))
	stats := s.poll()
	equalList(t, "reads from", s.src.Reads(), "", observertest.CursorAt(1), observertest.CursorAt(2), observertest.CursorAt(3), observertest.CursorAt(4), "")
	equal(t, "events", stats.Events, 5)
	equal(t, "rows: the one without a timestamp is read once", stats.Rows, 9)
	equal(t, "poison", stats.Poison, 0)
	equal(t, "marks", marks(s.db.Cursor(stream)), "4/4")
	s.checkLog()
}

// A statement that is not the last says nothing about the end.
func TestPollThatBreaksOffBetweenStatementsIsNotComplete(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, shortStatements)
	s.src.Pass(100)
	s.put(0, 10)
	s.src.Step = failAt("read", 4)
	if _, err := s.tryPoll(); !errors.Is(err, errBroken) {
		t.Fatalf("got %v", err)
	}
	equal(t, "events", len(s.story()), 3)
	equal(t, "marks", marks(s.db.Cursor(stream)), "106/106")
	s.poll()
	equal(t, "events", len(s.checkLog()), 10)
}

// Between two statements of a poll a row is updated, and another commits late, below
// where the poll is.
func TestRowsThatChangeBetweenStatements(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange, shortStatements)
	s.put(0, 3)
	tx := s.src.Begin()
	tx.Put("late", "a")
	s.put(10, 6)
	reads := 0
	s.src.Step = func(call string) error {
		if call == "read" {
			if reads++; reads == 7 {
				tx.Commit()
				s.src.Put(key(0), "b")
			}
		}
		return nil
	}
	equal(t, "poison", s.poll().Poison, 0)
	equal(t, "late row in the first poll", contains(s.story(), "late new 1"), false)
	s.poll()
	equal(t, "late row in the second", contains(s.story(), "late new 1"), true)
	equal(t, "update", contains(s.story(), key(0)+" changed 2"), true)
	equal(t, "events", len(s.story()), 11)
}

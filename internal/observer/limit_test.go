package observer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// limits are the limits of the reads from that one on.
func (s *stage) limits(from int) []string {
	var limits []string
	for _, r := range s.src.Ranges()[from:] {
		limits = append(limits, fmt.Sprint(r.Limit))
	}
	return limits
}

func withLimit(n int) func(*observer.Spec) { return func(s *observer.Spec) { s.Limit = n } }

func TestLimitedReadsFollowOneAnother(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange, withLimit(4))
	s.src.SetClock(100)
	for i := range 10 {
		s.src.Add(observertest.At(key(i), "a", int64(i)+1))
	}
	s.src.Add(observertest.At("null", "a", -1))
	stats := s.poll()
	equalList(t, "reads from", s.src.Reads(), "", observertest.CursorAt(4), observertest.CursorAt(7), observertest.CursorAt(10), "")
	equalList(t, "limits", s.limits(0), "4", "4", "4", "4", "0")
	equal(t, "events", stats.Events, 11)
	equal(t, "rows: the one without a timestamp is read once", stats.Rows, 14)
	equal(t, "poison", stats.Poison, 0)
	equal(t, "marks", marks(s.db.Cursor(stream)), "10/10")
	s.checkLog()
}

// The limit is not one of rows without a timestamp: those are all there.
func TestLimitDoesNotCountRowsWithoutATimestamp(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, withLimit(4))
	s.src.SetClock(100)
	for i := range 10 {
		s.src.Add(observertest.At(key(i), "a", -1))
	}
	s.src.Add(observertest.At("x", "a", 1), observertest.At("y", "a", 2))
	equal(t, "events", s.poll().Events, 12)
	equal(t, "reads", len(s.src.Reads()), 2)
}

// The limit grows until a group of equal timestamps is behind it.
func TestLimitedReadsPassALargeGroup(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange, withLimit(3))
	s.src.SetClock(100)
	for i := range 30 {
		s.src.Add(observertest.At(key(i), "a", 42))
	}
	s.src.Add(observertest.At("next", "a", 43))
	stats := s.poll()
	equalList(t, "limits", s.limits(0), "3", "3", "6", "12", "24", "48")
	equal(t, "events", stats.Events, 31)
	equal(t, "poison", stats.Poison, 0)
}

// A limited read that is not the last says nothing about the end.
func TestLimitedPollThatBreaksOffIsNotComplete(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, withLimit(4))
	s.src.Pass(100)
	s.put(0, 10)
	s.src.Step = failAt("read", 2)
	if _, err := s.tryPoll(); !errors.Is(err, errBroken) {
		t.Fatalf("got %v", err)
	}
	equal(t, "events", len(s.story()), 4)
	equal(t, "marks", marks(s.db.Cursor(stream)), "108/108")
	s.poll()
	equal(t, "events", len(s.checkLog()), 10)
}

// Between two reads of a poll a row is updated, and another commits late, below
// the first read's end.
func TestRowsThatChangeBetweenLimitedReads(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange, withLimit(4))
	s.put(0, 3)
	tx := s.src.Begin()
	tx.Put("late", "a")
	s.put(10, 6)
	reads := 0
	s.src.Step = func(call string) error {
		if call == "read" {
			if reads++; reads == 2 {
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

func TestLimitIsNotForReadsOfEverything(t *testing.T) {
	t.Parallel()
	for _, adapt := range []func(*observer.Spec){
		func(s *observer.Spec) { s.Detect = observer.DetectSnapshot },
		noTimestamp,
	} {
		s := setup(t, observer.DetectNew, withLimit(4), adapt)
		s.put(0, 10)
		s.poll()
		equalList(t, "limits", s.limits(0), "0")
		equal(t, "events", len(s.story()), 10)
	}
}

var errSnapshot = &observer.Fault{Class: observer.ClassRetry, Code: "ORA-01555", Err: errors.New("snapshot too old")}

// TestReadsBecomeSmallerAfterFailures has one observer meet failures, then
// none.
func TestReadsBecomeSmallerAfterFailures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limit, after int // After so many rows the read fails; -1 before any.
		want         []string
	}{
		"of nothing known":   {0, -1, []string{"50000", "100000", "200000", "400000", "800000", "0"}},
		"of rows read":       {0, 5000, []string{"2500", "5000", "10000"}},
		"of a limit":         {6000, -1, []string{"3000", "6000", "6000"}},
		"to the least":       {0, 100, []string{"1000", "2000", "4000"}},
		"to a smaller limit": {10, 4, []string{"10"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectNew, withLimit(test.limit), func(s *observer.Spec) { s.ChunkRows = 5000 })
			s.put(0, max(test.after, 0)+1)
			o := s.observer()
			call, n := "next", test.after+1
			if test.after < 0 {
				call, n = "read", 1
			}
			fail := failAt(call, n)
			s.src.Step = func(name string) error {
				if fail(name) != nil {
					return errSnapshot
				}
				return nil
			}
			_, err := o.Poll(t.Context(), s.src, s.db.Acquire())
			equal(t, "class", observer.ClassOf(err), observer.ClassRetry)
			var got []string
			for range test.want {
				before := len(s.src.Ranges())
				if _, err := o.Poll(t.Context(), s.src, s.db.Acquire()); err != nil {
					t.Fatal(err)
				}
				got = append(got, s.limits(before)[0])
			}
			equalList(t, "limits", got, test.want...)
			s.checkLog()
		})
	}
}

func TestOtherFailuresLeaveTheLimit(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	o := s.observer()
	s.src.Step = failAt("read", 1)
	if _, err := o.Poll(t.Context(), s.src, s.db.Acquire()); !errors.Is(err, errBroken) {
		t.Fatalf("got %v", err)
	}
	if _, err := o.Poll(t.Context(), s.src, s.db.Acquire()); err != nil {
		t.Fatal(err)
	}
	equalList(t, "limits", s.limits(0), "0")
}

// One observer serves several polls at a time, of which some fail and some do
// not. The race detector is the judge.
func TestLimitIsSharedByPollsAtATime(t *testing.T) {
	t.Parallel()
	shared := setup(t, observer.DetectNew)
	o := shared.observer()
	var polls sync.WaitGroup
	for i := range 4 {
		s := setup(t, observer.DetectNew)
		s.put(0, 20)
		if i%2 == 0 {
			s.src.Step = func(string) error { return errSnapshot }
		}
		st := s.db.Acquire()
		polls.Go(func() {
			for range 10 {
				if _, err := o.Poll(t.Context(), s.src, st); (err != nil) != (i%2 == 0) {
					t.Errorf("poll %d: %v", i, err)
				}
			}
		})
	}
	polls.Wait()
}

// Reads fail twice in a row: the second time they are halved from what is left.
func TestReadsBecomeSmallerAgain(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	o := s.observer()
	s.src.Step = func(call string) error {
		if call == "next" {
			return errSnapshot
		}
		return nil
	}
	for range 8 {
		if _, err := o.Poll(context.WithoutCancel(t.Context()), s.src, s.db.Acquire()); err == nil {
			t.Fatal("no failure")
		}
	}
	equalList(t, "limits", s.limits(0), "0", "50000", "25000", "12500", "6250", "3125", "1562", "1000")
}

// A poll that ends full says how far its last row lies behind the source.
func TestFullPollTellsItsLag(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.MaxChanged = 4 })
	s.src.SetClock(1000)
	for i := range 10 {
		s.src.Add(observertest.At(key(i), "a", 100*int64(i)+1))
	}
	for i, want := range []time.Duration{699 * time.Second, 299 * time.Second, 0} {
		stats := s.poll()
		equal(t, fmt.Sprint("full after poll ", i), stats.Full, want > 0)
		equal(t, fmt.Sprint("lag after poll ", i), stats.Lag, want)
	}
	equal(t, "events", len(s.checkLog()), 10)
}

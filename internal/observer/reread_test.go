package observer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// Somebody's transaction is open for hours. Rows above the horizon are polled
// every turn, but those that were read are read again ever more rarely; a row
// that commits late is seen within a quarter of the lag.
func TestStandingHorizonIsReadAgainAtGrowingDistances(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.SetClock(1000)
	s.put(0, 5)
	tx := s.src.Begin()
	s.poll()
	var full []int64
	for turn := range int64(400) {
		s.src.Pass(28)
		s.put(1000+int(turn), 1)
		before := s.db.Cursor(stream)
		equal(t, "events of a turn", s.poll().Events, 1)
		reads, after := s.src.Reads(), s.db.Cursor(stream)
		switch from := reads[len(reads)-1]; from {
		case before.Low:
			full = append(full, turn)
		case before.Newest:
			equal(t, "low-water mark after a light poll", after.Low, before.Low)
			equal(t, "last full read after a light poll", after.Marks.RereadAt, before.Marks.RereadAt)
		default:
			t.Fatalf("read from %s, marks %s", from, marks(before))
		}
	}
	// Each time a third longer: 400 turns are 20 full reads, not 400.
	if len(full) > 25 || len(full) < 15 {
		t.Fatalf("%d full reads, in turns %v", len(full), full)
	}
	late := s.src.Begin()
	late.Put("late", "a")
	s.put(5000, 1)
	s.poll()
	late.Commit()
	lag := s.poll().HorizonLag
	since := s.src.Now()
	for !contains(s.story(), "late new 1") {
		s.src.Pass(30)
		s.poll()
		if waited := s.src.Now().Sub(since); waited > lag/4+time.Minute {
			t.Fatalf("not seen after %s, horizon is %s behind", waited, lag)
		}
	}
	low := s.db.Cursor(stream).Low
	tx.Commit()
	s.poll()
	reads := s.src.Reads()
	equal(t, "first read after the transaction", reads[len(reads)-1], low)
	equal(t, "events", len(s.checkLog()), 407)
}

// A full read counts also where nothing is new and no mark moves.
func TestQuietStreamWithAStandingHorizonIsReadAgainRarely(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	tx := s.src.Begin()
	s.put(0, 5)
	s.src.Pass(400)
	s.poll()
	full := 0
	for range 40 {
		s.src.Pass(10)
		low := s.db.Cursor(stream).Low
		s.poll()
		if reads := s.src.Reads(); reads[len(reads)-1] == low {
			full++
		}
	}
	equal(t, "full reads in 400 seconds, the lag from 400 to 800", full, 2)
	tx.Commit()
}

// Of two long transactions the older one ends, so the horizon moves; the row
// that it leaves behind is below what a light poll reads. Had that moved the
// low-water mark to the horizon, nobody would read the row any more.
func TestLightPollDoesNotFollowTheHorizon(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	older := s.src.Begin()
	older.Put("late", "a")
	s.src.Pass(10)
	younger := s.src.Begin()
	s.src.Pass(1000)
	s.put(0, 3)
	s.poll()
	older.Commit()
	s.put(10, 3)
	s.poll()
	equal(t, "seen by a light poll", contains(s.story(), "late new 1"), false)
	younger.Commit()
	s.poll()
	equal(t, "seen in the end", contains(s.story(), "late new 1"), true)
	equal(t, "events", len(s.checkLog()), 7)
}

func contains(list []string, item string) bool {
	for _, s := range list {
		if s == item {
			return true
		}
	}
	return false
}

// lagging is a source with that lag.
type lagging struct {
	*observertest.Source
	lag time.Duration
}

func (s lagging) Horizon(ctx context.Context, q observer.Query) (observer.Horizon, error) {
	h, err := s.Source.Horizon(ctx, q)
	h.Lag, h.Cursor = s.lag, observertest.CursorAt(2)
	return h, err
}

func TestWhenAPollIsLight(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lag, since time.Duration
		adapt      func(*observer.Spec)
		light      bool
	}{
		"a minute behind":              {lag: time.Minute},
		"more than a minute behind":    {lag: 61 * time.Second, light: true},
		"just before a quarter":        {lag: 400 * time.Second, since: 99 * time.Second, light: true},
		"at a quarter":                 {lag: 400 * time.Second, since: 100 * time.Second},
		"a full read of the future":    {lag: 400 * time.Second, since: -time.Second},
		"changes":                      {lag: time.Hour, adapt: func(s *observer.Spec) { s.Detect = observer.DetectChange }, light: true},
		"a snapshot reads all, always": {lag: time.Hour, adapt: func(s *observer.Spec) { s.Detect = observer.DetectSnapshot }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := observertest.Time(5000)
			s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.Now = func() time.Time { return now } })
			if test.adapt != nil {
				test.adapt(&s.spec)
			}
			poll := func(lag time.Duration) {
				t.Helper()
				if _, err := s.observer().Poll(t.Context(), lagging{s.src, lag}, s.db.Acquire()); err != nil {
					t.Fatal(err)
				}
			}
			s.put(0, 5)
			poll(test.lag + time.Hour) // Of which the end is noted.
			now = now.Add(test.since)
			poll(test.lag)
			c := s.db.Cursor(stream)
			want := c.Low
			switch {
			case s.spec.Detect == observer.DetectSnapshot:
				want = ""
			case test.light:
				want = c.Newest
			}
			equal(t, "read from", s.src.Reads()[1], want)
		})
	}
}

// A full read that breaks off before it has come past the newest row that was
// known has not read all again, and the next poll is full as well. One that
// came past it need not be taken again; the next poll begins where it was.
func TestFullReadCountsWhenItHasReadAllAgain(t *testing.T) {
	t.Parallel()
	breaking := func(n int) func(*stage) error {
		return func(s *stage) error { s.src.Step = failAt("next", n); return errBroken }
	}
	for name, test := range map[string]struct {
		poll  func(*stage) error
		noted bool
	}{
		"broken before the newest": {breaking(5), false},
		"broken after the newest":  {breaking(11), true},
		"at its limit":             {func(s *stage) error { s.spec.MaxChanged = 4; return nil }, true},
		"without anything new":     {func(s *stage) error { s.src.Restore(s.src.Rows()[:7]); s.src.Begin(); return nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectNew)
			s.src.Begin()
			s.put(0, 6)
			s.src.Pass(3600)
			s.poll()
			first := s.src.Now()
			equal(t, "noted", s.db.Cursor(stream).Marks.RereadAt, first)
			s.src.Pass(3600)
			s.src.Add(observertest.At("late", "a", 4)) // So that the first chunk is committed.
			s.put(10, 6)
			want := test.poll(s)
			s.src.Pass(100)
			second := s.src.Now()
			if _, err := s.tryPoll(); !errors.Is(err, want) {
				t.Fatalf("got %v", err)
			}
			c := s.db.Cursor(stream)
			equal(t, "noted by the second poll", c.Marks.RereadAt.Equal(second), test.noted)
			s.src.Step, s.spec.MaxChanged = nil, 0
			s.poll()
			from := c.Low
			if test.noted {
				from = c.Newest
			}
			equal(t, fmt.Sprintf("reads %v", s.src.Reads()), s.src.Reads()[2], from)
			equal(t, "events", len(s.checkLog()), len(s.src.Rows()))
		})
	}
}

// A full read that the poll's time is too short for must not keep what is new
// from being seen.
func TestFullReadThatNeverEndsStarvesNobody(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.SetClock(1000)
	s.src.Begin()
	s.put(0, 50)
	s.poll()
	s.src.Pass(4000)
	o, n := s.observer(), 0
	s.src.Step = func(call string) error {
		switch call {
		case "read":
			n = 0
		case "next":
			if n++; n > 30 {
				return &observer.Fault{Class: observer.ClassTimeout, Err: context.DeadlineExceeded}
			}
		}
		return nil
	}
	for i := range 20 {
		s.put(1000+i, 1)
		s.src.Pass(30)
		_, _ = o.Poll(t.Context(), s.src, s.db.Acquire()) // full ones fail
	}
	s.src.Step = nil
	equal(t, "keys that were seen", len(s.checkLog()), 70)
}

package observer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

func TestWhereANewStreamStarts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		start  observer.Start
		first  string
		events int
	}{
		"at the beginning": {observer.Start{}, "", 20},
		"now":              {observer.Start{Now: true}, observertest.CursorAt(16), 5},
		"at an instant":    {observer.Start{At: observertest.Time(8)}, observertest.CursorAt(8), 13},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.Start = test.start })
			for i := range 20 {
				s.src.Add(observertest.At(key(i), "a", int64(i)+1))
			}
			s.src.SetClock(15)
			tx := s.src.Begin() // At 16, and so is the horizon.
			s.src.SetClock(30)
			// The start is committed before anything is read.
			if _, err := s.observer().Poll(t.Context(), s.src, &dying{s.db.Acquire(), 1}); err == nil {
				t.Fatal("did not commit")
			}
			s.src.Pass(1000)
			tx.Commit()
			s.poll()
			equal(t, "first read from", s.src.Reads()[0], test.first)
			equal(t, "events", len(s.story()), test.events)
			s.put(100, 3)
			s.poll()
			equal(t, "events then", len(s.story()), test.events+3)
		})
	}
}

func TestStartIsForNewStreamsAlone(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.put(0, 5)
	s.poll()
	s.put(10, 5)
	low := s.db.Cursor(stream).Low
	s.src.SetClock(100)
	s.spec.Start.Now = true
	s.poll()
	equal(t, "read from", s.src.Reads()[1], low)
	equal(t, "events", len(s.story()), 10)
}

// Without a horizon, as where a prepared transaction is open, the clock serves.
func TestStartNowWithoutAHorizon(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.Start.Now = true })
	s.put(0, 5)
	src := &fixedHorizon{s.src, observer.Horizon{Clock: observertest.CursorAt(9)}}
	if _, err := s.observer().Poll(t.Context(), src, s.db.Acquire()); err != nil {
		t.Fatal(err)
	}
	equal(t, "first read from", s.src.Reads()[0], observertest.CursorAt(9))
	equalList(t, "events", s.story(), key(4)+" new 1")
}

// What is open may have begun before now.
func TestStartNowWhileTheHorizonIsHeld(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.Start.Now = true })
	s.src.SetClock(1000)
	h := observer.Horizon{Clock: observertest.CursorAt(1000), Now: observertest.Time(1000), Lag: time.Minute}
	if _, err := s.observer().Poll(t.Context(), &fixedHorizon{s.src, h}, s.db.Acquire()); err != nil {
		t.Fatal(err)
	}
	equal(t, "first read from", s.src.Reads()[0], observertest.CursorAt(940))
}

func TestStartIsRefusedWhereEveryRowIsRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		adapt   func(*observer.Spec)
		refused bool
	}{
		"changes":           {func(s *observer.Spec) { s.Detect = observer.DetectChange }, false},
		"a snapshot":        {func(s *observer.Spec) { s.Detect = observer.DetectSnapshot }, true},
		"without timestamp": {noTimestamp, true},
	} {
		s := setup(t, observer.DetectNew, test.adapt)
		s.spec.Start.Now = true
		_, err := observer.New(s.spec)
		equal(t, name, err != nil, test.refused)
	}
}

// The mark waits at a start in the future: nothing from before is observed, and
// the clock that is below it has not gone back.
func TestStartInTheFuture(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.spec.Start.At = observertest.Time(1000)
	s.src.SetClock(10)
	for i := range 3 {
		s.put(10*i, 5)
		s.poll()
		s.src.Pass(200)
	}
	equalList(t, "events", s.story())
	equal(t, "warnings", len(s.warnings()), 0)
	s.src.Pass(1000)
	s.put(100, 5)
	s.poll()
	equal(t, "events", len(s.checkLog()), 5)
}

// The horizon goes back, and the clock does not: somebody granted the right to
// see older transactions, or raised the overlap. What the start leaves out stays
// out.
func TestStartIsAFloor(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]observer.Start{
		"now": {Now: true}, "an instant": {At: observertest.Time(1000)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.Start = start })
			s.spec.Start.Began = s.db.Start
			s.src.SetClock(900)
			s.put(0, 20) // history
			s.src.SetClock(1000)
			s.poll()
			s.src.Pass(500)
			s.put(100, 5)
			s.poll()
			equal(t, "events", len(s.story()), 5)
			for _, exact := range []bool{true, false} {
				s.src.Pass(100)
				s.put(200+len(s.story()), 1)
				back := &fixedHorizon{s.src, observer.Horizon{
					Cursor: observertest.CursorAt(10), Lag: 1000 * time.Second, Exact: exact,
					Clock: observertest.CursorAt(s.src.Clock()), Now: observertest.Time(s.src.Clock()),
				}}
				for range 3 {
					s.pollOf(back)
				}
			}
			equal(t, "low-water mark", s.db.Cursor(stream).Low, observertest.CursorAt(1000))
			equal(t, "events", len(s.checkLog()), 7)
			w := s.warnings()
			equal(t, fmt.Sprintf("warnings %q", w), len(w), 1)
			equal(t, w[0], strings.Contains(w[0], "an older transaction has become visible, or overlap was raised"), true)
			s.poll()
			s.src.Pass(100)
			s.put(300, 5)
			s.poll()
			equal(t, "events", len(s.checkLog()), 12)
		})
	}
}

// A clock that is earlier than the start writes new rows below it.
func TestClockWentBackBelowTheStart(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]observer.Start{
		"now": {Now: true}, "an instant": {At: observertest.Time(1000)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.Start = start })
			s.spec.Start.Began = s.db.Start
			s.src.SetClock(1000)
			s.poll()
			s.src.Pass(100)
			s.put(0, 5)
			s.poll()
			s.src.TurnBack(600)
			s.put(10, 5)
			s.poll()
			equal(t, "events", len(s.checkLog()), 10)
		})
	}
}

package observer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// The source's clock is turned back by an hour. Rows are written at once, and
// long before the next poll: their timestamps lie below its horizon.
func TestRowsAfterTheClockWentBackAreObserved(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ before, after int64 }{
		"a turn later":           {0, 30},
		"after two hours' pause": {0, 2 * 3600},
		"on a quiet stream":      {3 * 3600, 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectNew)
			s.src.SetClock(100_000)
			s.poll()
			s.put(0, 5)
			s.poll()
			for range test.before / 60 {
				s.src.Pass(60)
				s.poll()
			}
			s.src.TurnBack(test.before + test.after + 3600)
			s.put(10, 5)
			s.src.Pass(test.after)
			for i := range 5 {
				s.put(20+i, 1)
				s.poll()
			}
			equal(t, "events", len(s.checkLog()), 15)
			w := slices.DeleteFunc(s.warnings(), func(line string) bool { return strings.Contains(line, "future") })
			equal(t, fmt.Sprintf("warnings %q", w), len(w), 1)
			equal(t, "warning", strings.Contains(w[0], "time has gone back") && strings.Contains(w[0], "horizon_lag=0s"), true)
		})
	}
}

// Nothing is known of a last full read: an hour is looked back, not for ever.
func TestClockWentBackOnAStreamWithoutAFullRead(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.SetClock(100_000)
	s.put(0, 5)
	s.poll()
	s.src.TurnBack(10_000)
	s.put(10, 5)
	s.src.Pass(3500)
	if _, err := s.observer().Poll(t.Context(), s.src, forgetful{s.db.Acquire()}); err != nil {
		t.Fatal(err)
	}
	equal(t, "events", len(s.checkLog()), 10)
	reads := s.src.Reads()
	equal(t, "read from", reads[len(reads)-1], observertest.CursorAt(s.src.Clock()-3660))
}

// forgetful is a store that does not know of full reads, as one that was just
// brought up to date.
type forgetful struct{ observer.Store }

func (f forgetful) Cursor(ctx context.Context, name string) (observer.Cursor, error) {
	c, err := f.Store.Cursor(ctx, name)
	c.Marks.RereadAt = time.Time{}
	return c, err
}

// What the source's clock does not say, nobody can go back by.
func TestMarkGoesBackToTheHorizonAndStays(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.SetClock(1000)
	s.put(0, 5)
	s.poll()
	back := &fixedHorizon{s.src, observer.Horizon{Cursor: observertest.CursorAt(500), Lag: time.Second}}
	before := len(s.db.Chunks(stream))
	if _, err := s.observer().Poll(t.Context(), back, &dying{s.db.Acquire(), 1}); !errors.Is(err, errBroken) {
		t.Fatalf("got %v", err)
	}
	equal(t, "marks", marks(s.db.Cursor(stream)), "500/500")
	s.src.Add(observertest.At("then", "a", 500))
	s.log.Reset()
	if _, err := s.observer().Poll(t.Context(), back, s.db.Acquire()); err != nil {
		t.Fatal(err)
	}
	equal(t, "warnings of the next poll", len(s.warnings()), 0)
	equal(t, "marks", marks(s.db.Cursor(stream)), "500/1010")
	equal(t, "last event", s.story()[5], "then new 1")
	equal(t, "events of the first commit", len(s.db.Chunks(stream)[before].Events), 0)
}

// Somebody's session that may not be seen makes the horizon a guess from one
// poll to the next. What the mark may have missed is read again, and the warning
// does not blame the clock alone.
func TestMarkGoesBackWhereTransactionsAreHidden(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.SetClock(1000)
	s.put(0, 5)
	s.poll()
	h := observer.Horizon{Cursor: observertest.CursorAt(960), Lag: time.Minute, Clock: observertest.CursorAt(1020)}
	for range 2 {
		if _, err := s.observer().Poll(t.Context(), &fixedHorizon{s.src, h}, s.db.Acquire()); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "low-water mark", s.db.Cursor(stream).Low, h.Cursor)
	equal(t, "events", len(s.checkLog()), 5)
	w := s.warnings()
	equal(t, fmt.Sprintf("warnings %q", w), len(w), 1)
	equal(t, w[0], strings.Contains(w[0], "hides transactions that it showed before"), true)
}

// fixedHorizon is a source with that horizon.
type fixedHorizon struct {
	*observertest.Source
	horizon observer.Horizon
}

func (s *fixedHorizon) Horizon(context.Context, observer.Query) (observer.Horizon, error) {
	return s.horizon, nil
}

// A source that has no horizon at the moment does not say that time went back.
func TestEmptyHorizonMovesNoMark(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.put(0, 5)
	s.poll()
	s.put(10, 5)
	low := s.db.Cursor(stream).Low
	if _, err := s.observer().Poll(t.Context(), &fixedHorizon{Source: s.src}, s.db.Acquire()); err != nil {
		t.Fatal(err)
	}
	equal(t, "low-water mark", s.db.Cursor(stream).Low, low)
	equal(t, "events", len(s.story()), 10)
	equal(t, "warnings", len(s.warnings()), 0)
}

// The time of the last full read is known to ten minutes, also on a stream in
// which nothing happens, and for few commits.
func TestQuietStreamKnowsItsLastFullRead(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.SetClock(1000)
	s.poll()
	for range 60 {
		s.src.Pass(60)
		s.poll()
		if age := s.src.Now().Sub(s.db.Cursor(stream).Marks.RereadAt); age >= 10*time.Minute {
			t.Fatalf("last full read is %s old", age)
		}
	}
	equal(t, "commits in an hour", len(s.db.Chunks(stream)), 7)
}

// A row of tomorrow is there. While a transaction holds the horizon back, polls
// begin at the newest row; were that one tomorrow's, no other would be seen.
func TestRowInTheFutureHidesNoOther(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.SetClock(1000)
	tx := s.src.Begin()
	s.src.Pass(600)
	s.src.Add(observertest.At("today", "a", 5000), observertest.At("tomorrow", "a", 90_000), observertest.At("soon", "a", s.src.Clock()+60))
	stats := s.poll()
	equal(t, "rows in the future", stats.Future, 2)
	w := s.warnings()
	equal(t, "warnings", len(w), 1)
	for _, want := range []string{"Rows lie in the source's future; is its timezone right?", "rows=2", "ahead=24h33m19s"} {
		equal(t, fmt.Sprintf("%q in %s", want, w[0]), strings.Contains(w[0], want), true)
	}
	equal(t, "newest", s.db.Cursor(stream).Newest, observertest.CursorAt(1601))
	s.put(0, 5)
	equal(t, "events of a light poll", s.poll().Events, 5)
	tx.Commit()
	s.poll()
	equal(t, "events", len(s.checkLog()), 8)
}

// A process tells of rows in the future once, and again when their number changes.
func TestRowsInTheFutureAreToldOnce(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.SetClock(1000)
	o := s.observer()
	for i, step := range []struct {
		add  observer.Row
		want int
	}{
		{observertest.At("tomorrow", "a", 90_000), 1},
		{observertest.At("today", "a", 1000), 0},
		{observertest.At("in a week", "a", 600_000), 1},
		{observertest.At("today, too", "a", 1001), 0},
	} {
		s.src.Add(step.add)
		s.src.Pass(1)
		if _, err := o.Poll(t.Context(), s.src, s.db.Acquire()); err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprintf("warnings of poll %d", i+1), len(s.warnings()), step.want)
	}
}

// 9999-12-31 23:59:59 west of Greenwich is in the year 10000, which no log can hold.
func TestRowAfterTheYear9999(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	last := observertest.At("last", "a", 90_000)
	last.Time = time.Date(10000, 1, 1, 4, 59, 59, 0, time.UTC)
	s.src.Add(last, observertest.At("first", "a", 5))
	s.poll()
	events := s.db.Events(stream)
	equal(t, "events", len(events), 2)
	equal(t, "the time of the first is zero", events[0].Time.IsZero(), false)
	equal(t, "the time of the last is zero", events[1].Time.IsZero(), true)
}

// A source that does not tell its clock as an instant is measured by the
// node's, and one that has none at all is not measured.
func TestFutureByTheClockOfTheNode(t *testing.T) {
	t.Parallel()
	for clock, future := range map[string]int64{"": 0, observertest.CursorAt(50): 3} {
		s := setup(t, observer.DetectNew)
		s.src.SetClock(50)
		for i := range 5 {
			s.src.Add(observertest.At(key(i), "a", 40+int64(i)*40))
		}
		src := &fixedHorizon{s.src, observer.Horizon{Cursor: observertest.CursorAt(50), Clock: clock}}
		stats, err := s.observer().Poll(t.Context(), src, s.db.Acquire())
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "rows in the future", stats.Future, future)
	}
}

// Poison rows of the future are read by every poll, and are no schema change.
func TestOldPoisonInTheFutureDoesNotStopTheStream(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.ChunkRows = 1000 })
	s.put(0, 50)
	for i := range 12 {
		s.src.Add(bad(key(100+i), 100_000))
	}
	for range 3 {
		s.poll()
		s.src.Pass(60)
	}
	equal(t, "poison rows", len(s.db.Dead(stream)), 12)
}

// withheld is a source that cannot tell its horizon for a while.
type withheld struct {
	*observertest.Source
	on bool
}

func (s *withheld) Horizon(ctx context.Context, q observer.Query) (observer.Horizon, error) {
	h, err := s.Source.Horizon(ctx, q)
	if s.on {
		h.Cursor = ""
	}
	return h, err
}

// pollOf polls another source than that of the stage.
func (s *stage) pollOf(src observer.Source) {
	s.t.Helper()
	if _, err := s.observer().Poll(s.t.Context(), src, s.db.Acquire()); err != nil {
		s.t.Fatal(err)
	}
}

// inexact is a source that tells the start of one and the same transaction
// differently each time it is asked.
type inexact struct {
	*observertest.Source
	earlier int64
}

func (s *inexact) Horizon(ctx context.Context, q observer.Query) (observer.Horizon, error) {
	h, err := s.Source.Horizon(ctx, q)
	h.Earliest = h.Cursor
	h.Cursor = observertest.CursorAt(s.Clock() - s.earlier)
	return h, err
}

// What a horizon allows for is no time that has gone back.
func TestHorizonMayDifferWithinWhatItAllowsFor(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.SetClock(100_000)
	src := &inexact{Source: s.src}
	poll := func() {
		t.Helper()
		s.pollOf(src)
	}
	s.put(0, 5)
	poll()
	low := s.db.Cursor(stream).Low
	src.earlier = 1000
	s.put(5, 5)
	poll()
	equal(t, "low-water mark", s.db.Cursor(stream).Low, low)
	equal(t, "events", len(s.checkLog()), 10)
	equal(t, "warnings", len(s.warnings()), 0)
}

// Polls go on while there is no horizon; none of them may forget that the clock
// went back meanwhile.
func TestClockWentBackWithoutAHorizon(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.SetClock(100_000)
	src := &withheld{Source: s.src}
	poll := func() {
		t.Helper()
		s.pollOf(src)
	}
	s.put(0, 5)
	poll()
	src.on = true
	s.src.Pass(60)
	s.put(5, 5)
	poll()
	s.src.TurnBack(3600)
	s.put(10, 5) // below the mark
	for i := range 60 {
		s.src.Pass(30)
		s.put(100+i, 1)
		poll()
	}
	src.on = false
	for range 3 {
		s.src.Pass(30)
		poll()
	}
	equal(t, "keys that were seen", len(s.checkLog()), 75)
}

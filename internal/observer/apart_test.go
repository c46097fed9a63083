package observer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// tight has a source that bears 100 rows a second, and polls of five seconds.
func tight(s *observer.Spec) { s.MaxRate, s.PollTime, s.ChunkRows = 100, 5*time.Second, 1000 }

// pollApart polls as nodes do that take turns, up to so many times, until there are n
// events. It returns how many polls that took.
func (s *stage) pollApart(t *testing.T, n, most int) int {
	t.Helper()
	for i := 1; i <= most; i++ {
		s.poll()
		if len(s.story()) >= n {
			return i
		}
	}
	t.Fatalf("%d events after %d polls, want %d", len(s.story()), most, n)
	return 0
}

func (s *stage) undated(first, n int) {
	for i := first; i < first+n; i++ {
		s.src.Add(observertest.At(key(i), "a", -1))
	}
}

// More rows without a timestamp than a poll has time for leave the others theirs, and
// are all read by several polls.
func TestRowsWithoutATimestampStarveNoOther(t *testing.T) {
	t.Parallel()
	for _, ties := range []string{"id", ""} {
		synctest.Test(t, func(t *testing.T) {
			s := setup(t, observer.DetectNew, tight)
			s.src.SetTies(ties)
			s.put(0, 1)
			s.poll()
			s.undated(100, 1500)
			s.put(2000, 20)
			began := time.Now()
			s.poll()
			for i := range 20 {
				if !slices.Contains(s.db.Live(stream), key(2000+i)) {
					t.Fatalf("ties %q: no event of %s after the first poll", ties, key(2000+i))
				}
			}
			if took := time.Since(began); ties != "" && took > s.spec.PollTime {
				t.Errorf("the poll took %s", took)
			}
			polls := s.pollApart(t, 1521, 40)
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("ties %q: %d rows took %s in %d polls", ties, 1521, took, polls)
			}
			equal(t, "poison", len(s.db.Dead(stream)), 0)
			// They are read again and again, to their end.
			full := 0
			for s.poll().Full {
				full++
			}
			if full > 40 {
				t.Errorf("%d polls read what is known", full)
			}
		})
	}
}

// More rows with a timestamp than the rate allows, for ever, leave their share to those
// without.
func TestRowsWithoutATimestampDoNotStarve(t *testing.T) {
	t.Parallel()
	for _, ties := range []string{"id", ""} {
		synctest.Test(t, func(t *testing.T) {
			s := setup(t, observer.DetectNew, tight)
			s.src.SetTies(ties)
			s.put(0, 1)
			s.poll()
			s.undated(100, 200)
			for i := range 10 {
				s.put(1000+1000*i, 1000)
				s.poll()
			}
			seen := 0
			for _, k := range s.db.Live(stream) {
				if k >= key(100) && k < key(300) {
					seen++
				}
			}
			equal(t, "events of rows without a timestamp", seen, 200)
			if n := len(s.story()); n < 3000 {
				t.Errorf("%d events in 10 polls", n)
			}
		})
	}
}

// The same holds for the number of rows that a poll may take.
func TestChangedRowsAreShared(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 10, 50} {
		s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.MaxChanged = most })
		s.put(0, 1)
		s.poll()
		s.undated(100, 200)
		s.put(1000, 200)
		for range 10 {
			s.poll()
		}
		dated, undated := 0, 0
		for _, k := range s.db.Live(stream) {
			if k < key(1000) {
				undated++
			} else {
				dated++
			}
		}
		if least := 10 * most / 10; undated < min(least, 200) || dated < min(8*most, 200) {
			t.Errorf("%d a poll: %d rows with and %d without a timestamp in 10 polls", most, dated, undated)
		}
		s.pollApart(t, 401, 401)
		equal(t, "full", s.poll().Full, false)
	}
}

// A place by keys that come in another order by now is given up.
func TestRowsWithoutATimestampInAnotherOrder(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.MaxChanged = 10 })
	s.src.SetTies("id")
	s.undated(0, 20)
	s.put(1000, 1)
	for i := range 30 {
		s.src.SetTies(fmt.Sprint("id ", i))
		s.poll()
	}
	equal(t, "events", len(s.checkLog()), 21)
}

// A long statement over rows that are all known says that it is at work.
func TestLongStatementIsNotStuck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, observer.DetectNew, tight)
		s.undated(0, 100)
		s.put(1000, 1)
		s.poll()
		before := len(s.db.Chunks(stream))
		if _, err := s.observer().Poll(t.Context(), slowly{s.src}, s.db.Acquire()); err != nil {
			t.Fatal(err)
		}
		if n := len(s.db.Chunks(stream)) - before; n < 5 {
			t.Errorf("%d commits in 100 s", n)
		}
	})
}

// A poll that got nowhere among the others says so, whatever came of these.
func TestPollWithoutTimeForTheOthersSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.PollTime = 20 * time.Second })
		s.put(0, 1)
		s.poll()
		s.undated(100, 1)
		for i := range 100 {
			s.src.Add(observertest.At(key(1000+i), "a", 2_000_000)) // of one timestamp
		}
		_, err := s.observer().Poll(t.Context(), batchwise{s.src}, s.db.Acquire())
		if err == nil {
			t.Errorf("a poll of which nothing came has no error")
		}
	})
}

// Too many poison rows among these are refused, and hold up no others.
func TestRefusedRowsWithoutATimestampHoldUpNoOther(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.ChunkRows = 100 })
	s.put(0, 3)
	s.poll()
	for i := range 20 {
		s.src.Add(bad(key(100+i), -1))
	}
	for range 2 {
		s.put(len(s.story()), 5)
		if _, err := s.tryPoll(); !errors.Is(err, observer.ErrMostlyPoison) {
			t.Fatalf("got %v", err)
		}
	}
	equal(t, "events", len(s.checkLog()), 13)
	equal(t, "poison rows that are shown", len(s.db.Dead(stream)), 20)
	s.db.Accept(stream)
	equal(t, "poison", s.poll().Poison, 20)
}

// batchwise is a source whose rows with a timestamp come when it is too late.
type batchwise struct{ *observertest.Source }

func (b batchwise) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	rows, err := b.Source.Read(ctx, q, in)
	if in.Part != observer.PartUndated {
		time.Sleep(time.Minute)
	}
	return rows, err
}

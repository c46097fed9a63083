package observer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// takes lets every nth row of the source come that late.
func (s *stage) takes(late time.Duration, n int) {
	rows := 0
	s.src.Step = func(call string) error {
		if call != "next" {
			return nil
		}
		if rows++; rows%n == 0 {
			time.Sleep(late)
		}
		return nil
	}
}

// pollFor polls until its time is over, of which it knows unless it is ended.
func (s *stage) pollFor(timeout time.Duration, ended bool) error {
	ctx, cancel := context.WithTimeoutCause(s.t.Context(), timeout, errLost)
	defer cancel()
	if ended {
		unknown, end := context.WithCancelCause(s.t.Context())
		defer context.AfterFunc(ctx, func() { end(errLost) })()
		ctx = unknown
	}
	_, err := s.observer().Poll(ctx, s.src, s.db.Acquire())
	return err
}

// restored is a source of 300 rows that are all known, and of one that is not
// and comes last, in another database.
func restored(t *testing.T, adapt ...func(*observer.Spec)) *stage {
	t.Helper()
	s := setup(t, observer.DetectNew, adapt...)
	s.src.SetIdentity("db:1")
	s.put(0, 300)
	s.poll()
	s.src.SetIdentity("db:2")
	s.put(1000, 1)
	return s
}

func chunkRows(n int) func(*observer.Spec) { return func(s *observer.Spec) { s.ChunkRows = n } }

// A source in which nothing has changed is slower than a poll has time, or
// fails before it has come to the end. Each poll comes nearer to the end.
func TestEveryPollOfASlowSourceGetsOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		adapt   func(*observer.Spec)
		timeout time.Duration
		slow    func(*stage)
		polls   int
		// ended polls do not know beforehand when that will be.
		ended bool
	}{
		"a few chunks a poll":           {chunkRows(3), 6 * time.Second, func(s *stage) { s.takes(100*time.Millisecond, 1) }, 6, false},
		"their lock is lost":            {chunkRows(3), 4 * time.Second, func(s *stage) { s.takes(100*time.Millisecond, 1) }, 12, true},
		"a second a poll":               {chunkRows(3), time.Second, func(s *stage) { s.takes(10*time.Millisecond, 1) }, 5, false},
		"a chunk is more than a poll":   {chunkRows(1000), 5 * time.Second, func(s *stage) { s.takes(100*time.Millisecond, 1) }, 8, false},
		"it falls silent after a while": {chunkRows(3), 10 * time.Second, func(s *stage) { s.takes(12*time.Second, 50) }, 7, false},
		"its rate is bounded":           {withRate, 5 * time.Second, func(*stage) {}, 8, false},
		"it breaks off":                 {chunkRows(3), time.Minute, func(s *stage) { s.src.Step = failAt("next", 50) }, 7, false},
		"it breaks off within a chunk":  {chunkRows(1000), time.Minute, func(s *stage) { s.src.Step = failAt("next", 50) }, 7, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := restored(t, test.adapt)
				low := ""
				for polls := 0; len(s.story()) < 301; polls++ {
					if polls == test.polls {
						t.Fatalf("after %d polls the mark stands at %q", polls, low)
					}
					test.slow(s)
					err := s.pollFor(test.timeout, test.ended)
					if err != nil && !errors.Is(err, errLost) && !errors.Is(err, errBroken) {
						t.Fatal(err)
					}
					before := low
					if low = s.db.Cursor(stream).Low; low <= before {
						t.Fatalf("poll %d did not move the mark from %q", polls+1, before)
					}
				}
				s.checkLog()
			})
		})
	}
}

// A step of a sweep ends with its time, whatever a chunk takes, and one that is
// cut off has noted what it has passed.
func TestEveryStepOfASlowSweepGetsOn(t *testing.T) {
	t.Parallel()
	for name, budget := range map[string]time.Duration{"with a budget": time.Second, "cut off": 0} {
		for _, rows := range []int{3, 1000} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := setup(t, observer.DetectNew, chunkRows(rows))
					s.put(0, 60)
					s.poll()
					s.src.Add(observertest.At("hidden", "a", 100))
					s.takes(200*time.Millisecond, 1)
					id := s.db.StartSweep(stream, observer.SweepReconcile, "", "").ID
					for s.db.Sweep(id).State == observer.SweepRunning {
						before := s.db.Sweep(id).Position
						ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errLost)
						_, _, err := s.observer().Sweep(ctx, s.src, s.db.Acquire(), s.db.Sweep(id), observer.Budget{Time: budget})
						cancel()
						if budget == 0 && errors.Is(err, errLost) {
							err = nil
						}
						if err != nil {
							t.Fatal(err)
						}
						if s.db.Sweep(id).Position <= before {
							t.Fatalf("the sweep stays at %q", before)
						}
					}
					equal(t, "last event", s.story()[60], "hidden new 1")
				})
			})
		}
	}
}

// A group of equal timestamps that a poll has no time for cannot be passed. A
// commit would look as if it had got on.
func TestWhoeverGetsNowhereCommitsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, observer.DetectNew)
		for i := range 60 {
			s.src.Add(observertest.At(key(i), "a", 10))
		}
		s.src.SetClock(20)
		s.put(100, 1)
		s.poll()
		s.takes(200*time.Millisecond, 1)
		id := s.db.StartSweep(stream, observer.SweepReconcile, observertest.CursorAt(10), "").ID
		sweep := func() (observer.Stats, error) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errLost)
			defer cancel()
			_, stats, err := s.observer().Sweep(ctx, s.src, s.db.Acquire(), s.db.Sweep(id), observer.Budget{})
			return stats, err
		}
		stats, err := sweep()
		equal(t, "cut off", errors.Is(err, errLost), true)
		equal(t, "rows were read", stats.Rows > 0, true)
		equal(t, "commits of the sweep", stats.Chunks, 0)

		s.src.SetIdentity("db:1")
		s.poll()
		s.src.SetIdentity("db:2")
		for _, chunks := range []int{2, 0} { // It is followed, and comes to the group.
			before := len(s.db.Chunks(stream))
			if err := s.pollFor(5*time.Second, false); !errors.Is(err, errLost) {
				t.Fatalf("got %v", err)
			}
			equal(t, "commits of the poll", len(s.db.Chunks(stream))-before, chunks)
		}
	})
}

// What a chunk may hold of poison rows does not depend on how long it takes.
func TestPoisonOfASlowSourceIsJudgedByTheChunk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, observer.DetectNew, chunkRows(1000))
		for i := range 20 {
			s.src.Add(bad(key(i), 10))
		}
		s.src.SetClock(20)
		s.put(100, 100)
		s.takes(100*time.Millisecond, 1)
		s.poll()
		equal(t, "events", len(s.story()), 100)
		equal(t, "poison rows", len(s.db.Dead(stream)), 20)
		equal(t, "more than one chunk", len(s.db.Chunks(stream)) > 1, true)
	})
}

// Columns have changed, so every row is bad. None of them may pass because the
// source is slow, however few it has handed over.
func TestSlowSourceOfPoisonAloneIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, observer.DetectNew, chunkRows(30))
		for i := range 40 {
			s.src.Add(bad(key(i), int64(i)))
		}
		s.src.SetClock(100)
		s.takes(5*time.Second, 1)
		if err := s.pollFor(time.Hour, false); !errors.Is(err, observer.ErrMostlyPoison) {
			t.Errorf("got %v", err)
		}
		equal(t, "poison rows that are shown", len(s.db.Dead(stream)), 40)
		equal(t, "low-water mark", s.db.Cursor(stream).Low, "")
	})
}

// The marks of rows that come out of order say nothing about the others.
func TestNoMarkIsKeptOfRowsOutOfOrder(t *testing.T) {
	t.Parallel()
	s := restored(t)
	src := &folded{Source: s.src, at: 40}
	if _, err := s.observer().Poll(t.Context(), src, s.db.Acquire()); !errors.Is(err, observer.ErrOutOfOrder) {
		t.Fatalf("got %v", err)
	}
	equal(t, "low-water mark", s.db.Cursor(stream).Low, "")
}

// folded is a source whose row of that number belongs before all others.
type folded struct {
	*observertest.Source
	at int
}

func (f *folded) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	rows, err := f.Source.Read(ctx, q, in)
	return &foldedRows{Rows: rows, left: f.at}, err
}

type foldedRows struct {
	observer.Rows
	left int
}

func (f *foldedRows) Next() bool {
	f.left--
	return f.Rows.Next()
}

func (f *foldedRows) Row() *observer.Row {
	row := f.Rows.Row()
	if f.left == 0 {
		row.Cursor = observertest.CursorAt(0)
	}
	return row
}

// A poll that its time ends, and not its number of changes, has a lag as well, and
// is followed at once like any other that leaves rows behind.
func TestPollThatItsTimeEndsIsFull(t *testing.T) {
	t.Parallel()
	for name, adapt := range map[string][]func(*observer.Spec){
		"a slow source": {pollTime(5 * time.Second)},
		"a bound rate":  {pollTime(5 * time.Second), withRate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := setup(t, observer.DetectNew, adapt...)
				s.put(0, 100)
				if len(adapt) == 1 {
					s.takes(100*time.Millisecond, 1)
				}
				s.src.SetClock(1000)
				for i := 0; ; i++ {
					stats := s.poll()
					if !stats.Full {
						equal(t, "lag at the end", stats.Lag, 0)
						equal(t, "polls that were full", i > 0, true)
						break
					}
					equal(t, "events", stats.Events > 0, true)
					equal(t, "there is a lag", stats.Lag > 0, true)
				}
				equal(t, "events", len(s.story()), 100)
			})
		})
	}
}

// More rows of one timestamp than a poll has time for are read from their first
// again and again, where the source cannot go on among them, so the poll says what to raise.
func TestPollThatGetsNowhereSaysWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, observer.DetectNew, pollTime(5*time.Second), withRate)
		for i := range 200 {
			s.src.Add(observertest.At(key(i), "a", 10))
		}
		s.src.SetClock(20)
		s.poll()
		for range 2 {
			stats, err := s.tryPoll()
			if !errors.Is(err, observer.ErrPollTime) || !strings.Contains(err.Error(), " at least ") || !strings.Contains(err.Error(), "raise poll-timeout or max-rate") {
				t.Fatalf("got %v", err)
			}
			equal(t, "full", stats.Full, false)
		}
		s.spec.PollTime = time.Minute
		s.poll()
		equal(t, "events", len(s.story()), 200)
	})
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

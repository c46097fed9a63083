package observer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
	"github.com/observerd/observerd/test/kit/simtest"
)

// keyed is a source that an index lets begin at any key.
func keyed(t tester, detect observer.Detect, adapt ...func(*observer.Spec)) *stage {
	t.Helper()
	s := setup(t, detect, adapt...)
	s.src.Keyed = true
	return s
}

func changedAtMost(n int) func(*observer.Spec) { return func(s *observer.Spec) { s.MaxChanged = n } }

func pollTime(d time.Duration) func(*observer.Spec) { return func(s *observer.Spec) { s.PollTime = d } }

// generation polls, each time from another node, until all rows were read, and
// returns how many polls that took.
func (s *stage) generation() int {
	s.t.Helper()
	for polls := 1; ; polls++ {
		before := s.db.Generation(stream).Key
		if !s.poll().Full {
			return polls
		}
		// The order takes upper and lower case for equal. The first poll reads the row
		// again at which it goes on, and may spend its budget on a change of that row.
		after := s.db.Generation(stream).Key
		if after == before && polls > 1 || strings.ToLower(after) < strings.ToLower(before) {
			s.t.Fatalf("poll %d went from %q to %q", polls, before, after)
		}
	}
}

func TestReadingOfAllRowsGoesOnInTheNextPoll(t *testing.T) {
	t.Parallel()
	for _, detect := range []observer.Detect{observer.DetectNew, observer.DetectSnapshot} {
		s := keyed(t, detect, noTimestamp, changedAtMost(7))
		s.put(0, 30)
		equal(t, "polls", s.generation(), 5)
		var from []string
		for _, r := range s.src.Ranges() {
			equal(t, "read by key", r.ByKey, true)
			from = append(from, r.Key)
		}
		equalList(t, "reads began at", from, "", key(6), key(13), key(20), key(27))
		equal(t, "events", len(s.checkLog()), 30)
		equal(t, "a second reading", s.generation(), 1)
		equal(t, "events", len(s.checkLog()), 30)
	}
}

// What is gone is known when all rows were read, and not before; a row that went
// behind the reading's back is found by the next one.
func TestRowsAreGoneAtTheEndOfAGeneration(t *testing.T) {
	t.Parallel()
	s := keyed(t, observer.DetectSnapshot, changedAtMost(7))
	s.put(0, 30)
	s.generation()
	s.put(0, 1) // the timestamp alone has changed
	for i := range 30 {
		s.src.Delete(key(i))
		if i%10 != 0 {
			s.src.Add(observertest.At(key(i), "b", -1)) // and without a timestamp from now on
		}
	}
	equal(t, "more to read", s.poll().Full, true)
	equal(t, "live rows after a part", len(s.db.Live(stream)), 30)
	s.src.Delete(key(1))
	s.generation()
	equal(t, "live rows", len(s.db.Live(stream)), 27)
	s.generation()
	equal(t, "live rows", len(s.db.Live(stream)), 26)
	equal(t, "poison rows", len(s.db.Dead(stream)), 0)
	s.checkLog()
}

// A poll has no time for all rows. Whatever ends it, the next ones come to the end.
func TestReadingOfASlowSourceComesToItsEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		slow  func(*stage)
		adapt []func(*observer.Spec)
	}{
		"a second a poll":              {func(s *stage) { s.takes(100*time.Millisecond, 1) }, []func(*observer.Spec){pollTime(time.Second)}},
		"many statements a poll":       {func(s *stage) { s.takes(time.Second, 1) }, []func(*observer.Spec){pollTime(time.Minute)}},
		"a chunk is more than a poll":  {func(s *stage) { s.takes(100*time.Millisecond, 1) }, []func(*observer.Spec){pollTime(5 * time.Second), chunkRows(1000)}},
		"it falls silent":              {func(s *stage) { s.takes(12*time.Second, 50) }, []func(*observer.Spec){pollTime(10 * time.Second)}},
		"its rate is bounded":          {func(*stage) {}, []func(*observer.Spec){pollTime(5 * time.Second), withRate}},
		"it breaks off":                {func(s *stage) { s.src.Step = failAt("next", 50) }, []func(*observer.Spec){pollTime(time.Minute)}},
		"it breaks off within a chunk": {func(s *stage) { s.src.Step = failAt("next", 50) }, []func(*observer.Spec){pollTime(time.Minute), chunkRows(1000)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := keyed(t, observer.DetectSnapshot, append(test.adapt, noTimestamp)...)
				s.put(0, 300)
				for polls := 0; len(s.story()) < 300 && polls < 100; polls++ {
					s.poll()
				}
				s.generation()
				s.src.Delete(key(7))
				s.src.Delete(key(295))
				test.slow(s)
				polls := 0
				for ; len(s.story()) < 302; polls++ {
					if polls == 100 {
						t.Fatalf("100 polls, and %+v", s.db.Generation(stream))
					}
					test.slow(s)
					_, err := s.tryPoll()
					if err != nil && !errors.Is(err, observer.ErrPollTime) && !errors.Is(err, errBroken) {
						t.Fatal(err)
					}
				}
				if polls < 4 {
					t.Fatalf("all was read by %d polls", polls)
				}
				g := s.db.Generation(stream)
				if g.Key != "" || len(g.Seen) > 0 || g.Rows < 298 || g.FinishedAt.IsZero() {
					t.Fatalf("remembered %+v", g)
				}
				s.checkLog()
			})
		})
	}
}

// A poll that ends because of its time leaves nothing open, and keeps within it.
func TestPollByKeyEndsBeforeItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := keyed(t, observer.DetectSnapshot, noTimestamp, pollTime(time.Minute))
		s.put(0, 1000)
		s.takes(100*time.Millisecond, 1)
		for began := time.Now(); s.poll().Full; began = time.Now() {
			if took := time.Since(began); took < 30*time.Second || took > time.Minute {
				t.Fatalf("a poll took %s", took)
			}
		}
		if reads := len(s.src.Ranges()); reads < 10 || reads > 20 {
			t.Errorf("%d statements, want one in ten seconds", reads)
		}
	})
}

// Without an index the one statement is read to its end: no other could go on.
func TestWholeReadTakesAsLongAsRowsArrive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, observer.DetectSnapshot, noTimestamp, pollTime(time.Second), changedAtMost(7))
		s.put(0, 300)
		s.takes(900*time.Millisecond, 1)
		equal(t, "full", s.poll().Full, false)
		equal(t, "statements", len(s.src.Ranges()), 1)
		equal(t, "events", len(s.checkLog()), 300)

		var progress []int64
		s.db.Step = func(call string) error {
			if g := s.db.Generation(stream); call == "commit" && g.FinishedAt.IsZero() {
				progress = append(progress, g.Rows)
			}
			return nil
		}
		s.poll()
		if len(progress) < 10 || !slices.IsSorted(progress) {
			t.Errorf("noted on its way: %v", progress)
		}
		equal(t, "took", s.db.Generation(stream).Took > 0, false) // The clock of the source stands still.

		// It stops in the middle.
		s.takes(3*time.Second, 100)
		began := time.Now()
		_, err := s.tryPoll()
		if err == nil || errors.Is(err, observer.ErrPollTime) || time.Since(began) > 10*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// slowLive takes its time over the rows that a snapshot may have lacked.
type slowLive struct{ observer.Store }

func (s slowLive) Live(ctx context.Context, c observer.Cursor, after string, visit func(observer.Observed) error) error {
	return s.Store.Live(ctx, c, after, func(o observer.Observed) error {
		time.Sleep(10 * time.Millisecond)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return visit(o)
	})
}

// To find the rows that are gone takes longer than a poll has. Nothing is read for
// that a second time, and a node that dies leaves it to the next one.
func TestLookingForGoneRowsGoesOnInTheNextPoll(t *testing.T) {
	t.Parallel()
	for _, keyed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := setup(t, observer.DetectSnapshot, noTimestamp, pollTime(time.Second))
			s.src.Keyed = keyed
			s.put(0, 300)
			s.poll()
			for i := range 30 {
				s.src.Delete(key(10 * i))
			}
			before, deaths := len(s.src.Ranges()), 0
			for polls := 0; len(s.db.Live(stream)) > 270; polls++ {
				if polls == 20 {
					t.Fatalf("20 polls, and %d rows of 30 are gone", 300-len(s.db.Live(stream)))
				}
				st := slowLive{s.db.Acquire()}
				if polls%3 == 2 {
					st.Store = &dying{st.Store, 1}
				}
				stats, err := s.observer().Poll(t.Context(), s.src, st)
				switch {
				case polls%3 == 2 && err != nil:
					deaths++
				case err != nil:
					t.Fatal(err)
				case !stats.Full && len(s.db.Live(stream)) > 270:
					t.Fatal("the poll does not say that more is left")
				}
			}
			equal(t, "statements", len(s.src.Ranges())-before, 1)
			equal(t, "it died on its way", deaths > 0, true)
			equal(t, "events", len(s.story()), 330)
			s.checkLog()
		})
	}
}

// Keys that a collation takes for equal are read again where a poll goes on, and no
// poll takes that for a second row.
func TestEqualKeysAreNoSecondRow(t *testing.T) {
	t.Parallel()
	s := keyed(t, observer.DetectSnapshot, noTimestamp, changedAtMost(1), chunkRows(1))
	for _, k := range []string{"a", "b", "B", "bB", "Bb", "c"} {
		s.src.Put(k, "x")
	}
	for range 20 {
		s.poll()
	}
	equal(t, "events", len(s.checkLog()), 6)
	equal(t, "poison rows", len(s.db.Dead(stream)), 0)
	s.src.Add(observertest.At("b", "another", 1))
	for range 20 {
		s.poll()
	}
	equal(t, "events", len(s.checkLog()), 6)
	equal(t, "poison rows", len(s.db.Dead(stream)), 1)
}

// A refused reading is not gone on with: what is accepted is judged by a new one.
func TestRefusedGenerationIsReadAnew(t *testing.T) {
	t.Parallel()
	s := keyed(t, observer.DetectSnapshot, noTimestamp, changedAtMost(7))
	s.put(0, 40)
	s.generation()
	for i := range 20 {
		s.src.Delete(key(2 * i))
		s.src.Put(key(2*i+1), "b")
	}
	var err error
	for err == nil {
		_, err = s.tryPoll()
	}
	if !errors.Is(err, observer.ErrMassDisappearance) {
		t.Fatal(err)
	}
	equal(t, "goes on at", s.db.Generation(stream).Key, "")
	s.db.Accept(stream)
	for i := range 20 {
		s.src.Put(key(2*i), "a") // all are back
		s.src.Put(key(2*i+1), "c")
	}
	s.generation()
	equal(t, "live rows", len(s.db.Live(stream)), 40)
	c := s.db.Cursor(stream)
	equal(t, "what was accepted", c.Accepted+c.Refusal, "")
}

// What is accepted waits for the end of the generation.
func TestAcceptedRowsAreGoneSomePollsLater(t *testing.T) {
	t.Parallel()
	s := keyed(t, observer.DetectSnapshot, noTimestamp)
	s.put(0, 40)
	s.generation()
	for i := range 20 {
		s.src.Delete(key(2 * i))
	}
	if _, err := s.tryPoll(); !errors.Is(err, observer.ErrMassDisappearance) {
		t.Fatal(err)
	}
	s.db.Accept(stream)
	s.spec.MaxChanged = 7
	for i := range 20 {
		s.src.Put(key(2*i+1), "b")
	}
	equal(t, "polls", s.generation(), 3)
	equal(t, "live rows", len(s.db.Live(stream)), 20)
}

// Another source, query or epoch has other rows, or other numbers of them.
func TestGenerationOfOtherRowsIsNotGoneOnWith(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*stage){
		"another source":     func(s *stage) { s.src.SetIdentity("db:2") },
		"another definition": func(s *stage) { s.spec.Definition = defined("2") },
		"no index":           func(s *stage) { s.src.Keyed = false },
		"another index":      func(s *stage) { s.src.Order = "other" },
	} {
		s := keyed(t, observer.DetectSnapshot, noTimestamp, changedAtMost(7), func(s *observer.Spec) {
			s.Definition, s.Loaded = defined("1"), func() time.Time { return observertest.Time(0) }
		})
		s.src.SetIdentity("db:1")
		s.put(0, 30)
		s.poll()
		equal(t, "goes on at", s.db.Generation(stream).Key, key(6))
		change(s)
		s.spec.Loaded = func() time.Time { return observertest.Time(1) }
		s.poll()
		reads := s.src.Ranges()
		equal(t, name+": begins at", reads[len(reads)-1].Key, "")
	}
}

// A node with another definition dies after it has observed a row that an unfinished reading
// lacks, and the first definition comes back: its reading must not be gone on with.
func TestRowsThatAnotherReadingHasMetAreNotGone(t *testing.T) {
	t.Parallel()
	s := keyed(t, observer.DetectSnapshot, noTimestamp, changedAtMost(7), func(s *observer.Spec) { s.ChunkRows = 2 })
	by := func(definition string, loaded int64) {
		s.spec.Definition, s.spec.Loaded = defined(definition), func() time.Time { return observertest.Time(loaded) }
	}
	by("1", 0)
	s.put(0, 30)
	s.generation()
	s.src.Delete(key(0))
	for i := range 10 {
		s.src.Put(key(i+1), "b")
	}
	equal(t, "more to read", s.poll().Full, true)

	s.src.Put(key(0), "c")
	by("2", 1)
	before := len(s.db.Events(stream))
	s.db.Step = func(call string) error {
		if call == "commit" && len(s.db.Events(stream)) > before {
			return errors.New("the node has died")
		}
		return nil
	}
	if _, err := s.tryPoll(); err == nil || len(s.db.Events(stream)) == before {
		t.Fatalf("a poll that dies after its first chunk: %v", err)
	}
	s.db.Step = nil

	by("1", 2)
	s.generation()
	for _, e := range s.db.Events(stream) {
		if e.Change == events.ChangeGone {
			t.Errorf("%s is gone", e.Subject)
		}
	}
	s.checkLog()
}

// TestSimulatedGenerations reads a table in polls that end for any reason, while
// its rows come, change and go, and compares with what is there once it rests.
func TestSimulatedGenerations(t *testing.T) {
	t.Parallel()
	tally := simtest.Check(t, func(t *rapid.T, tally *simtest.Tally) {
		s := keyed(t, observer.DetectSnapshot, func(s *observer.Spec) {
			s.ChunkRows = rapid.IntRange(1, 20).Draw(t, "rows a chunk")
			s.MaxChanged = rapid.IntRange(1, 10).Draw(t, "changes a poll")
			s.MaxGone = 1
			if rapid.Bool().Draw(t, "without a timestamp") {
				s.Query.Timestamp = ""
			}
		})
		s.src.Unordered = s.spec.Query.Timestamp == ""
		keys := rapid.SliceOfNDistinct(rapid.StringMatching(`[aAbB]{1,4}`), 1, 60, rapid.ID).Draw(t, "keys")
		s.src.Put("z", "stays") // An emptied table is refused.
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			for range rapid.IntRange(0, 5).Draw(t, "writes") {
				switch k := rapid.SampledFrom(keys).Draw(t, "key"); rapid.IntRange(0, 2).Draw(t, "what") {
				case 0:
					s.src.Delete(k)
				case 1:
					s.src.Put(k, fmt.Sprint(step))
				case 2:
					s.src.Delete(k)
					s.src.Add(observertest.At(k, fmt.Sprint(step), -1))
				}
			}
			switch rapid.IntRange(0, 9).Draw(t, "fault") {
			case 0:
				s.src.Step = failAt("next", rapid.IntRange(1, 40).Draw(t, "row"))
			case 1:
				s.db.Step = failAt("commit", rapid.IntRange(1, 5).Draw(t, "commit"))
			case 2:
				s.src.Keyed = !s.src.Keyed
			}
			switch stats, err := s.tryPoll(); {
			case errors.Is(err, errBroken):
				tally.Count("broken")
			case err != nil:
				t.Fatal(err)
			case stats.Full:
				tally.Count("gone on with")
			}
			s.src.Step, s.db.Step = nil, nil
		}
		s.src.Keyed = true
		s.generation()
		s.generation()
		var there []string
		for _, r := range s.src.Rows() {
			there = append(there, r.Key)
		}
		slices.Sort(there)
		if live := s.db.Live(stream); !slices.Equal(live, there) {
			t.Fatalf("live are %v, there are %v", live, there)
		}
		for k, versions := range s.checkLog() {
			last := versions[len(versions)-1]
			if gone := !slices.Contains(there, k); gone != (last.Change == "gone") {
				t.Fatalf("the last event of %s is %s", k, last.Change)
			}
		}
		if len(s.db.Dead(stream)) > 0 {
			t.Fatalf("poison rows %v", s.db.Dead(stream))
		}
	})
	tally.Demand(t, "broken", "gone on with")
}

package observer_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// scattered is a table of 400 known rows, read in chunks of 20, of which one in forty has
// that value since.
func scattered(t *testing.T, changed string) *stage {
	t.Helper()
	s := keyed(t, observer.DetectSnapshot, noTimestamp, chunkRows(20))
	s.put(0, 400)
	s.poll()
	for i := 5; i < 400; i += 40 {
		s.src.Put(key(i), changed)
	}
	return s
}

// commits are the numbers of events of the commits since the first so many.
func (s *stage) commits(since int) (events []int) {
	for _, ch := range s.db.Chunks(stream)[since:] {
		events = append(events, len(ch.Events))
	}
	return events
}

// TestFewChangesCommitTogether counts the commits of a reading that takes no time, of those that
// take 10 ms and 200 ms for a chunk, and of one whose changed rows are the larger part.
func TestFewChangesCommitTogether(t *testing.T) {
	t.Parallel()
	each := []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	for name, test := range map[string]struct {
		value string
		row   time.Duration
		want  []int
	}{
		"at once": {"b", 0, []int{3, 3, 3, 1}},
		"quickly": {"b", time.Millisecond / 2, []int{3, 3, 3, 1}},
		"slowly":  {"b", 10 * time.Millisecond, each},
		"large":   {strings.Repeat("b", 1000), 0, each},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := scattered(t, test.value)
				before := len(s.db.Chunks(stream))
				s.takes(test.row, 1)
				s.poll()
				equal(t, "events of the commits", fmt.Sprint(s.commits(before)), fmt.Sprint(test.want))
				s.checkLog()
			})
		})
	}
}

// TestCarriedChangesWaitForNoRow lets the source fall silent for two seconds behind a change.
func TestCarriedChangesWaitForNoRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := scattered(t, "b")
		before, rows, began := len(s.db.Chunks(stream)), 0, time.Now()
		s.src.Step = func(call string) error {
			if rows++; call == "next" && rows == 30 {
				time.Sleep(2 * time.Second)
				equal(t, "commits", len(s.db.Chunks(stream)), before+1)
			}
			return nil
		}
		var committed time.Duration
		s.db.Step = func(call string) error {
			if call == "commit" && committed == 0 {
				committed = time.Since(began)
			}
			return nil
		}
		s.poll()
		equal(t, "the first commit", committed, 100*time.Millisecond)
	})
}

// TestCarriedChangesOutliveAFailure of the source, as those do that are committed.
func TestCarriedChangesOutliveAFailure(t *testing.T) {
	t.Parallel()
	s := scattered(t, "b")
	before := len(s.story())
	s.src.Step = failAt("next", 110)
	if _, err := s.tryPoll(); !errors.Is(err, errBroken) {
		t.Fatalf("got %v", err)
	}
	equal(t, "events", len(s.story())-before, 3)
	equal(t, "the place to go on from", s.db.Generation(stream).Key, key(108))
	s.src.Step = nil
	s.poll()
	equal(t, "events", len(s.story())-before, 10)
	s.checkLog()
}

// TestCarriedChangesCount for the limit of a poll, and are committed where it ends that.
func TestCarriedChangesCount(t *testing.T) {
	t.Parallel()
	s := scattered(t, "b")
	s.spec.MaxChanged = 3
	for _, want := range []int{3, 6, 9, 10} {
		stats := s.poll()
		equal(t, "events", len(s.story())-400, want)
		equal(t, "full", stats.Full, want < 10)
	}
	s.checkLog()
}

// TestCarriedRowsAreKnown to the chunks behind them: a key that comes again is poison, whether
// it was new or changed in the chunk that is carried.
func TestCarriedRowsAreKnown(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot, noTimestamp, chunkRows(40))
	s.put(0, 120)
	s.poll()
	s.src.Put(key(1), "b") // Rows come in the order in which they were written.
	s.src.Add(observertest.At("twice", "a", -1))
	s.put(2, 38)
	s.put(1000, 1)
	s.src.Add(observertest.At("twice", "b", -1), observertest.At(key(1), "c", -1))
	s.put(40, 40)
	before := len(s.db.Chunks(stream))
	s.poll()
	equal(t, "events of the commits", fmt.Sprint(s.commits(before)), "[3]")
	equal(t, "poison rows", len(s.db.Dead(stream)), 2)
	equal(t, "keys", len(s.checkLog()), 122)
	equalList(t, "events in the order of the rows", s.story()[120:], key(1)+" changed 2", "twice new 1", key(1000)+" new 1")
	s.src.Delete(key(1000))
	s.poll()
	equal(t, "the last event", s.story()[len(s.story())-1], key(1000)+" gone 2")
}

// TestChangesBelowAMarkAreNotCarried where the poll goes on from a timestamp: it may be
// committed for another reason, or gone on from within the poll.
func TestChangesBelowAMarkAreNotCarried(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange, chunkRows(20))
	s.src.SetIdentity("db:1")
	for i := range 100 {
		s.src.Add(observertest.At(key(i), "a", int64(i)+1))
	}
	s.src.SetClock(1000)
	s.poll()
	for i := 5; i < 100; i += 20 {
		s.src.Delete(key(i))
		s.src.Add(observertest.At(key(i), "b", int64(i)+1))
	}
	s.src.SetIdentity("db:2") // All rows are read again.
	before := len(s.db.Chunks(stream))
	s.poll()
	equal(t, "events of the commits", fmt.Sprint(s.commits(before)), "[0 1 1 1 1 1]")
}

// TestCarriedChangesAreCommittedBeforeARefusal, and before a panic of the source: both come
// again in each poll, at the same row.
func TestCarriedChangesAreCommittedBeforeARefusal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(s *stage)
		poll  func(s *stage) error
	}{
		"poison": {func(s *stage) {
			for i := range 30 {
				s.src.Delete(key(200 + i))
				s.src.Add(bad(key(200+i), -1))
			}
			_, _ = s.tryPoll() // It notes the refusal; later ones find it noted.
		}, func(s *stage) error {
			if _, err := s.tryPoll(); !errors.Is(err, observer.ErrMostlyPoison) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		}},
		"panic": {func(*stage) {}, func(s *stage) (err error) {
			defer func() {
				if recover() == nil {
					err = errors.New("no panic")
				}
			}()
			rows := 0
			s.src.Step = func(call string) error {
				if rows++; call == "next" && rows == 110 {
					panic("of the driver")
				}
				return nil
			}
			_, err = s.tryPoll()
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := keyed(t, observer.DetectSnapshot, noTimestamp, chunkRows(20))
			s.put(0, 400)
			s.poll()
			test.spoil(s)
			s.src.Put(key(5), "b")
			if err := test.poll(s); err != nil {
				t.Fatal(err)
			}
			equal(t, "events", len(s.story())-400, 1)
		})
	}
}

// TestGuessIsNotCarried where max-changed leaves a tenth of a chunk that was taken for new:
// nothing would repeat the commit that refuses it.
func TestGuessIsNotCarried(t *testing.T) {
	t.Parallel()
	for _, detect := range []observer.Detect{observer.DetectSnapshot, observer.DetectChange, observer.DetectNew} {
		s := keyed(t, detect, noTimestamp, chunkRows(20))
		s.put(0, 400)
		s.poll()
		for i := range 20 {
			s.src.Put(fmt.Sprintf("a%04d", i), "a")
		}
		s.spec.MaxChanged = 21
		s.poll()
		s.poll()
		equal(t, "events", len(s.story()), 420)
		s.checkLog()
	}
}

// TestCarriedChangesHaveTheirOwnData though the rows of their chunks have made room for others.
func TestCarriedChangesHaveTheirOwnData(t *testing.T) {
	t.Parallel()
	s := scattered(t, "b")
	want := func(e events.Event) {
		equal(t, "data of "+e.Subject, string(e.Data), fmt.Sprintf(`{"id":%q,"value":"b"}`, e.Subject))
	}
	if _, err := s.observer().Poll(t.Context(), s.src, observer.DryRun(s.db.Acquire(), func(ch observer.Chunk) error {
		for _, e := range ch.Events {
			want(e)
		}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	s.poll()
	for _, e := range s.db.Events(stream)[400:] {
		want(e)
	}
	equal(t, "events of another poll", s.poll().Events, 0)
}

// TestRowsOfReusedBatchesStayApart in chunks each of which needs more room than those before.
func TestRowsOfReusedBatchesStayApart(t *testing.T) {
	t.Parallel()
	s := keyed(t, observer.DetectSnapshot, noTimestamp, chunkRows(50))
	value := func(i int, version int64) string { return fmt.Sprint(i, "-", version, strings.Repeat("x", 15*i)) }
	for version := range int64(2) {
		for i := range 600 {
			if version == 0 || i%3 == 0 || i%70 < 3 {
				s.src.Put(key(i), value(i, version+1))
			}
		}
		s.poll()
	}
	for subject, versions := range s.checkLog() {
		i, err := strconv.Atoi(subject[1:])
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range versions {
			equal(t, "data of "+subject, string(e.Data), fmt.Sprintf(`{"id":%q,"value":%q}`, subject, value(i, e.Version)))
		}
	}
	equal(t, "events of another poll", s.poll().Events, 0)
}

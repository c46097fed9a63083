package observer_test

import (
	"errors"
	"math/bits"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// TestRowsBehindNewOnesAreTakenForNew counts the look-ups of a poll, and the commits that
// refused a guess: one in a poll, after which it looks each chunk up. What the poll makes of
// the rows is the same.
func TestRowsBehindNewOnesAreTakenForNew(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		write            func(s *stage)
		lookUps, commits int
		rows, events     int64
	}{
		"all are new": {func(s *stage) { s.put(10, 30) }, 2, 11, 31, 30},
		"one is known among new ones": {func(s *stage) {
			s.put(10, 12)
			s.src.Put(key(0), "b")
			s.put(22, 12)
		}, 7, 10, 26, 25},
		"one key is there twice": {func(s *stage) {
			s.put(10, 12)
			s.src.Add(observertest.At(key(21), "b", s.src.Clock()))
			s.put(22, 11)
		}, 7, 10, 25, 23},
		"a poison row may be known": {func(s *stage) {
			s.put(10, 6)
			bad := observertest.At(key(0), "b", s.src.Clock())
			bad.Err = errBad
			s.src.Delete(key(0))
			s.src.Add(bad)
			s.put(16, 5)
		}, 4, 5, 13, 11},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectChange)
			s.put(0, 3)
			s.poll()
			s.spec.MaxChanged = int(test.events)
			s.src.Pass(3600) // Of what is known, the last row is read again.
			test.write(s)
			dry := 0
			if _, err := s.observer().Poll(t.Context(), s.src, observer.DryRun(s.db.Acquire(), func(ch observer.Chunk) error {
				dry += len(ch.Events)
				return nil
			})); err != nil || int64(dry) != test.events {
				t.Errorf("a dry run has %d events, %v, want %d", dry, err, test.events)
			}
			calls := make(map[string]int)
			s.db.Step = func(call string) error { calls[call]++; return nil }
			stats := s.poll()
			s.checkLog()
			if calls["observed"] != test.lookUps || calls["commit"] != test.commits || stats.Rows != test.rows || stats.Events != test.events || stats.Full {
				t.Errorf("%d look-ups, %d commits, %+v; want %+v", calls["observed"], calls["commit"], stats, test)
			}
			again := s.poll()
			if again.Events != 0 {
				t.Errorf("the next poll has %d events", again.Events)
			}
		})
	}
}

// TestRefusedGuessLeavesNoTrace in the numbers of the rows that a reading has met: they are
// given to other rows later.
func TestRefusedGuessLeavesNoTrace(t *testing.T) {
	t.Parallel()
	s := keyed(t, observer.DetectSnapshot, noTimestamp)
	s.put(4, 2)
	s.poll()
	s.put(0, 9)
	s.src.Step = failAt("next", 7)
	if _, err := s.tryPoll(); !errors.Is(err, errBroken) {
		t.Fatalf("got %v", err)
	}
	seen := s.db.Generation(stream).Seen
	last := len(seen)*8 - 1
	for last >= 0 && seen[last/8]&(1<<(last%8)) == 0 {
		last--
	}
	met := 0
	for _, b := range seen {
		met += bits.OnesCount8(b)
	}
	equal(t, "the highest number", int64(last), s.db.Cursor(stream).Rows)
	equal(t, "rows that were met", met, 6)
}

// TestSweepCountsRowsOnce, where one that was observed comes behind new ones.
func TestSweepCountsRowsOnce(t *testing.T) {
	t.Parallel()
	s := history(t, observer.DetectChange, 40)
	for _, part := range [][2]int64{{12, 13}, {3, 21}} {
		id := s.db.StartSweep(stream, observer.SweepBackfill, observertest.CursorAt(part[0]), observertest.CursorAt(part[1])).ID
		s.sweep(id, observer.Budget{Rows: 1000})
		equal(t, "rows", s.db.Sweep(id).Rows, part[1]-part[0])
	}
	equal(t, "events", len(s.checkLog()), 38)
}

// TestRefusedGuessMovesNoMark has a chunk of which most rows share their keys with those of
// the chunk before: the poll refuses it, and what it leaves must not lie behind its new rows.
func TestRefusedGuessMovesNoMark(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange, func(s *observer.Spec) { s.ChunkRows = 25 })
	for i := range 25 {
		s.src.Add(observertest.At(key(i), "a", int64(i)+1))
	}
	for i := range 25 {
		k := key(100 + i)
		if i < 15 {
			k = key(i)
		}
		s.src.Add(observertest.At(k, "b", int64(i)+26))
	}
	s.src.SetClock(1000)
	if _, err := s.tryPoll(); !errors.Is(err, observer.ErrMostlyPoison) {
		t.Fatalf("got %v", err)
	}
	c := s.db.Cursor(stream)
	equal(t, "low-water mark", c.Low, observertest.CursorAt(25))
	equal(t, "newest", c.Newest, observertest.CursorAt(25))
	s.db.Accept(stream)
	s.poll()
	equal(t, "events", len(s.checkLog()), 35)
}

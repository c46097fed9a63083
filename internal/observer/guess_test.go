package observer_test

import (
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
			if calls["observed"] != test.lookUps || calls["commit"] != test.commits || stats.Rows != test.rows || stats.Events != test.events {
				t.Errorf("%d look-ups, %d commits, %+v; want %+v", calls["observed"], calls["commit"], stats, test)
			}
			again := s.poll()
			if again.Events != 0 {
				t.Errorf("the next poll has %d events", again.Events)
			}
		})
	}
}

package observer_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

func TestNewMakesOneEventOfAKeyEver(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.Put("a", "1")
	s.src.Put("b", "1")
	s.poll()
	s.src.Put("a", "2")
	s.src.Put("c", "1")
	s.poll()
	s.src.Delete("a")
	s.poll()
	s.src.Put("a", "3")
	s.poll()
	equalList(t, "events", s.story(), "a new 1", "b new 1", "c new 1")
}

func TestChangeMakesAnEventOfEachVersion(t *testing.T) {
	t.Parallel()
	for _, adapt := range []func(*observer.Spec){func(*observer.Spec) {}, noTimestamp} {
		s := setup(t, observer.DetectChange, adapt)
		for _, value := range []string{"A", "A", "B", "A"} {
			s.src.Put("k", value)
			s.poll()
			s.poll()
		}
		equalList(t, "events", s.story(), "k new 1", "k changed 2", "k changed 3")
		s.checkLog()
	}
}

func TestEventDescribesItsRow(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, time.May, 4, 3, 2, 1, 0, time.UTC)
	s := setup(t, observer.DetectChange, func(s *observer.Spec) { s.Now = func() time.Time { return now } })
	s.src.SetClock(100)
	dated, undated := observertest.At("dated", "x", 7), observertest.At("undated", "y", -1)
	s.src.Add(dated, undated)
	s.poll()

	log := s.db.Events(stream)
	equal(t, "events", len(log), 2)
	for i, want := range []struct {
		row observer.Row
		at  time.Time
	}{{dated, dated.Time}, {undated, now}} {
		e := log[i]
		equal(t, "subject", e.Subject, want.row.Key)
		equal(t, "data", string(e.Data), string(want.row.Data))
		equal(t, "time", e.Time, want.at)
		equal(t, "type", e.Type, "Tested")
		equal(t, "stream", e.Stream, stream)
	}
}

func TestStatsCountWhatWasDone(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.put(0, 7)
	tx := s.src.Begin()
	tx.Put("late", "a")
	bad := observertest.At("bad", "", 5)
	bad.Err = errBad
	s.src.Add(bad)

	got := s.poll()
	equal(t, "stats", got, observer.Stats{
		Rows: 8, Events: 7, Poison: 1, Chunks: 3,
		HorizonLag: time.Second, ExactHorizon: true, Readable: true, Behind: time.Second,
	})
	equal(t, "horizon lag without a timestamp", setup(t, observer.DetectNew, noTimestamp).poll().HorizonLag, 0)
}

// A poll that stops early is as far behind as the row that it stopped at.
func TestStatsOfAPollThatEndsEarly(t *testing.T) {
	t.Parallel()
	row := observertest.At("k", "a", 100)
	s := setup(t, observer.DetectNew, func(s *observer.Spec) {
		s.MaxChanged = 2
		s.Now = func() time.Time { return row.Time.Add(time.Hour) }
	})
	s.src.SetClock(500)
	s.src.Add(observertest.At("j", "a", 50), row, observertest.At("l", "a", 200))
	equal(t, "behind", s.poll().Behind, time.Hour)
	equal(t, "behind after the rest", s.poll().Behind, 0)
}

// TestKeyTwiceAcrossPolls has a later poll read the second row alone.
func TestKeyTwiceAcrossPolls(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	s.src.SetClock(500)
	s.src.Add(observertest.At("thrice", "1", 400), observertest.At("thrice", "2", 400), observertest.At("thrice", "3", 490))
	for range 3 {
		s.poll()
	}
	equal(t, "poison rows", len(s.db.Dead(stream)), 2)
	equal(t, "events of the key", len(s.checkLog()["thrice"]), 1)
	s.src.Delete("thrice")
	s.src.Pass(1000)
	s.src.Put("thrice", "4")
	s.poll()
	equal(t, "events of the key that was changed", len(s.checkLog()["thrice"]), 2)
}

func TestKeyTwiceInOnePoll(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		detect  observer.Detect
		between int // Rows between the two, so that they share a chunk or not.
		dead    int
	}{
		"new, one chunk":         {observer.DetectNew, 0, 0},
		"new, two chunks":        {observer.DetectNew, 4, 0},
		"change, one chunk":      {observer.DetectChange, 0, 1},
		"change, two chunks":     {observer.DetectChange, 4, 1},
		"snapshot, one chunk":    {observer.DetectSnapshot, 0, 1},
		"snapshot, other chunks": {observer.DetectSnapshot, 10, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, test.detect, noTimestamp)
			s.src.Add(observertest.At("twice", "1", 0))
			s.put(0, test.between)
			s.src.Add(observertest.At("twice", "2", 0))
			for range 3 {
				s.poll()
			}
			equal(t, "events of the key", len(s.checkLog()["twice"]), 1)
			dead := s.db.Dead(stream)
			equal(t, "poison rows", len(dead), test.dead)
			for _, d := range dead {
				equal(t, "reason", d.Reason, "key (id) is not unique")
				equal(t, "key", d.Key, "twice")
			}
			if test.detect == observer.DetectSnapshot {
				equal(t, "live", len(s.db.Live(stream)), test.between+1)
			}
		})
	}
}

package observer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

var errBad = errors.New("column qty: not a number")

// bad is a poison row; a negative clock means one without a timestamp.
func bad(key string, clock int64) observer.Row {
	r := observertest.At(key, "?", clock)
	r.Err = errBad
	return r
}

func TestPoisonRowsAreKeptWithTheirChunk(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	s.put(0, 4)
	s.src.Add(bad("b", 3), bad("", 20))
	s.src.SetClock(30)
	stats := s.poll()
	equal(t, "poison", stats.Poison, 2)
	equal(t, "events", stats.Events, 4)

	dead := s.db.Dead(stream)
	equal(t, "key", dead[0].Key, "b")
	equal(t, "reason", dead[0].Reason, errBad.Error())
	equal(t, "raw", string(dead[0].Raw), `{"id":"b","value":"?"}`)
	equal(t, "key that cannot be read", dead[1].Key, "")
	equal(t, "low-water mark", s.db.Cursor(stream).Low, observertest.CursorAt(20))

	s.poll()
	equal(t, "poison rows after another poll", len(s.db.Dead(stream)), 2)
}

func TestEmptyKeyIsPoison(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.Add(observertest.At("", "a", 1))
	s.poll()
	equal(t, "reason", s.db.Dead(stream)[0].Reason, "key (id) is empty")
}

func TestPoisonWithoutTimestampMovesNoMark(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.Add(bad("b", -1))
	s.poll()
	equal(t, "poison rows", len(s.db.Dead(stream)), 1)
	equal(t, "low-water mark", s.db.Cursor(stream).Low, "")
}

func TestMostlyPoisonStopsThePoll(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		good, bad int
		stops     bool
	}{
		"few":              {0, 9, false},
		"ten of ten":       {0, 10, true},
		"half":             {10, 10, false},
		"just over a half": {10, 11, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.ChunkRows = 100 })
			s.src.SetClock(1000)
			for i := range test.good {
				s.src.Add(observertest.At(key(i), "a", int64(i)))
			}
			for i := range test.bad {
				s.src.Add(bad(key(100+i), int64(i)))
			}
			_, err := s.tryPoll()
			equal(t, "stops", errors.Is(err, observer.ErrMostlyPoison), test.stops)
			if !test.stops {
				equal(t, "poison rows", len(s.db.Dead(stream)), test.bad)
				return
			}
			if !strings.Contains(err.Error(), errBad.Error()) || !strings.Contains(err.Error(), "schema change") {
				t.Errorf("unhelpful: %v", err)
			}
			equal(t, "chunks", len(s.db.Chunks(stream)), 0)
		})
	}
}

func TestMostFrequentReasonIsNamed(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.ChunkRows = 100 })
	s.src.SetClock(1000)
	for i := range 12 {
		r := bad(key(i), int64(i))
		if i < 4 {
			r.Err = errors.New("column name: not text")
		}
		s.src.Add(r)
	}
	_, err := s.tryPoll()
	if err == nil || !strings.Contains(err.Error(), `8 of those with "column qty: not a number"`) {
		t.Fatalf("got %v", err)
	}
}

// Old poison rows are all that the polls after the first read, because they
// have the highest timestamp or none. That is no schema change.
func TestOldPoisonDoesNotStopAQuietStream(t *testing.T) {
	t.Parallel()
	for name, clock := range map[string]int64{"at the low-water mark": 500, "without a timestamp": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.ChunkRows = 1000 })
			s.put(0, 50)
			for i := range 12 {
				s.src.Add(bad(key(100+i), clock))
			}
			s.src.SetClock(1000)
			s.poll()
			s.poll()
			s.src.Add(observertest.At("fresh", "a", 600))
			s.poll()
			equal(t, "events", len(s.story()), 51)

			for i := range 12 {
				s.src.Add(bad(key(200+i), 700))
			}
			if _, err := s.tryPoll(); !errors.Is(err, observer.ErrMostlyPoison) {
				t.Fatalf("fresh poison: got %v", err)
			}
		})
	}
}

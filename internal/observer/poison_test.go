package observer_test

import (
	"errors"
	"fmt"
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
			equal(t, "poison rows that are shown", len(s.db.Dead(stream)), test.bad)
			equal(t, "low-water mark", s.db.Cursor(stream).Low, "")
			s.refuses(t)
			equal(t, "commits", len(s.db.Chunks(stream)), 1)
			s.db.Accept(stream)
			s.poll()
			equal(t, "events", len(s.story()), test.good)
			equal(t, "poison rows", len(s.db.Dead(stream)), test.bad)
			equal(t, "what was accepted", s.db.Cursor(stream).Accepted, "")
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

func (s *stage) refuses(t *testing.T) observer.Refusal {
	t.Helper()
	_, err := s.tryPoll()
	if !errors.Is(err, observer.ErrMostlyPoison) || !strings.Contains(err.Error(), "`observerd observers accept orders`") {
		t.Fatalf("got %v", err)
	}
	r, err := observer.DecodeRefusal(s.db.Cursor(stream).Refusal)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A bad import among rows that were there before: its share is that of the new
// rows, all of it is counted, a thousand rows of it are shown, and it is
// accepted at once. More than that is refused again.
func TestBadImportIsAccepted(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.ChunkRows = 200 })
	s.src.SetClock(500)
	s.put(0, 106)
	s.poll()
	for i := range 2000 {
		s.src.Add(bad(key(1000+i), 2000))
	}
	s.src.SetClock(3000)
	s.put(200, 30)
	r := s.refuses(t)
	if r.Rows != 2000 || !strings.Contains(r.Text, "are poison") || !strings.Contains(r.Text, "more follow") {
		t.Fatalf("refused %+v", r)
	}
	equal(t, "poison rows that are shown", len(s.db.Dead(stream)), 1000)
	commits := len(s.db.Chunks(stream))
	s.refuses(t)
	equal(t, "commits of the same refusal", len(s.db.Chunks(stream)), commits)

	s.src.Add(bad(key(9000), 2000))
	s.db.Accept(stream)
	// 2,001 are there by now: all but the last chunk of them go, and what is left
	// is refused only where it is most of a chunk.
	if _, err := s.tryPoll(); err != nil && !errors.Is(err, observer.ErrMostlyPoison) {
		t.Fatal(err)
	}
	for range 2 {
		if s.db.Cursor(stream).Refusal == "" {
			break
		}
		s.db.Accept(stream)
		s.poll()
	}
	equal(t, "events", len(s.checkLog()), 136)
	equal(t, "poison rows", len(s.db.Dead(stream)), 2001)
}

// What was refused says how many rows of how many are new.
func TestShareOfPoisonIsThatOfNewRows(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.ChunkRows = 1000 })
	for i := range 106 {
		s.src.Add(observertest.At(key(i), "a", 500))
	}
	s.src.SetClock(1000)
	s.poll()
	for i := range 12 {
		s.src.Add(bad(key(200+i), 600))
	}
	if r := s.refuses(t); !strings.HasPrefix(r.Text, "12 of 12 new rows are poison") || strings.Contains(r.Text, "follow") {
		t.Errorf("refused %+v", r)
	}
}

// A poll that reads everything meets the same poison rows each time. They are
// noted once, and a table that has many is not refused for ever.
func TestPoisonOfASnapshotIsNotedOnce(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot, noTimestamp, func(s *observer.Spec) { s.ChunkRows = 1000 })
	s.put(0, 20)
	for i := range 40 {
		s.src.Add(bad(key(100+i), 0))
	}
	s.refuses(t)
	s.db.Accept(stream)
	s.poll()
	commits := len(s.db.Chunks(stream))
	for range 3 {
		equal(t, "poison rows of a later poll", s.poll().Poison, 0)
	}
	equal(t, "commits of later polls", len(s.db.Chunks(stream)), commits)
	equal(t, "poison rows", len(s.db.Dead(stream)), 40)
	for i := range 80 {
		s.src.Add(bad(key(200+i), 0))
	}
	equal(t, "fresh poison rows", s.refuses(t).Rows, 80)
	// Rows whose records an operator has dropped are judged anew.
	s.db.DropDead(stream)
	equal(t, "poison rows without their records", s.refuses(t).Rows, 120)
}

// Rows that share their key are told of once by an observer of new rows. A row that is read
// again is none of them.
func TestSharedKeysOfNewRows(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.ChunkRows = 100 })
	s.src.SetClock(1000)
	o := s.observer()
	for i, step := range []struct {
		add  []observer.Row
		want int
	}{
		{[]observer.Row{observertest.At("a", "1", 1000)}, 0},
		{[]observer.Row{observertest.At("a", "2", 1001)}, 0},
		{[]observer.Row{observertest.At("b", "1", 1002), observertest.At("b", "2", 1002), observertest.At("b", "3", 1002)}, 1},
		{[]observer.Row{observertest.At("c", "1", 1003), observertest.At("c", "2", 1003)}, 0},
	} {
		s.src.Add(step.add...)
		s.src.Pass(1)
		if _, err := o.Poll(t.Context(), s.src, s.db.Acquire()); err != nil {
			t.Fatal(err)
		}
		told := s.warnings()
		equal(t, fmt.Sprintf("warnings of poll %d", i+1), len(told), step.want)
		if len(told) == 1 && (!strings.Contains(told[0], "Rows share their key") || !strings.Contains(told[0], "rows=2")) {
			t.Errorf("warned %q", told)
		}
	}
	equal(t, "events", len(s.db.Events(stream)), 3)
	equal(t, "poison rows", len(s.db.Dead(stream)), 0)
}

// Only poison is a poll of which nothing else is new, and any of a stream without an event.
func TestOnlyPoison(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange, func(s *observer.Spec) { s.Query.Timestamp = "at" })
	s.src.SetClock(1000)
	for i, step := range []struct {
		add      []observer.Row
		want     observer.PoisonClass
		readable bool
	}{
		{[]observer.Row{bad("a", 1000), bad("b", 1000)}, observer.PoisonColumn, false},
		{nil, observer.PoisonColumn, false},
		{[]observer.Row{observertest.At("good", "a", 1002), bad("c", 1002)}, "", true},
		{nil, "", true},
		{[]observer.Row{bad("d", 1004)}, "", true},
		{[]observer.Row{bad("e", 1005)}, observer.PoisonColumn, false},
		{nil, "", false},
	} {
		s.src.Add(step.add...)
		s.src.Pass(1)
		stats := s.poll()
		equal(t, fmt.Sprintf("class of poll %d", i+1), stats.OnlyPoison, step.want)
		equal(t, fmt.Sprintf("readable rows of poll %d", i+1), stats.Readable, step.readable)
	}
}

func TestClassesOfPoison(t *testing.T) {
	t.Parallel()
	q := observer.Query{Key: []string{"id", "line no"}, Timestamp: "at"}
	for reason, want := range map[string]observer.PoisonClass{
		"column AT is NULL":                  observer.PoisonTimestamp,
		"column at_all is not valid text":    observer.PoisonColumn,
		"column line no is empty in the key": observer.PoisonKey,
		"key (id, line no) is not unique":    observer.PoisonKey,
		"column qty is of a type":            observer.PoisonColumn,
		"the row is larger than 1024 bytes":  observer.PoisonSize,
	} {
		equal(t, reason, q.PoisonClass(reason), want)
	}
	equal(t, "without a timestamp", observer.Query{}.PoisonClass("column  is NULL"), observer.PoisonColumn)
}

// A process tells of poison rows once, and again when their number or reason changes. Those
// that are known, and those of a refusal, are not told of.
func TestPoisonRowsAreToldOnce(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.ChunkRows = 100 })
	s.src.SetClock(1000)
	o := s.observer()
	other := bad("e", 1004)
	other.Err = errors.New("column at is NULL")
	var many []observer.Row
	for i := range 12 {
		many = append(many, bad(key(100+i), 1007))
	}
	for i, step := range []struct {
		add  []observer.Row
		want string
	}{
		{[]observer.Row{bad("a", 1000), bad("b", 1000)}, "poison=2 reason=\"column qty: not a number\""},
		{[]observer.Row{bad("c", 1001), bad("d", 1001)}, ""},
		{[]observer.Row{bad("e", 1002)}, "poison=1 reason=\"column qty: not a number\""},
		{[]observer.Row{other}, `poison=1 reason="column at is NULL"`},
		{nil, ""},
		{[]observer.Row{observertest.At("good", "a", 1005)}, ""},
		{[]observer.Row{bad("f", 1006)}, "poison=1 reason=\"column qty: not a number\""},
		{many, ""},
	} {
		s.src.Add(step.add...)
		s.src.Pass(1)
		if _, err := o.Poll(t.Context(), s.src, s.db.Acquire()); err != nil && !errors.Is(err, observer.ErrMostlyPoison) {
			t.Fatal(err)
		}
		told := strings.Join(s.warnings(), "")
		if told == "" && step.want == "" {
			continue
		}
		if step.want == "" || !strings.Contains(told, "Poison rows cannot become events") || !strings.Contains(told, step.want) {
			t.Errorf("poll %d warns %q instead of %q", i+1, told, step.want)
		}
	}
}

// Those that follow a refusal are committed together, so they are shown up to the size
// of a chunk.
func TestLargePoisonRowsAreShownInPart(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.ChunkRows, s.ChunkBytes = 20, 40_000 })
	for i := range 200 {
		r := bad(key(i), 100)
		r.Data = []byte(strings.Repeat("x", 1000))
		s.src.Add(r)
	}
	s.src.SetClock(1000)
	equal(t, "poison rows", s.refuses(t).Rows, 200)
	equal(t, "poison rows that are shown", len(s.db.Dead(stream)), 40)
}

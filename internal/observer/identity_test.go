package observer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// A backup of the source is put back: a row has another value again, one is
// there that never was observed. Both are far below the marks.
func TestRestoredSourceIsReadFromItsBeginning(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	s.src.SetIdentity("db:1")
	s.put(0, 10)
	s.poll()
	s.src.Restore(append(s.src.Rows()[1:9],
		observertest.At(key(0), "b", 2), observertest.At("missing", "a", 1)))
	s.src.SetIdentity("db:2")
	before, horizons := len(s.db.Chunks(stream)), 0
	s.src.Step = func(call string) error {
		if call == "horizon" {
			horizons++
		}
		return nil
	}

	stats := s.poll()
	equal(t, "rewound", stats.Rewound, true)
	equal(t, "horizons, as the form of the timestamps may be another", horizons, 2)
	equalList(t, "events", s.story()[10:], "missing new 1", key(0)+" changed 2")
	first := s.db.Chunks(stream)[before].After
	equal(t, "marks of the first commit", first.Low+"/"+first.Newest, "/")
	equal(t, "its identity", first.Marks.Identity, "db:2")
	w := s.warnings()
	equal(t, "warnings", len(w), 1)
	equal(t, "warning", strings.Contains(w[0], "another database than the cursor knows") && strings.Contains(w[0], "stream=orders"), true)
	equal(t, "names no identity", strings.Contains(w[0], "db:"), false)

	equal(t, "rewound again", s.poll().Rewound, false)
	equal(t, "warnings again", len(s.warnings()), 0)
	s.checkLog()
}

func TestOnlyAnotherValueOfOneKindRewinds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, after string
		rewound       bool
		known         string
	}{
		"another value":    {"db:1", "db:2", true, "db:2"},
		"the same":         {"db:1", "db:1", false, "db:1"},
		"nothing any more": {"db:1", "", false, "db:1"},
		"nothing before":   {"", "db:1", false, "db:1"},
		"another kind":     {"db:1", "cluster:2", false, "cluster:2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectNew)
			s.src.SetIdentity(test.before)
			s.put(0, 5)
			s.poll()
			low := s.db.Cursor(stream).Low
			s.src.SetIdentity(test.after)
			equal(t, "rewound", s.poll().Rewound, test.rewound)
			if test.rewound {
				low = ""
			}
			equal(t, "read from", s.src.Reads()[1], low)
			equal(t, "remembered", s.db.Cursor(stream).Marks.Identity, test.known)
			equal(t, "warnings", len(s.warnings()) == 1, test.rewound)
		})
	}
}

// The poll that has noticed dies before it has read anything.
func TestRestoredSourceIsRememberedByTheNextPoll(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.SetIdentity("db:1")
	s.put(0, 5)
	s.poll()
	s.src.SetIdentity("db:2")
	s.src.Add(observertest.At("missing", "a", 1))
	_, err := s.observer().Poll(t.Context(), s.src, &dying{s.db.Acquire(), 1})
	if !errors.Is(err, errBroken) {
		t.Fatalf("got %v", err)
	}
	equal(t, "rewound", s.poll().Rewound, false)
	equal(t, "last event", s.story()[5], "missing new 1")
}

func TestRestoredSourceIsReadFromItsStart(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.Start.At = observertest.Time(5) })
	s.src.SetIdentity("db:1")
	s.src.SetClock(10)
	s.put(0, 5)
	s.poll()
	s.src.SetIdentity("db:2")
	s.src.Add(observertest.At("early", "a", 4), observertest.At("missing", "a", 5))
	s.poll()
	equalList(t, "events", s.story()[5:], "missing new 1")
}

// A failover to another server, or a restored backup, of a source whose history
// was left out: it stays left out, and what is new since the stream began is found.
func TestReplacedSourceIsReadFromWhereTheStreamBegan(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		start func(began int64) observer.Start
		later bool
		want  []string
	}{
		"the beginning": {func(int64) observer.Start { return observer.Start{} }, false, []string{"old new 1", "missing new 1", key(51) + " changed 2"}},
		"an instant":    {func(began int64) observer.Start { return observer.Start{At: observertest.Time(began)} }, true, []string{"missing new 1", key(51) + " changed 2"}},
		"now":           {func(int64) observer.Start { return observer.Start{Now: true} }, true, []string{"missing new 1", key(51) + " changed 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectChange)
			s.src.SetIdentity("db:1")
			s.put(0, 50)
			s.src.Pass(10)
			began := s.src.Clock()
			start := test.start(began)
			start.Began = s.db.Start
			s.spec.Start = start
			s.poll()
			s.put(50, 5)
			s.poll()
			events := len(s.story())
			equal(t, "history is left out", events == 5, test.later)

			rows := s.src.Rows()
			s.src.Restore(append(rows[:len(rows)-1], observertest.At("old", "a", 3), observertest.At("missing", "a", began)))
			s.src.Delete(key(51))
			s.src.Add(observertest.At(key(51), "b", began+4))
			s.src.SetIdentity("db:2")
			chunks := len(s.db.Chunks(stream))
			equal(t, "rewound", s.poll().Rewound, true)
			equalList(t, "events", s.story()[events:], test.want...)
			low := ""
			if test.later {
				low = observertest.CursorAt(began)
			}
			equal(t, "mark of the first commit", s.db.Chunks(stream)[chunks].After.Low, low)
			equal(t, "rewound again", s.poll().Rewound, false)
			s.checkLog()
		})
	}
}

// The place where the stream began cannot be read at the moment.
func TestReplacedSourceWaitsForWhereTheStreamBegan(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.SetIdentity("db:1")
	s.put(0, 50)
	s.src.Pass(10)
	s.spec.Start.Now = true
	s.poll()
	s.src.SetIdentity("db:2")
	s.db.Step = failAt("start", 1)
	before := s.db.Cursor(stream)
	if _, err := s.tryPoll(); !errors.Is(err, errBroken) {
		t.Fatalf("got %v", err)
	}
	equal(t, "cursor", s.db.Cursor(stream), before)
	equal(t, "rewound", s.poll().Rewound, true)
	equalList(t, "events", s.story())
}

// The clock went back to before the start, and then the source was replaced:
// what was written meanwhile is not below the mark.
func TestReplacedSourceDoesNotRaiseTheMark(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]observer.Start{
		"an instant": {At: observertest.Time(10_000)},
		"now":        {Now: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectNew)
			s.src.SetIdentity("db:1")
			s.src.SetClock(10_000)
			start.Began = s.db.Start
			s.spec.Start = start
			s.poll()
			s.put(0, 5)
			s.poll()
			s.src.TurnBack(100)
			s.poll()
			low := s.db.Cursor(stream).Low
			equal(t, "mark is below the start", low < observertest.CursorAt(10_000), true)
			s.put(10, 1)
			s.src.SetIdentity("db:2")
			chunks := len(s.db.Chunks(stream))
			s.poll()
			equal(t, "mark of the first commit", s.db.Chunks(stream)[chunks].After.Low, low)
			equalList(t, "events", s.story()[5:], key(10)+" new 1")
		})
	}
}

// An empty table may have no form in which the start could be written; the one
// in its place has a history.
func TestReplacedSourceHasAStartThatCouldNotBeWritten(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.spec.Start.At = observertest.Time(100)
	s.src.SetIdentity("db:1")
	if _, err := s.observer().Poll(t.Context(), formless{s.src}, s.db.Acquire()); err != nil {
		t.Fatal(err)
	}
	equal(t, "mark", s.db.Cursor(stream).Low, "")
	s.put(0, 20)
	s.src.SetClock(100)
	s.put(20, 1)
	s.src.SetIdentity("db:2")
	s.poll()
	equalList(t, "events", s.story(), key(20)+" new 1")
}

type formless struct{ *observertest.Source }

func (formless) CursorAt(context.Context, observer.Query, time.Time) (string, error) { return "", nil }

func TestIdentityOfASourceWithoutTimestamp(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectSnapshot, noTimestamp)
	s.src.SetIdentity("db:1")
	s.put(0, 5)
	s.poll()
	s.src.SetIdentity("db:2")
	equal(t, "rewound", s.poll().Rewound, true)
	equal(t, "rewound again", s.poll().Rewound, false)
	equal(t, "events", len(s.story()), 5)
}

// What is below the marks of the old source was not judged in the new one.
func TestPoisonOfARestoredSourceIsFresh(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew, func(s *observer.Spec) { s.ChunkRows = 1000 })
	s.src.SetIdentity("db:1")
	s.put(0, 50)
	s.poll()
	var broken []observer.Row
	for i := range 12 {
		broken = append(broken, bad(key(i), 5))
	}
	s.src.Restore(broken)
	s.src.SetIdentity("db:2")
	if _, err := s.tryPoll(); !errors.Is(err, observer.ErrMostlyPoison) {
		t.Fatalf("got %v", err)
	}
}

// A primary and its replica behind one name, or two hosts of a pool that was
// put together wrongly.
func TestTwoDatabasesAtOneAddressAreNotReadInTurns(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	s.spec.Now = func() time.Time { return now }
	o := s.observer()
	answer := func(id string) (observer.Stats, error) {
		s.src.SetIdentity(id)
		return o.Poll(t.Context(), s.src, s.db.Acquire())
	}
	s.put(0, 5)
	if _, err := answer("db:1"); err != nil {
		t.Fatal(err)
	}
	if stats, err := answer("db:2"); err != nil || !stats.Rewound {
		t.Fatalf("the first exchange: %+v, %v", stats, err)
	}
	if _, err := answer("db:1"); !errors.Is(err, observer.ErrSourcesAlternate) {
		t.Errorf("the way back: %v", err)
	}
	if stats, err := answer("db:2"); err != nil || stats.Rewound {
		t.Errorf("the one that is known: %+v, %v", stats, err)
	}
	now = now.Add(2 * time.Hour)
	if stats, err := answer("db:1"); err != nil || !stats.Rewound {
		t.Errorf("hours later: %+v, %v", stats, err)
	}
}

// The full read of the former database is no reading of the new one.
func TestReplacedSourceIsReadAtOnce(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.SetClock(1000)
	s.src.SetIdentity("db:1")
	s.put(0, 20)
	s.poll()
	s.src.Begin()
	s.src.Pass(4000)
	s.poll()
	s.src.SetIdentity("db:2")
	s.poll()
	equal(t, "low-water mark is where the horizon stands", s.db.Cursor(stream).Low != "", true)
}

// Whoever meets the new database first may fail before it has said so: a sweep,
// which leaves that to a poll, and a poll whose commit is refused.
func TestReplacedSourceIsMetBeforeItIsFollowed(t *testing.T) {
	t.Parallel()
	for name, meet := range map[string]func(*stage, *observer.Observer) error{
		"by a sweep": func(s *stage, o *observer.Observer) error {
			sweep := s.db.StartSweep(stream, observer.SweepReconcile, "", "")
			_, _, err := o.Sweep(s.t.Context(), s.src, s.db.Acquire(), sweep, observer.Budget{})
			if errors.Is(err, observer.ErrSourceReplaced) {
				return nil
			}
			return err
		},
		"by a poll that cannot commit": func(s *stage, o *observer.Observer) error {
			s.db.Step = failAt("commit", 1)
			_, err := o.Poll(s.t.Context(), s.src, s.db.Acquire())
			if errors.Is(err, errBroken) {
				return nil
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectNew)
			s.src.SetIdentity("db:1")
			s.put(0, 5)
			o := s.observer()
			if _, err := o.Poll(t.Context(), s.src, s.db.Acquire()); err != nil {
				t.Fatal(err)
			}
			s.src.SetIdentity("db:2")
			if err := meet(s, o); err != nil {
				t.Fatal(err)
			}
			stats, err := o.Poll(t.Context(), s.src, s.db.Acquire())
			if err != nil || !stats.Rewound {
				t.Fatalf("rewound %t, %v", stats.Rewound, err)
			}
		})
	}
}

// A failover and its way back within the hour: the first database stays, and
// the other is never seen again.
func TestDatabaseThatIsBackForGoodIsFollowed(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	s.spec.Now = func() time.Time { return now }
	o := s.observer()
	answer := func(id string) error {
		now = now.Add(10 * time.Minute)
		s.src.SetIdentity(id)
		_, err := o.Poll(t.Context(), s.src, s.db.Acquire())
		return err
	}
	s.put(0, 5)
	for _, id := range []string{"db:1", "db:2", "db:2"} {
		if err := answer(id); err != nil {
			t.Fatal(err)
		}
	}
	// Two that go on answering in turns are told apart for as long as they do.
	for range 10 {
		if err := answer("db:1"); !errors.Is(err, observer.ErrSourcesAlternate) {
			t.Fatalf("in turns: %v", err)
		}
		if err := answer("db:2"); err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	for answer("db:1") != nil {
		if refused++; refused > 6 {
			t.Fatal("it is never followed")
		}
	}
	equal(t, "refused", refused, 6)
}

// A poll that its time does not suffice for comes nearer to the end all the
// same, though nothing has changed in what it reads.
func TestRestoredSourceIsReadInSeveralPolls(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.src.SetIdentity("db:1")
	s.put(0, 300)
	s.poll()
	s.src.SetIdentity("db:2")
	s.put(1000, 1)
	polls := 0
	for len(s.story()) < 301 {
		if polls++; polls > 3 {
			t.Fatalf("the mark stands at %q", s.db.Cursor(stream).Low)
		}
		s.src.Step = failAt("next", 150)
		if _, err := s.tryPoll(); err != nil && !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
	}
	s.checkLog()
}

// The database was moved back on purpose. Meanwhile the other one answered, and the marks have
// passed a row that this one was given: the reset that the error recommends finds it.
func TestDatabaseThatWasMovedBackIsReadAgain(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	s.src.SetIdentity("db:1")
	s.put(0, 5)
	o := s.observer()
	poll := func() (observer.Stats, error) { return o.Poll(t.Context(), s.src, s.db.Acquire()) }
	if _, err := poll(); err != nil {
		t.Fatal(err)
	}
	first := s.src.Rows()

	s.src.SetIdentity("db:2")
	s.src.Pass(10)
	missed := observertest.At("missed", "a", s.src.Clock())
	s.src.Pass(10)
	s.put(5, 5)
	for range 2 {
		if _, err := poll(); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "the marks have passed the row", s.db.Cursor(stream).Low > missed.Cursor, true)

	s.src.SetIdentity("db:1")
	s.src.Restore(append(first, missed))
	_, err := poll()
	if !errors.Is(err, observer.ErrSourcesAlternate) {
		t.Fatalf("got %v", err)
	}
	equal(t, "what to run", strings.Contains(err.Error(), "`observerd observers reset orders`"), true)
	before := len(s.story())
	s.db.Reset(stream)
	if _, err := poll(); err != nil {
		t.Fatal(err)
	}
	equalList(t, "events", s.story()[before:], "missed new 1")
	s.checkLog()
}

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

func defined(by string) func(context.Context, []string) (string, error) {
	return func(context.Context, []string) (string, error) { return by, nil }
}

// A definition that was loaded later takes the place of another, once; one that
// was loaded before, or nobody knows when, is left aside.
func TestDefinitionThatWasLoadedLaterIsTheClusters(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	s.db.Clock = s.src.Now
	s.src.SetClock(1000)
	by := func(definition string, loaded int64) error {
		s.spec.Definition = defined(definition)
		s.spec.Loaded = func() time.Time { return observertest.Time(loaded) }
		if loaded == 0 {
			s.spec.Loaded = nil
		}
		s.src.Pass(10)
		_, err := s.tryPoll()
		return err
	}
	polled := func(definition string, loaded int64) {
		t.Helper()
		if err := by(definition, loaded); err != nil {
			t.Fatal(err)
		}
		equal(t, "definition", s.db.Cursor(stream).Definition, definition)
	}
	left := func(definition string, loaded int64) {
		t.Helper()
		before := s.db.Cursor(stream)
		if err := by(definition, loaded); !errors.Is(err, observer.ErrOtherDefinition) {
			t.Fatalf("%s, loaded at %d: %v", definition, loaded, err)
		}
		equal(t, "cursor", s.db.Cursor(stream), before)
	}
	polled("", 0)
	polled("a", 500) // at 1020
	left("b", 0)
	left("b", 1019)
	polled("a", 500)
	polled("b", 1021)
	left("a", 500)
	polled("b", 1021)
	polled("a", 2000)
	left("b", 1021)
	polled("a", 0)
}

// The cursor of another query is refused as ever: which of two nodes is right is
// one question, whether the rows that were observed are those of its query another.
func TestOtherQueryIsRefusedAfterItsDefinitionWasSet(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.db.Clock = s.src.Now
	s.src.SetClock(1000)
	s.spec.Definition, s.spec.Loaded = defined("a"), s.src.Now
	s.put(0, 5)
	s.poll()
	s.src.Pass(10)
	s.spec.Definition, s.spec.Query.Key = defined("b"), []string{"other"}
	for range 2 {
		if _, err := s.tryPoll(); !errors.Is(err, observer.ErrQueryChanged) {
			t.Fatalf("got %v", err)
		}
	}
	equal(t, "definition", s.db.Cursor(stream).Definition, "b")
}

// The configuration puts another source in the place of one. Its rows lie below the
// marks of the former one, and it may not be able to say that it is another.
func TestChangedSourceIsReadFromItsBeginning(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{"without an identity": "", "two schemas of one server": "server:1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, observer.DetectNew)
			s.db.Clock = func() time.Time { return s.src.Now() }
			s.src.SetClock(1000)
			s.src.SetIdentity(id)
			s.spec.Definition, s.spec.Loaded = defined("erp1/orders"), s.src.Now
			s.put(0, 5)
			s.poll()

			former := s.src
			s.src = observertest.NewSource()
			s.src.SetIdentity(id)
			for i := range 7 {
				s.src.Add(observertest.At(key(3+i), "a", int64(100+i)))
			}
			s.src.SetClock(2000)
			s.spec.Now = s.src.Now
			s.spec.Definition, s.spec.Loaded = defined("erp2/orders"), s.src.Now
			// The poll that sets the definition gets no further: the next one does.
			s.src.Step = func(string) error { return errors.New("down") }
			if _, err := s.tryPoll(); err == nil {
				t.Fatal("the poll does not meet the failure")
			}
			s.src.Step = nil
			equal(t, "rewound", s.poll().Rewound, true)
			equal(t, "events", len(s.story()), 10)
			equal(t, "identity", s.db.Cursor(stream).Marks.Identity, id)
			equal(t, "rewound again", s.poll().Rewound, false)

			// Other columns of the same source are no other source.
			s.src.Pass(10)
			s.spec.Definition, s.spec.Loaded = defined("erp2/orders, less columns"), s.src.Now
			equal(t, "rewound by columns", s.poll().Rewound, false)
			// A step back is a change like any other.
			former.SetClock(3000)
			s.src, s.spec.Now = former, former.Now
			s.spec.Definition, s.spec.Loaded = defined("erp1/orders"), s.src.Now
			equal(t, "rewound by a step back", s.poll().Rewound, true)
			equal(t, "events", len(s.story()), 10)
			s.checkLog()
		})
	}
}

// keyless is a stage whose configuration leaves the key out; the definition names it.
func keyless(t tester, detect observer.Detect) *stage {
	s := setup(t, detect)
	s.db.Clock, s.spec.Loaded = s.src.Now, s.src.Now
	s.spec.Query.Key, s.src.Primary = nil, []string{"id"}
	s.spec.Definition = func(_ context.Context, key []string) (string, error) { return "t by " + strings.Join(key, ","), nil }
	s.src.SetClock(1000)
	return s
}

// Rows, definition and events are those of the same key written out, in any case and order
// of the two configurations.
func TestKeyMayBeLeftOutLater(t *testing.T) {
	t.Parallel()
	for _, detect := range []observer.Detect{observer.DetectNew, observer.DetectChange, observer.DetectSnapshot} {
		for _, written := range []string{"id", "ID"} {
			t.Run(string(detect)+" "+written, func(t *testing.T) {
				t.Parallel()
				s := keyless(t, detect)
				s.spec.Query.Key = []string{written}
				s.put(0, 5)
				s.poll()
				before := s.db.Cursor(stream)
				for range 3 { // In turns, as by two nodes.
					s.src.Pass(10)
					s.spec.Query.Key = nil
					s.poll()
					s.spec.Query.Key = []string{written}
					s.poll()
				}
				after := s.db.Cursor(stream)
				equal(t, "events", len(s.db.Events(stream)), 5)
				equal(t, "definition", after.Definition, "t by "+written)
				equal(t, "fingerprint", after.Fingerprint, before.Fingerprint)
				equal(t, "warnings", len(s.warnings()), 0)
			})
		}
	}
}

func TestAnotherPrimaryKeyIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		primary []string
		text    string
	}{
		"another one":  {[]string{"value"}, "the primary key of t is (value), and the keys of this stream are made of (id); use `key: [id]`"},
		"one more":     {[]string{"id", "value"}, "the primary key of t is (id, value)"},
		"another case": {[]string{"Id"}, "use `key: [id]`"},
		"none":         {nil, "which is not seen any more; use `key: [id]`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := keyless(t, observer.DetectChange)
			s.put(0, 5)
			s.poll()
			before := s.db.Cursor(stream)
			s.src.Primary = test.primary
			s.src.Pass(10)
			refused := func() {
				t.Helper()
				if _, err := s.tryPoll(); !errors.Is(err, observer.ErrQueryChanged) || !strings.Contains(err.Error(), test.text) {
					t.Fatalf("got %v", err)
				}
			}
			refused()
			equal(t, "cursor", s.db.Cursor(stream), before)
			s.spec.Query.Key = []string{"id"}
			s.poll()
			equal(t, "events", len(s.db.Events(stream)), 5)
			s.spec.Query.Key = nil
			refused()
			s.db.Reset(stream)
			refused() // Not even a reset makes other keys of the rows that are known.
		})
	}
}

// The key that a message says to write is the one by which the stream goes on.
func TestKeyToWriteIsThatOfTheCursor(t *testing.T) {
	t.Parallel()
	for _, written := range []string{"id", "ID"} {
		s := keyless(t, observer.DetectChange)
		s.spec.Query.Key = []string{written}
		s.put(0, 5)
		s.poll()
		s.spec.Query.Key, s.src.Primary = nil, []string{"value"}
		s.src.Pass(10)
		if _, err := s.tryPoll(); !errors.Is(err, observer.ErrQueryChanged) || !strings.Contains(err.Error(), "use `key: ["+written+"]`") {
			t.Fatalf("got %v", err)
		}
		s.spec.Query.Key = []string{written}
		s.poll()
		equal(t, "events", len(s.db.Events(stream)), 5)
	}
}

// A stream that has seen no row has no keys yet: nothing is refused but by its query.
func TestKeyIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := keyless(t, observer.DetectChange)
	down := &observer.Fault{Class: observer.ClassUnreachable, Err: observer.ErrUnreachable}
	s.src.Step = func(call string) error {
		if call == "primary key" {
			return down
		}
		return nil
	}
	if _, err := s.tryPoll(); !errors.Is(err, observer.ErrUnreachable) {
		t.Fatalf("got %v", err)
	}
	equal(t, "definition", s.db.Cursor(stream).Definition, "")
	s.src.Step, s.src.Primary = nil, nil
	if _, err := s.tryPoll(); observer.ClassOf(err) != observer.ClassQuery || !strings.Contains(err.Error(), "no primary key of t is seen; set key") {
		t.Fatalf("got %v", err)
	}
	equal(t, "definition", s.db.Cursor(stream).Definition, "")
	s.src.Primary = []string{"id"}
	s.put(0, 2)
	s.poll()
	equal(t, "events", len(s.db.Events(stream)), 2)
	equal(t, "definition", s.db.Cursor(stream).Definition, "t by id")
}

// A stream without rows remembers the query, and no columns of its keys.
func TestOtherKeyOfAStreamWithoutRowsIsRefused(t *testing.T) {
	t.Parallel()
	s := keyless(t, observer.DetectChange)
	s.spec.Query.Key = []string{"value"}
	s.poll() // No row: nothing is remembered but the query.
	s.spec.Query.Key = nil
	s.src.Pass(10)
	before := s.db.Cursor(stream).Definition
	if _, err := s.tryPoll(); !errors.Is(err, observer.ErrQueryChanged) {
		t.Fatalf("got %v", err)
	}
	equal(t, "definition", s.db.Cursor(stream).Definition, before)
}

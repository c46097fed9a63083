package observer_test

import (
	"context"
	"errors"
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

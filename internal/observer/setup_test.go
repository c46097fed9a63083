package observer_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(m) }

// stream is the one that every test polls.
const stream = "orders"

// tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

// stage is a source, a database and how the one is polled into the other.
type stage struct {
	t    tester
	src  *observertest.Source
	db   *observertest.DB
	spec observer.Spec
	log  *bytes.Buffer
}

// setup prepares a stage; chunks hold three rows, so that most tests have
// several. The nodes' clock is that of the source, until somebody turns that.
func setup(t tester, detect observer.Detect, adapt ...func(*observer.Spec)) *stage {
	t.Helper()
	s := &stage{t: t, src: observertest.NewSource(), db: observertest.NewDB(), log: &bytes.Buffer{}}
	s.spec = observer.Spec{
		Stream:    stream,
		EventType: "Tested",
		Detect:    detect,
		Query:     observer.Query{Table: "t", Key: []string{"id"}, Timestamp: "at"},
		ChunkRows: 3,
		Logger:    slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Now:       s.src.Now,
		Start:     observer.Start{Began: s.db.Start},
	}
	for _, f := range adapt {
		f(&s.spec)
	}
	if s.spec.Query.Timestamp == "" {
		s.src.Unordered = true
	}
	return s
}

func noTimestamp(s *observer.Spec) { s.Query.Timestamp = "" }

// warnings returns what was logged since the last call, line by line.
func (s *stage) warnings() []string {
	text := strings.TrimSuffix(s.log.String(), "\n")
	s.log.Reset()
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func (s *stage) observer() *observer.Observer {
	s.t.Helper()
	o, err := observer.New(s.spec)
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// tryPoll polls once under a new lease.
func (s *stage) tryPoll() (observer.Stats, error) {
	s.t.Helper()
	return s.observer().Poll(s.t.Context(), s.src, s.db.Acquire())
}

func (s *stage) poll() observer.Stats {
	s.t.Helper()
	stats, err := s.tryPoll()
	if err != nil {
		s.t.Fatalf("poll: %v", err)
	}
	return stats
}

// story is the events in order, each as "key change version".
func (s *stage) story() []string {
	var story []string
	for _, e := range s.db.Events(stream) {
		story = append(story, fmt.Sprintf("%s %s %d", e.Subject, e.Change, e.Version))
	}
	return story
}

// put gives n keys from first on their first value.
func (s *stage) put(first, n int) {
	for i := first; i < first+n; i++ {
		s.src.Put(key(i), "a")
	}
}

func key(i int) string { return fmt.Sprintf("k%04d", i) }

// checkLog fails the test unless the log is gapless, without a repeated id,
// and with versions of each key that follow one another.
func (s *stage) checkLog() map[string][]events.Event {
	s.t.Helper()
	ids := make(map[string]bool)
	versions := make(map[string][]events.Event)
	for i, e := range s.db.Events(stream) {
		if e.Seq != int64(i)+1 {
			s.t.Fatalf("event %d has seq %d", i, e.Seq)
		}
		if ids[e.ID.String()] {
			s.t.Fatalf("event %s of %s is repeated", e.ID, e.Subject)
		}
		ids[e.ID.String()] = true
		versions[e.Subject] = append(versions[e.Subject], e)
		if e.Version != int64(len(versions[e.Subject])) {
			s.t.Fatalf("event of %s has version %d, want %d", e.Subject, e.Version, len(versions[e.Subject]))
		}
	}
	return versions
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func equalList(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	equal(t, what, fmt.Sprint(got), fmt.Sprint(want))
}

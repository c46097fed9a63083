package observer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// retry returns what a retry has made of the keys, each as "key outcome reason".
func (s *stage) retry(keys ...string) []string {
	s.t.Helper()
	all, err := s.observer().Retry(s.t.Context(), s.src, s.db.Acquire(), keys)
	if err != nil {
		s.t.Fatalf("retry: %v", err)
	}
	said := make([]string, len(all))
	for i, r := range all {
		said[i] = strings.TrimSpace(fmt.Sprint(r.Key, " ", r.Outcome, " ", r.Reason))
		if (r.Seq != 0) != (r.Outcome == observer.RetryEvent) {
			s.t.Fatalf("%+v", r)
		}
	}
	return said
}

// fix replaces a poison row and leaves its timestamp.
func (s *stage) fix(key string, clock int64) {
	s.src.Delete(key)
	s.src.Add(observertest.At(key, "fixed", clock))
}

func TestRetryReadsRowsByTheirKeys(t *testing.T) {
	t.Parallel()
	for _, detect := range []observer.Detect{observer.DetectNew, observer.DetectChange, observer.DetectSnapshot} {
		t.Run(string(detect), func(t *testing.T) {
			t.Parallel()
			s := setup(t, detect)
			s.put(0, 4)
			s.src.Add(bad("b", 3), bad("c", 3), bad("d", 3), bad("e", 3))
			s.src.SetClock(30)
			s.poll()
			marks := s.db.Cursor(stream)
			s.fix("b", 3)
			s.src.Delete("c")
			s.src.Add(observertest.At("e", "a second one", 3))
			s.src.Add(observertest.At("B", "another row that the source takes for equal", 3))
			equalList(t, "first retry", s.retry("b", "c", "d", "e"),
				"b event", "c missing", "d poison column qty: not a number", "e poison key (id) is not unique")
			equalList(t, "second retry", s.retry("b"), "b observed")
			equalList(t, "a row that was never poison", s.retry(key(1)), key(1)+" observed")
			now := s.db.Cursor(stream)
			equal(t, "marks", now.Low+now.Newest, marks.Low+marks.Newest)
			equal(t, "poison rows", len(s.db.Dead(stream)), 4)
			log := s.checkLog()
			equal(t, "events of b", len(log["b"]), 1)
			equal(t, "data", string(log["b"][0].Data), `{"id":"b","value":"fixed"}`)
			s.poll()
			equal(t, "events of b after another poll", len(s.checkLog()["b"]), 1)
		})
	}
}

// A row that was observed before it became poison is changed, not new.
func TestRetryOfAKnownRow(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectChange)
	s.src.Put("b", "a")
	s.poll()
	s.src.Delete("b")
	s.src.Add(bad("b", s.src.Clock()))
	s.src.Pass(5)
	s.poll()
	s.fix("b", s.src.Clock()-5)
	equalList(t, "retry", s.retry("b"), "b event")
	equalList(t, "story", s.story(), "b new 1", "b changed 2")
}

// An unfinished reading of all rows has passed the place of the row. Its end must not
// take the row for gone.
func TestRetryWithinAReadingOfAllRows(t *testing.T) {
	t.Parallel()
	s := keyed(t, observer.DetectSnapshot, noTimestamp, changedAtMost(7))
	s.put(0, 30)
	s.src.Delete(key(2))
	s.src.Add(bad(key(2), 0))
	s.generation()
	for i := range 30 {
		if i != 2 {
			s.src.Put(key(i), "b") // the next reading takes several polls
		}
	}
	if !s.poll().Full {
		t.Fatal("one poll has read all rows")
	}
	s.fix(key(2), 0)
	equalList(t, "retry", s.retry(key(2)), key(2)+" event")
	s.src.Delete(key(20))
	s.generation()
	for k, log := range s.checkLog() {
		last := log[len(log)-1].Change
		if gone := last == "gone"; gone != (k == key(20)) {
			t.Errorf("%s is %s", k, last)
		}
	}
}

// What a retry finds changed is refused, and nothing is noted of it.
func TestRetryRefuses(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	_, err := s.observer().Retry(t.Context(), s.src, s.db.Acquire(), []string{"b"})
	if !errors.Is(err, observer.ErrReadAnew) {
		t.Errorf("before the first poll: %v", err)
	}
	s.src.SetIdentity("db:1")
	s.put(0, 1)
	s.poll()
	commits := len(s.db.Chunks(stream))
	s.src.SetIdentity("db:2")
	_, err = s.observer().Retry(t.Context(), s.src, s.db.Acquire(), []string{key(0)})
	if !errors.Is(err, observer.ErrSourceReplaced) {
		t.Errorf("another source: %v", err)
	}
	s.src.SetIdentity("db:1")
	s.src.SetColumns(observer.Column{Name: "id", Type: "text"})
	_, err = s.observer().Retry(t.Context(), s.src, s.db.Acquire(), []string{key(0)})
	if !errors.Is(err, observer.ErrColumnsChanged) {
		t.Errorf("other columns: %v", err)
	}
	equal(t, "commits", len(s.db.Chunks(stream)), commits)
}

// The source knows no row by the hash of its key, and must not be taken to have none.
func TestRetryOfAHashedKey(t *testing.T) {
	t.Parallel()
	s := setup(t, observer.DetectNew)
	s.spec.Query.Redact = map[string]observer.Redaction{"ID": observer.RedactHash}
	s.spec.Query.HashKey = observer.NewHashKey("a key")
	s.src.SetKeyColumns(observer.KeyColumn{Column: observer.Column{Name: "id", Type: "text"}}.Hashed(s.spec.Query.HashKey))
	s.put(0, 1)
	s.poll()
	_, err := s.observer().Retry(t.Context(), s.src, s.db.Acquire(), []string{key(0)})
	if !errors.Is(err, observer.ErrNoKeyLookup) {
		t.Errorf("retry: %v", err)
	}
}

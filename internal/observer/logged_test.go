package observer_test

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
)

// TestLoggedTellsOfRowsWithATimestamp has a node whose clock is an hour behind the source's.
func TestLoggedTellsOfRowsWithATimestamp(t *testing.T) {
	t.Parallel()
	late := make(map[string]time.Duration)
	s := setup(t, observer.DetectChange)
	s.spec.Now = func() time.Time { return s.src.Now().Add(-time.Hour) }
	s.spec.Logged = func(e *events.Event, now time.Time) { late[e.Subject] = now.Sub(e.Time) }
	s.put(1, 2)
	s.undated(5, 1)
	s.src.Pass(30)
	s.poll()
	if _, told := late[key(5)]; told || len(late) != 2 || len(s.db.Events(stream)) != 3 {
		t.Fatalf("told of %v", late)
	}
	for k, d := range late {
		if d < 29*time.Second || d > 5*time.Minute {
			t.Errorf("%s is %v late", k, d)
		}
	}
	s.spec.Query.Timestamp, s.src.Unordered = "", true
	clear(late)
	s.db.Reset(stream)
	s.put(8, 1)
	s.poll()
	if len(late) != 0 {
		t.Errorf("told of %v, which have no timestamp", late)
	}
}

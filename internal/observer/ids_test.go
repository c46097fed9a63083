package observer_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
)

// TestIDsThatAreMadeAhead compares the ids of events with those of their rows. The store is slow,
// so that they are made while the chunk before is committed.
func TestIDsThatAreMadeAhead(t *testing.T) {
	t.Parallel()
	for _, detect := range []observer.Detect{observer.DetectNew, observer.DetectChange, observer.DetectSnapshot} {
		t.Run(string(detect), func(t *testing.T) {
			t.Parallel()
			s := setup(t, detect)
			s.db.Epoch = 3
			s.db.Step = func(string) error { time.Sleep(time.Millisecond); return nil }
			s.put(0, 30)
			s.poll()
			s.src.Put(key(7), "changed")
			s.put(30, 9)
			s.poll()
			all := s.db.Events(stream)
			for _, e := range all {
				hash := sha256.Sum256(e.Data)
				if want := events.NewID(stream, 3, e.Subject, e.Version, hash[:16]); e.ID != want {
					t.Errorf("version %d of %s has the id %s, want %s", e.Version, e.Subject, e.ID, want)
				}
			}
			if want := map[bool]int{true: 39, false: 40}[detect == observer.DetectNew]; len(all) != want {
				t.Errorf("%d events, want %d", len(all), want)
			}
		})
	}
}

package sourcetest

import (
	"slices"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/observer/observertest"
)

// apart is how long polls are apart here: so long that none of them has what the one before
// has just found out, as those of every second.
const apart = 300 * time.Millisecond

// Sent is what a source has sent to its database.
type Sent struct {
	// Trips are the messages that it has sent at once. Zero where there is no network.
	Trips      int
	Statements []string
}

// QuietPolls checks that a poll of q that finds nothing new needs at most trips and statements.
// taken returns what src has sent since its last call. On a busy machine a poll may do more than it
// must, so two of five have to keep to that.
func QuietPolls(t *testing.T, src observer.Source, q observer.Query, trips, statements int, taken func() Sent) {
	t.Helper()
	o, err := observer.New(observer.Spec{Stream: "quiet", EventType: "Seen", Detect: observer.DetectChange, Query: q})
	if err != nil {
		t.Fatal(err)
	}
	db := observertest.NewDB()
	var all []Sent
	for n := range 7 {
		<-time.After(apart)
		taken()
		stats, err := o.Poll(t.Context(), src, db.Acquire())
		if err != nil || n > 0 && stats.Events > 0 {
			t.Fatalf("poll %d: %+v, %v", n, stats, err)
		}
		if sent := taken(); n >= 2 { // The first two log on and look around.
			all = append(all, sent)
		}
	}
	slices.SortFunc(all, func(a, b Sent) int { return len(a.Statements) - len(b.Statements) })
	if second := all[1]; len(all[0].Statements) == 0 || len(second.Statements) > statements || second.Trips > trips {
		t.Errorf("a quiet poll needs %d round trips and %d statements, want at most %d and %d: %q", second.Trips, len(second.Statements), trips, statements, second.Statements)
	}
}

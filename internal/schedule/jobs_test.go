package schedule_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/schedule"
)

// fires is how gocron asks: it leaves a firing out that shows the same second
// of the wall clock as the one before.
func fires(a schedule.Aligned, last time.Time) time.Time {
	next := a.Next(last)
	if last.Format(time.DateTime) == next.Format(time.DateTime) {
		return a.Next(next)
	}
	return next
}

func TestDriftOfTheOffsetNeitherRepeatsNorSkipsATick(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{time.Second, 1500 * time.Millisecond, 7 * time.Second, interval} {
		t.Run(step.String(), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(1, uint64(step)))
			for range 50 {
				a := schedule.NewAligned(step)
				base := time.Duration(random.Int64N(int64(time.Hour)))
				// A change from one end to the other stays just within the slack.
				drift := func() time.Duration {
					d := min(step/4, time.Second) / 2
					return base + time.Duration(random.Int64N(int64(2*d))) - d
				}
				a.Ahead(drift())
				last := fires(a, start2000())
				served := a.Serves(last)
				for range 200 {
					a.Ahead(drift())
					next := fires(a, last)
					now := a.Serves(next)
					if now.Sub(served) != step {
						t.Fatalf("fires for %s after %s", now, served)
					}
					last, served = next, now
				}
			}
		})
	}
}

func TestJobsFireInRealTime(t *testing.T) {
	t.Parallel()
	db := newMemory()
	// One that is under way when its node stops has its turn all the same.
	atOnce := func(context.Context, lock.Grant) (observer.Stats, error) { return observer.Stats{}, nil }
	var nodes []*node
	for _, name := range []string{"a", "b"} {
		nodes = append(nodes, start(t, db, name, every(time.Second), does("order-1", atOnce)))
	}
	deadline := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for len(db.taken("order")) < 4 {
		select {
		case <-deadline:
			t.Fatalf("%d turns in a minute", len(db.taken("order")))
		case <-tick.C:
		}
	}
	for _, n := range nodes {
		n.quit()
	}
	seen := make(map[time.Time]bool)
	for _, taken := range db.taken("order") {
		if seen[taken.At] || !taken.At.Equal(taken.At.Truncate(time.Second)) {
			t.Errorf("turn at %s was taken twice, or not at a tick", taken.At)
		}
		seen[taken.At] = true
	}
	if polls := nodes[0].polls("order-1") + nodes[1].polls("order-1"); polls != len(seen) {
		t.Errorf("%d polls for %d turns", polls, len(seen))
	}
}

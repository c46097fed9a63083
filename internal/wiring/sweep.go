package wiring

import (
	"context"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

// sweepRows bounds a step of a sweep, so that polls come in between.
const sweepRows = 50_000

// SweepBudget bounds a step of a sweep to that time, and to the rows that the rate
// allows in it, or the lock would be held for waiting. A rate of 0 is no limit.
func SweepBudget(step time.Duration, rate float64) observer.Budget {
	b := observer.Budget{Rows: sweepRows, Time: step}
	if rate > 0 {
		b.Rows = max(1, min(b.Rows, int(rate*step.Seconds())))
	}
	return b
}

// LastSweep returns the sweep of a kind that is running or was started last;
// zero for none.
func LastSweep(ctx context.Context, db *lockdb.DB, id string, kind observer.SweepKind) (observer.Sweep, error) {
	sweeps, err := db.Sweeps().Latest(ctx, id)
	at := slices.IndexFunc(sweeps, func(s observer.Sweep) bool { return s.Kind == kind })
	if at < 0 {
		return observer.Sweep{}, err
	}
	return sweeps[at], err
}

// SweepAdvanced reports whether a step of a sweep did anything.
func SweepAdvanced(before, after observer.Sweep) bool {
	return before.ID != after.ID || before.State != after.State || before.Position != after.Position || before.Rows != after.Rows
}

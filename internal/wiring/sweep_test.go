package wiring

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

func TestSweepBudget(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rate float64
		want int
	}{
		"a step": {0, sweepRows}, "throttled": {1000, 2000}, "a drop at a time": {0.1, 1},
	} {
		if got, want := SweepBudget(2*time.Second, tc.rate), (observer.Budget{Rows: tc.want, Time: 2 * time.Second}); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

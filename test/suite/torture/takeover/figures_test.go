package takeover_test

import (
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/suite/torture/takeover"
)

func TestQuantile(t *testing.T) {
	t.Parallel()
	var times []time.Duration
	for i := range 40 {
		times = append(times, time.Duration(i+1)*time.Second)
	}
	for p, want := range map[float64]int{0: 1, 0.5: 20, 0.95: 38, 0.96: 39, 1: 40} {
		if got := takeover.Quantile(times, p); got != times[want-1] {
			t.Errorf("quantile %v is %s, want %s", p, got, times[want-1])
		}
	}
	if got := takeover.Quantile(nil, 0.5); got != 0 {
		t.Errorf("quantile of nothing is %s", got)
	}
}

func TestGoalIsThatOfKills(t *testing.T) {
	t.Parallel()
	sample := func(kind takeover.Kind, took time.Duration) takeover.Sample {
		return takeover.Sample{Kind: kind, Took: took, Rule: "session-gone"}
	}
	f := takeover.Figures{Samples: []takeover.Sample{sample(takeover.Sleep, time.Minute)}}
	if f.Reached() {
		t.Error("the goal is met without a single kill")
	}
	for range 19 {
		f.Samples = append(f.Samples, sample(takeover.Kill, 900*time.Millisecond))
	}
	f.Samples = append(f.Samples, sample(takeover.Kill, time.Minute))
	if !f.Reached() {
		t.Error("one of twenty is beyond p95")
	}
	if text := string(f.Markdown()); !strings.Contains(text, "| kill -9 | 0s | 20 | 0.90 s | 0.90 s | 60.00 s | `session-gone`: 20 | p95 under 1 s | **met** |") {
		t.Errorf("report:\n%s", text)
	}
	f.Samples = append(f.Samples, sample(takeover.Kill, time.Minute))
	if f.Reached() {
		t.Error("two of 21 are within p95")
	}
}

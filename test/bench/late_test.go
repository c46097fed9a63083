package main

import (
	"slices"
	"testing"
	"time"
)

// TestJudge gives the judge one of each fault.
func TestJudge(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	committed := map[string]lateVersion{"a": {at: at}, "b": {at: at, late: true}, "c": {at: at}, "d": {at: at}}
	events := []lateEvent{
		{1, "a", at.Add(time.Second)},
		{1, "b", at.Add(2 * time.Second)},
		{1, "b", at.Add(3 * time.Second)},
		{2, "c", at.Add(4 * time.Second)},
		{4, "never committed", at},
	}
	final := map[int64]string{1: "b", 2: "d", 3: "e", 4: "never committed"}
	r := judge(events, committed, final)
	if r.neverSeen != 1 || r.stale != 1 || r.repeated != 1 || r.phantoms != 1 {
		t.Errorf("judged as %+v; want one of each fault", r)
	}
	if !slices.Equal(r.prompt, []time.Duration{time.Second, 4 * time.Second}) || !slices.Equal(r.late, []time.Duration{2 * time.Second}) {
		t.Errorf("delays %v and %v", r.prompt, r.late)
	}
}

func TestMemories(t *testing.T) {
	t.Parallel()
	for want, values := range map[string][]int64{"": nil, "1 MiB": {1 << 20}, "1 MiB, 2 MiB and 3 MiB": {1 << 20, 2 << 20, 3 << 20}} {
		if got := memories(values).String(); got != want {
			t.Errorf("%d values are listed as %q, want %q", len(values), got, want)
		}
	}
}

package main

import (
	"strings"
	"testing"

	"github.com/prometheus/procfs"
)

// TestRunsBecomeRanges joins three runs: ratios are those of each run, and not of
// the ends of two ranges.
func TestRunsBecomeRanges(t *testing.T) {
	t.Parallel()
	run := func(ours, theirs float64, limit string) report {
		return report{
			circumstances: []circumstance{{"runs", say("%s of them", count(1))}, {"machine", say("%s", words{"slow"})}},
			measured: []measured{{"locks", []figure{{
				group: "g", what: "w", value: say("%s ms, %s times", decimal(ours, 2), decimal(ours/theirs, 2)),
				beside: say("bare %s ms, %s rows/s; the limit is %s", decimal(theirs, 2), whole(1000*theirs), words{limit}),
				goal:   "at most 1.3 times", met: []bool{ours/theirs <= 1.3},
			}}}},
		}
	}
	all := run(1, 1, "disk")
	for _, one := range []report{run(3, 2, "CPU"), run(4, 4, "disk")} {
		var err error
		if all, err = all.and(one); err != nil {
			t.Fatal(err)
		}
	}
	var text strings.Builder
	if err := all.text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"3 of them\n", "slow\n", "1.00 to 4.00 ms, 1.00 to 1.50 times", "bare 1.00 to 4.00 ms, 1,000 to 4,000 rows/s; the limit is disk or CPU",
		"MISSED in 1 of 3 runs",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &text)
		}
	}
}

func TestRunsThatMeasuredDifferentThings(t *testing.T) {
	t.Parallel()
	run := func(figures ...figure) report { return report{measured: []measured{{"locks", figures}}} }
	one := figure{group: "g", what: "w", value: say("%s ms", whole(1))}
	for name, other := range map[string]report{
		"fewer":       run(),
		"another":     run(figure{group: "g", what: "x", value: one.value}),
		"other words": run(figure{group: "g", what: "w", value: say("%s s", whole(1))}),
	} {
		if both, err := run(one).and(other); err == nil {
			t.Errorf("%s: joined to %+v", name, both)
		}
	}
}

func TestNumbersAsPeopleReadThem(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]number{
		"0": whole(0), "999": whole(999), "1,000": whole(1000), "1,234,567": whole(1234567), "-1,000": whole(-1000),
		"1,234.50": decimal(1234.5, 2), "0.05": decimal(0.05, 2), "1 to 2": {1, 2, 0}, "1.0": {0.99, 1.01, 1},
	} {
		if got := n.String(); got != want {
			t.Errorf("%v is written %q, want %q", n.low, got, want)
		}
	}
}

func TestWorkBetween(t *testing.T) {
	t.Parallel()
	before := procfs.CPUStat{User: 10, System: 5, Idle: 100, Iowait: 1, Steal: 2}
	after := procfs.CPUStat{User: 10.5, System: 5.25, Idle: 102.5, Iowait: 1.5, Steal: 2.25}
	if got := workBetween(before, after); got != 0.25 {
		t.Errorf("the share of work is %v, want 0.25", got)
	}
	if got := workBetween(before, before); got != 0 {
		t.Errorf("no time at all is %v of work", got)
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

package torture_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/suite/torture"
)

func plan(t *testing.T, o torture.Options) torture.Plan {
	t.Helper()
	p, err := torture.NewPlan(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOneSeedIsOnePlan(t *testing.T) {
	t.Parallel()
	o := torture.Options{Seed: 7, Duration: time.Hour}
	first, again := plan(t, o), plan(t, o)
	if !reflect.DeepEqual(first, again) {
		t.Error("the same seed gave two plans")
	}
	o.Seed = 8
	if reflect.DeepEqual(first.Faults, plan(t, o).Faults) {
		t.Error("two seeds gave one plan")
	}
}

// TestPlanHasAllFaults counts what an hour is to bring.
func TestPlanHasAllFaults(t *testing.T) {
	t.Parallel()
	p := plan(t, torture.Options{Seed: 1, Duration: time.Hour, Holder: "holder"})
	if n := len(p.Faults); n < 1000 {
		t.Errorf("%d faults in an hour", n)
	}
	count := make(map[string]int)
	last := time.Duration(0)
	for _, f := range p.Faults {
		count[f.Kind]++
		if at := f.At; at < last || at > time.Hour {
			t.Fatalf("%s at %s, after %s", f.Kind, at, last)
		}
		last = f.At
	}
	for _, s := range p.Starts {
		for _, action := range []string{"kill", "stop"} {
			if strings.Contains(s.Failpoints, "="+action+"@") {
				count[action+"-at-step"]++
			}
		}
	}
	for _, kind := range torture.Kinds() {
		if count[kind] < 10 {
			t.Errorf("%s %d times in an hour", kind, count[kind])
		}
	}
}

func TestHintsTakeThePlaceOfThePlan(t *testing.T) {
	t.Parallel()
	p := plan(t, torture.Options{
		Seed: 1, Duration: time.Minute, Faults: []string{"pause", "reset"}, Failpoints: []string{"commit.after=kill@5", ""}, ChunkRows: 3,
	})
	for _, f := range p.Faults {
		if f.Kind != "pause" && f.Kind != "reset" {
			t.Errorf("there is a %s", f.Kind)
		}
	}
	for n, s := range p.Starts {
		if want := []string{"commit.after=kill@5", ""}[n%2]; s.Failpoints != want || s.Chunk != 3 {
			t.Errorf("start %d is %+v", n, s)
		}
	}
	if _, err := torture.NewPlan(torture.Options{Faults: []string{"flood"}}); err == nil || !strings.Contains(err.Error(), "black-hole") {
		t.Errorf("an unknown fault: %v", err)
	}
}

// TestStepsAreChosenLikeOtherFaults plans runs with and without them.
func TestStepsAreChosenLikeOtherFaults(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{"kill-at-step": "=kill@", "stop-at-step": "=stop@", "cut": ""} {
		p := plan(t, torture.Options{Seed: 1, Duration: time.Minute, Faults: []string{kind}})
		if (len(p.Faults) > 0) != (want == "") {
			t.Errorf("%s: %d faults beside the steps", kind, len(p.Faults))
		}
		found := 0
		for _, s := range p.Starts {
			switch {
			case s.Failpoints == "":
			case want != "" && strings.Contains(s.Failpoints, want):
				found++
			default:
				t.Fatalf("%s: a start with %s", kind, s.Failpoints)
			}
		}
		if (found > 0) != (want != "") {
			t.Errorf("%s: %d starts with a step", kind, found)
		}
	}
}

// TestPlanWithoutAServer has nodes that share a file: no fault strikes a server
// that is not there, nor the way to it.
func TestPlanWithoutAServer(t *testing.T) {
	t.Parallel()
	p := plan(t, torture.Options{Seed: 1, Duration: time.Hour, TTL: 15 * time.Second, Coordination: torture.SQLite})
	kinds := make(map[string]bool)
	for _, f := range p.Faults {
		kinds[f.Kind] = true
		if f.Where == "coordination" || f.Where == "both" {
			t.Fatalf("%s strikes %s", f.Kind, f.Where)
		}
	}
	for _, kind := range []string{"stop-in-commit", "lost-answer", "orphan", "coordination-restart", "coordination-crash", "session-limit"} {
		if kinds[kind] {
			t.Errorf("there is a %s", kind)
		}
		if _, err := torture.NewPlan(torture.Options{Faults: []string{kind}, Coordination: torture.SQLite}); err == nil {
			t.Errorf("%s may be asked for", kind)
		}
	}
	if !kinds["kill"] || !kinds["stop"] || !kinds["cut"] {
		t.Errorf("there are only %v", kinds)
	}
}

package check_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/test/suite/torture/check"
	"github.com/observerd/observerd/test/suite/torture/history"
)

// A run that proves nothing is neither passed nor failed.
func TestRunThatProvesNothingIsVoid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(b *breaker)
		want   string
	}{
		"no stale commit was refused": {func(b *breaker) { b.Counters["observerd_stale_commits_refused_total"] = 0 },
			"observerd_stale_commits_refused_total stayed at 0"},
		"no unknown commit was resolved": {func(b *breaker) {
			delete(b.Counters, `observerd_unknown_commits_resolved_total{outcome="committed"}`)
		}, "observerd_unknown_commits_resolved_total stayed at 0"},
		"a series stayed at 0": {func(b *breaker) {
			b.Meta.Required = []string{`observerd_unknown_commits_resolved_total{outcome="aborted"}`}
		}, `{outcome="aborted"} stayed at 0`},
		"a fault never bit": {func(b *breaker) {
			for i := range b.Faults {
				b.Faults[i].Bit = b.Faults[i].Kind != "kill"
			}
		}, "the fault kill was injected"},
		"a fault was not injected": {func(b *breaker) { b.Meta.Planned = []string{"disk-full"} }, "the fault disk-full was planned and never injected"},
		"a version is missing": {func(b *breaker) {
			b.Writes = slices.DeleteFunc(b.Writes, func(w history.Write) bool { return w.N == 1 && strings.HasPrefix(w.Key, "brief") })
		}, "the record of the source is broken"},
		"a write of another stream": {func(b *breaker) {
			b.Writes = append(b.Writes, history.Write{Stream: "other", Key: "k", N: 1})
		}, "which the run does not name"},
		"a lease is missing": {func(b *breaker) {
			b.Leases = remove(b, b.Leases, func(i int) bool {
				return b.Leases[i].OldTerm == "" && b.endedBefore(b.Leases[i]) != ""
			})
		}, "is broken: lease"},
		"no general lock was handed over": {func(b *breaker) { b.Guarded = nil }, "no general lock went from one holder to another"},
		"no reads":                        {func(b *breaker) { b.Polls = nil }, "no reads of the source"},
		"no lives":                        {func(b *breaker) { b.Lives = nil }, "no lives of processes"},
		"no parts":                        {func(b *breaker) { b.Parts = nil }, "no parts of turns"},
		"no leases":                       {func(b *breaker) { b.Leases = nil }, "no changes of INT_LOCK"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := broken(seeded(1), rand.New(rand.NewPCG(1, 2)).IntN)
			c.damage(b)
			r := check.Check(*b.Run)
			if r.Verdict() != check.Void {
				t.Errorf("the verdict is %v", r)
			}
			if !strings.Contains(strings.Join(r.Void, "\n"), c.want) {
				t.Errorf("got %q, want %q", r.Void, c.want)
			}
		})
	}
	if r := check.Check(history.Run{}); r.Verdict() != check.Void {
		t.Errorf("nothing at all is %s", r)
	}
}

// What a run fails is no less a failure because it lacks something else.
func TestVoidRunCanFail(t *testing.T) {
	t.Parallel()
	b := broken(seeded(1), rand.New(rand.NewPCG(1, 2)).IntN)
	b.Counters = nil
	b.Writes = append(b.Writes, history.Write{Stream: "new", Key: "late", N: 1})
	if r := check.Check(*b.Run); r.Verdict() != check.Failed || len(r.Void) == 0 {
		t.Error(r)
	}
}

// The order of the records says nothing, and nobody's copy of them is changed.
func TestCheckIsAFunctionOfTheHistory(t *testing.T) {
	t.Parallel()
	run := seeded(1)
	before := *broken(run, nil).Run
	want := check.Check(run)
	if !reflect.DeepEqual(run, before) {
		t.Error("the history was changed")
	}
	b := broken(run, nil)
	shuffle(b.Writes)
	shuffle(b.Events)
	shuffle(b.Steps)
	shuffle(b.Leases)
	shuffle(b.Grants)
	shuffle(b.Guarded)
	shuffle(b.Turns)
	shuffle(b.Parts)
	shuffle(b.Polls)
	shuffle(b.Faults)
	shuffle(b.Lives)
	shuffle(b.Acts)
	if got := check.Check(*b.Run); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func shuffle[T any](all []T) {
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
}

func TestReportListsSomeAndCountsAll(t *testing.T) {
	t.Parallel()
	b := broken(seeded(1), nil)
	for i := range 50 {
		b.Writes = append(b.Writes, history.Write{Stream: "new", Key: "late-" + string(rune('A'+i)), N: 1})
	}
	r := check.Check(*b.Run)
	if r.Found[check.Lost] != 50 || len(r.Violations) != 20 {
		t.Errorf("found %d, described %d", r.Found[check.Lost], len(r.Violations))
	}
	if text := r.String(); !strings.Contains(text, "lost: 50 in all") {
		t.Errorf("the report is\n%s", text)
	}
}

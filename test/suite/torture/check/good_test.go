package check_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/observerd/observerd/test/suite/torture/check"
	"github.com/observerd/observerd/test/suite/torture/history"
)

// seeded is a good history that is the same for the same seed.
func seeded(seed uint64) history.Run {
	return good(rand.New(rand.NewPCG(seed, 7)).IntN)
}

// drawn is the good history of a seed that rapid draws: a failure is repeated
// with a few numbers, where the thousands behind it would say nothing. A
// trigger may leave changes out that move no cursor.
func drawn(t *rapid.T) history.Run {
	run := seeded(rapid.Uint64().Draw(t, "seed"))
	if rapid.Bool().Draw(t, "without notes") {
		run.Steps = slices.DeleteFunc(run.Steps, func(s history.Step) bool { return s.OldVersion == s.NewVersion })
	}
	return run
}

func TestGoodHistoriesPass(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := check.Check(drawn(t))
		if r.Verdict() != check.Passed {
			t.Fatal(r)
		}
	})
}

// A good history is only worth something if all that may happen did.
func TestGoodHistoryHasEverything(t *testing.T) {
	t.Parallel()
	run := seeded(1)
	r := check.Check(run)
	for _, count := range []check.Count{
		check.Rows, check.Versions, check.Owed, check.Events, check.Delivered, check.Commits, check.Acquisitions, check.Expiries,
		check.Freed, check.Holds, check.Guarded, check.Handovers, check.Parts, check.Polls, check.Calm, check.Within,
	} {
		if r.Counts[count] == 0 {
			t.Errorf("there are no %s", count)
		}
	}
	if r.Counts[check.Outside] != 0 || r.LongestOverlap == 0 {
		t.Errorf("the counts cannot be: %+v, %s", r.Counts, r.LongestOverlap)
	}
	acts := make(map[string]bool)
	for _, act := range run.Acts {
		acts[act.Action+act.Detail] = true
	}
	if !acts["pause"] || !acts["resume"] || !acts["reset"] || !acts["resetforget"] || !acts["acceptall of them"] {
		t.Errorf("operators did only %v", acts)
	}
}

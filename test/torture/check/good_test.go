package check_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/observerd/observerd/test/torture/check"
	"github.com/observerd/observerd/test/torture/history"
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
		if r.Verdict() != check.Passed || len(r.Unchecked) > 0 {
			t.Fatal(r)
		}
	})
}

// A good history is only worth something if all that may happen did.
func TestGoodHistoryHasEverything(t *testing.T) {
	t.Parallel()
	n := check.Check(seeded(1)).Counts
	for name, count := range map[string]int{
		"keys": n.Keys, "versions": n.Versions, "owed": n.Owed, "missed": n.Missed, "events": n.Events, "skipped": n.Skipped,
		"delivered": n.Delivered["file"], "repeated": n.Repeated["stdout"], "commits": n.Commits, "notes": n.Notes, "resets": n.Resets,
		"pauses": n.Pauses, "acquisitions": n.Acquisitions, "expiries": n.Expiries, "freed dead": n.FreedDead, "freed disturbed": n.FreedDisturbed,
		"turns": n.Turns, "parts": n.Parts, "polls": n.Polls, "whole polls": n.WholePolls,
		"overlaps": n.Overlaps.Within, "paired": n.Overlaps.Paired, "longest": int(n.Overlaps.Longest),
	} {
		if count == 0 {
			t.Errorf("there are no %s", name)
		}
	}
	if n.Overlaps.Outside != 0 || n.WholePolls == n.Polls || n.FreedDisturbed == n.FreedDead {
		t.Errorf("the counts cannot be: %+v", n)
	}
}

package check_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/observerd/observerd/test/torture/check"
	"github.com/observerd/observerd/test/torture/history"
)

// patience is what a judgement may take on a loaded machine.
const patience = time.Minute

func TestGoodHistoriesAreLinear(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		if l := check.Linear(drawn(t), patience); !l.OK() || l.Operations == 0 || l.Locks != 3 {
			t.Fatalf("%+v", l)
		}
	})
}

// The register finds by itself what other rules find by looking for it.
func TestLinearNoticesStaleWrites(t *testing.T) {
	t.Parallel()
	found := []string{
		"another holds the lock", "nobody holds the lock", "the lease has expired", "a note without the lock",
		"a term that was never granted", "an earlier token after a later one",
		"a term comes back", "tokens of a lock run backwards", "a token is given twice",
	}
	all := allBad()
	for _, name := range found {
		i := slices.IndexFunc(all, func(c bad) bool { return c.name == name })
		if i < 0 {
			t.Fatalf("there is no way to break a history called %q", name)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := broken(seeded(1), rand.New(rand.NewPCG(1, 2)).IntN)
			if all[i].disturb(b); b.missing {
				t.Fatal("the good history has nothing to break in this way")
			}
			l := check.Linear(*b.Run, patience)
			if len(l.Violations) != 1 || len(l.Unknown) > 0 {
				t.Errorf("found %+v", l.Violations)
			}
			if r := check.Check(*b.Run).With(l); r.Verdict() != check.Failed || r.Found[check.NotLinear] != 1 {
				t.Error(r)
			}
		})
	}
}

// A node sleeps with a commit in its hands. Another takes its lock and renews
// it, which shows that the grant was done; then the commit is accepted.
func TestLinearNoticesStaleTermAfterNewerGrant(t *testing.T) {
	t.Parallel()
	run := slept()
	if l := check.Linear(run, patience); !l.OK() {
		t.Fatalf("the commit in time is refused: %+v", l)
	}
	run.Steps[0].At = second(5)
	if l := check.Linear(run, patience); len(l.Violations) != 1 {
		t.Errorf("the stale commit is found fine: %+v", l)
	}
	// It may still have been in time while nobody knows whether the grant was.
	run.Leases = run.Leases[:2]
	run.Steps[0].At = second(2)
	if l := check.Linear(run, patience); !l.OK() {
		t.Errorf("a commit that may have come before the grant is refused: %+v", l)
	}
}

func second(n int) time.Time { return time.Date(2026, 5, 6, 0, 0, n, 0, time.UTC) }

// slept is a lock that passes from one node to another, and a commit of the
// first.
func slept() history.Run {
	return history.Run{
		Meta: history.Meta{TTL: ttl, Streams: []history.Stream{{Name: "s", Type: "t", Mode: history.ModeNew, LockKey: "l"}}},
		Leases: []history.Lease{
			{ID: 1, Key: "l", NewTerm: "old", At: second(0), Node: "a"},
			{ID: 2, Key: "l", OldTerm: "old", NewTerm: "new", At: second(3), Node: "b"},
			{ID: 3, Key: "l", OldTerm: "new", NewTerm: "new", At: second(4), Node: "b"},
		},
		Grants: []history.Grant{
			{ID: 1, Key: "l", Term: "old", Fence: 1, Node: "a", At: second(0)},
			{ID: 2, Key: "l", Term: "new", Fence: 2, Node: "b", At: second(3)},
		},
		Steps: []history.Step{
			{ID: 1, Stream: "s", NewVersion: 1, NewSeq: 1, Node: "a", Holder: "a", HolderTerm: "old", At: second(1)},
		},
	}
}

// What could not be judged in time is not fine.
func TestLinearOutOfTimeIsUnknown(t *testing.T) {
	t.Parallel()
	run := seeded(1)
	l := check.Linear(run, time.Nanosecond)
	if l.OK() || len(l.Unknown) != 3 {
		t.Errorf("got %+v", l)
	}
	if r := check.Check(run).With(l); r.Verdict() != check.Void {
		t.Error(r)
	}
}

// A long history is cut, and the fault in its last part found.
func TestLinearJudgesLongHistoriesInParts(t *testing.T) {
	t.Parallel()
	run := history.Run{Meta: history.Meta{TTL: ttl, Streams: []history.Stream{{Name: "s", LockKey: "l"}}}}
	for i := range int64(6000) {
		term, at := fmt.Sprintf("term-%d", i), second(int(4*i))
		run.Leases = append(run.Leases,
			history.Lease{ID: 3 * i, Key: "l", NewTerm: term, At: at, Node: "a"},
			history.Lease{ID: 3*i + 1, Key: "l", OldTerm: term, NewTerm: term, At: at.Add(time.Second), Node: "a"},
			history.Lease{ID: 3*i + 2, Key: "l", OldTerm: term, At: at.Add(2 * time.Second), Node: "a"})
		run.Grants = append(run.Grants, history.Grant{ID: i, Key: "l", Term: term, Fence: i + 1, Node: "a", At: at})
	}
	began := time.Now()
	l := check.Linear(run, patience)
	t.Logf("%d operations in %s", l.Operations, time.Since(began))
	if !l.OK() || l.Operations != 18000 {
		t.Errorf("got %+v", l)
	}
	run.Grants[5990].Fence = run.Grants[10].Fence
	if l := check.Linear(run, patience); len(l.Violations) != 1 {
		t.Errorf("an old token was overlooked: %+v", l)
	}
}

func TestLinearIsDrawn(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]history.Run{"good": seeded(1), "empty": {}} {
		var page strings.Builder
		if err := check.Linear(run, patience).Visualize(&page); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page.String(), "<html") {
			t.Errorf("the %s history makes no page", name)
		}
	}
}

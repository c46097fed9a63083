package check_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/observerd/observerd/test/suite/torture/check"
	"github.com/observerd/observerd/test/suite/torture/history"
)

// bad is a way to break a good history.
type bad struct {
	name string
	// kind must be among what is found; only says that nothing else may.
	kind    check.Kind
	only    bool
	disturb func(b *breaker)
}

func allBad() []bad {
	var all []bad
	for _, part := range [][]bad{badRows(), badEvents(), badCursors(), badHolders(), badLeases(), badHolds(), badTurns(), badSinks()} {
		all = append(all, part...)
	}
	return all
}

func TestCheckerNoticesEachFault(t *testing.T) {
	t.Parallel()
	run := seeded(2)
	names := make(map[string]bool)
	for _, c := range allBad() {
		if names[c.name] {
			t.Errorf("%q is there twice", c.name)
		}
		names[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := broken(run, rand.New(rand.NewPCG(1, 2)).IntN)
			c.disturb(b)
			if b.missing {
				t.Fatal("the good history has nothing to break in this way")
			}
			c.judge(t, *b.Run)
		})
	}
	if len(names) < 25 {
		t.Errorf("there are only %d ways to break a history", len(names))
	}
}

func TestCheckerNoticesEachFaultInAnyHistory(t *testing.T) {
	t.Parallel()
	all := allBad()
	rapid.Check(t, func(t *rapid.T) {
		run := drawn(t)
		for range 5 {
			c := all[rapid.IntRange(0, len(all)-1).Draw(t, "way")]
			b := broken(run, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "which"), 2)).IntN)
			if c.disturb(b); b.missing {
				continue
			}
			t.Log(c.name)
			c.judge(t, *b.Run)
		}
	})
}

// Every kind of violation is found in at least one way.
func TestEveryKindIsBroken(t *testing.T) {
	t.Parallel()
	kinds := make(map[check.Kind]bool)
	for _, c := range allBad() {
		kinds[c.kind] = true
	}
	for _, kind := range check.Kinds() {
		if !kinds[kind] {
			t.Errorf("nothing shows that %s is found", kind)
		}
	}
}

func (c bad) judge(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, run history.Run) {
	t.Helper()
	r := check.Check(run)
	switch {
	case r.Verdict() != check.Failed:
		t.Fatalf("the verdict is %s", r)
	case r.Found[c.kind] == 0:
		t.Fatalf("want %s, found %v", c.kind, r)
	case c.only && len(r.Found) > 1:
		t.Fatalf("want %s alone, found %v", c.kind, r)
	}
}

// A process that is stopped while it starts may load its configuration when it goes on.
func TestAStoppedStartIsLate(t *testing.T) {
	t.Parallel()
	b := broken(seeded(2), rand.New(rand.NewPCG(1, 2)).IntN)
	flaps := badCursors()[0]
	flaps.disturb(b)
	flaps.judge(t, *b.Run)
	for _, l := range b.Lives {
		b.Faults = append(b.Faults, history.Fault{Kind: "stop", Node: l.Node, Begin: l.Began.Add(time.Second), End: l.Began.Add(time.Hour), Bit: true})
	}
	for _, v := range check.Check(*b.Run).Violations {
		if v.Kind == flaps.kind {
			t.Errorf("an hour for the start is not enough: %s", v.What)
		}
	}
}

package check_test

import (
	"slices"
	"time"

	"github.com/observerd/observerd/test/suite/torture/check"
	"github.com/observerd/observerd/test/suite/torture/history"
)

// badHolds are faults of general locks.
func badHolds() []bad {
	return []bad{
		{"a program writes under a lock that another has", check.StaleWrite, true, func(b *breaker) {
			before, now := b.handover()
			before.Committed = now.At.Add(time.Millisecond)
		}},
		{"a lock is taken from a program that has not left", check.StolenHold, true, func(b *breaker) {
			before, _ := b.handover()
			b.Guarded = slices.DeleteFunc(b.Guarded, func(g history.Guarded) bool { return g.Term == before.Term && g.Kind == history.Left })
		}},
		{"the lease of a dead program is over by the TTL of another", check.StolenHold, true, func(b *breaker) { b.longerBefore("kill-program") }},
		{"the lease of a sleeper is over by the TTL of another", check.StolenHold, true, func(b *breaker) { b.longerBefore("stop-program") }},
		{"a program trusts its lease when another has the lock", check.StaleWrite, true, func(b *breaker) {
			before, now := b.handover()
			row := *before
			row.Kind, row.Began = history.Bare, now.At.Add(time.Second)
			b.Guarded = append(b.Guarded, row)
			b.Faults = slices.DeleteFunc(b.Faults, func(f history.Fault) bool { return f.Kind == "stop-program" })
			b.Meta.Planned = nil
		}},
		{"a token of a general lock is given twice", check.FenceBackwards, true, func(b *breaker) {
			before, now := b.handover()
			b.refence(now.Term, before.Fence)
		}},
		{"tokens of a general lock run backwards", check.FenceBackwards, false, func(b *breaker) {
			before, now := b.handover()
			first, second := before.Fence, now.Fence
			b.refence(before.Term, second)
			b.refence(now.Term, first)
		}},
	}
}

// handover chooses two rows: the last of a term, and the first of an exclusive one that
// follows soon.
func (b *breaker) handover() (before, now *history.Guarded) {
	last := func(i int) int {
		for j := i - 1; j >= 0; j-- {
			if g := b.Guarded[j]; g.Kind == history.Wrote && g.Key == b.Guarded[i].Key {
				return j
			}
		}
		return -1
	}
	i := place(b, b.Guarded, func(i int) bool {
		g, j := b.Guarded[i], last(i)
		return g.Kind == history.Wrote && g.Mode == "exclusive" && j >= 0 && b.Guarded[j].Term != g.Term && g.At.Sub(b.Guarded[j].At) < ttl/10
	})
	if i < 0 {
		return new(history.Guarded), new(history.Guarded)
	}
	return &b.Guarded[last(i)], &b.Guarded[i]
}

// refence gives the rows of a term another token.
func (b *breaker) refence(term string, fence int64) {
	for i := range b.Guarded {
		if b.Guarded[i].Term == term {
			b.Guarded[i].Fence = fence
		}
	}
}

// longerBefore makes the last lease of a program before a fault of that kind a longer one.
func (b *breaker) longerBefore(kind string) {
	f := pick(b, b.Faults, func(i int) bool { return b.Faults[i].Kind == kind })
	for i := range b.Guarded {
		if g := &b.Guarded[i]; g.Node == f.Node && g.Committed.Before(f.End) && f.Begin.Sub(g.Committed) < ttl/10 {
			g.TTL = 10 * ttl
		}
	}
}

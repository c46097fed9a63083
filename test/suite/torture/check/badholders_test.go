package check_test

import (
	"time"

	"github.com/observerd/observerd/test/suite/torture/check"
	"github.com/observerd/observerd/test/suite/torture/history"
)

// badHolders are writes by those who do not hold the lock, and reads beside
// another's.
func badHolders() []bad {
	return []bad{
		{"another holds the lock", check.StaleCommit, true, func(b *breaker) {
			s := b.step(isCommit)
			s.Holder = "other"
		}},
		{"nobody holds the lock", check.StaleCommit, true, func(b *breaker) {
			s := b.step(isCommit)
			s.Holder, s.HolderTerm = "", ""
		}},
		{"the lease has expired", check.StaleCommit, true, func(b *breaker) { b.step(isCommit).Expired = true }},
		{"a note without the lock", check.StaleCommit, true, func(b *breaker) {
			b.step(func(s history.Step) bool { return s.Node != "" && s.NewVersion == s.OldVersion }).Holder = "other"
		}},
		{"a term that was never granted", check.StaleCommit, true, func(b *breaker) { b.step(isCommit).HolderTerm = "made-up" }},
		{"an earlier token after a later one", check.StaleCommit, true, func(b *breaker) {
			s := b.step(func(s history.Step) bool { return isCommit(s) && b.earlierTerm(s) != "" })
			if !b.missing {
				s.HolderTerm = b.earlierTerm(*s)
			}
		}},
		{"a commit behind the end of its lease", check.StaleCommit, false, func(b *breaker) {
			s := b.step(func(s history.Step) bool { return isCommit(s) && !b.leaseEnd(s.HolderTerm).IsZero() })
			s.At = b.leaseEnd(s.HolderTerm).Add(time.Millisecond)
		}},
		{"two nodes read at once", check.Overlap, true, func(b *breaker) {
			p := *pick(b, b.Polls, func(i int) bool { return !b.near(b.Polls[i].Begin) })
			p.Node = "other"
			p.Begin = p.Begin.Add(time.Millisecond)
			b.Polls = append(b.Polls, p)
		}},
		{"two nodes read at once while an operator resets", check.Overlap, true, func(b *breaker) {
			p := *pick(b, b.Polls, func(i int) bool { return !b.near(b.Polls[i].Begin) })
			p.Node = "other"
			p.Begin = p.Begin.Add(time.Millisecond)
			b.Polls = append(b.Polls, p)
			b.Faults = append(b.Faults, history.Fault{Kind: "reset", Begin: p.Begin.Add(-time.Second), End: p.End, Bit: true})
		}},
		{"one node reads twice at once", check.Overlap, true, func(b *breaker) {
			p := *pick(b, b.Polls, func(i int) bool { return !b.near(b.Polls[i].Begin) })
			p.Begin = p.Begin.Add(time.Millisecond)
			b.Polls = append(b.Polls, p)
		}},
		{"no fault explains a read", check.Overlap, false, func(b *breaker) {
			stop := pick(b, b.Faults, func(i int) bool { return b.Faults[i].Kind == "stop" })
			stop.Begin = b.Meta.Began.Add(-time.Hour)
			stop.End = stop.Begin
			for i := range b.Faults {
				b.Faults[i].Begin, b.Faults[i].End = stop.Begin, stop.End
			}
		}},
		{"a sleeper commits when it wakes", check.StaleCursor, false, func(b *breaker) {
			stop := pick(b, b.Faults, func(i int) bool { return b.Faults[i].Kind == "stop" && b.replaced(b.Faults[i]) != nil })
			if b.missing {
				return
			}
			// The last commit within the fault was the sleeper's.
			b.replaced(*stop).Node = stop.Node
		}},
	}
}

// leaseEnd is when a term left INT_LOCK; zero for not yet.
func (b *breaker) leaseEnd(term string) (end time.Time) {
	for _, l := range b.Leases {
		if l.OldTerm == term && l.NewTerm != term {
			end = l.At
		}
	}
	return end
}

// earlierTerm is that of an earlier commit of the stream, not of the one just
// before; empty for none.
func (b *breaker) earlierTerm(s history.Step) string {
	for before := b.neighbour(&s, -1); before != nil; before = b.neighbour(before, -1) {
		if before.HolderTerm != "" && before.HolderTerm != s.HolderTerm {
			return before.HolderTerm
		}
		if before.Node != "" && before.HolderTerm == s.HolderTerm {
			continue
		}
	}
	return ""
}

// near reports whether a fault might explain what happens at that instant.
func (b *breaker) near(at time.Time) bool {
	for _, f := range b.Faults {
		if !at.Before(f.Begin) && !at.After(f.End.Add(ttl+6*time.Second)) {
			return true
		}
	}
	return false
}

// replaced is the second of at least two commits, within a fault, by the node
// that took over.
func (b *breaker) replaced(f history.Fault) *history.Step {
	n := 0
	for i := range b.Steps {
		s := &b.Steps[i]
		if !isCommit(*s) || s.Node == f.Node || !s.At.After(f.Begin) || s.At.After(f.End) {
			continue
		}
		if n++; n == 2 {
			return s
		}
	}
	return nil
}

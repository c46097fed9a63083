package check_test

import (
	"time"

	"github.com/observerd/observerd/test/suite/torture/check"
	"github.com/observerd/observerd/test/suite/torture/history"
)

// badLeases are faults of INT_LOCK and of the tokens.
func badLeases() []bad {
	renewal := func(l history.Lease) bool { return l.OldTerm != "" && l.OldTerm == l.NewTerm }
	steal := func(l history.Lease) bool { return l.OldTerm != "" && l.NewTerm != "" && l.OldTerm != l.NewTerm }
	return []bad{
		{"a lease is stolen", check.StolenLease, true, func(b *breaker) {
			l := b.lease(steal)
			l.OldTouched = l.NewTouched.Add(-ttl / 4)
		}},
		{"another gives a lease back", check.StolenLease, true, func(b *breaker) {
			b.lease(func(l history.Lease) bool { return b.ends(l) && b.death(l) == nil }).Node = "other"
		}},
		{"a lease is freed, and nobody says why", check.StolenLease, true, func(b *breaker) {
			if g := b.death(*b.lease(func(l history.Lease) bool { return b.ends(l) && b.death(l) != nil })); g != nil {
				g.Liveness = "session"
			}
		}},
		{"an expired lease is renewed", check.ResurrectedLease, true, func(b *breaker) {
			l := b.lease(renewal)
			l.OldTouched = l.NewTouched.Add(-ttl - time.Second)
		}},
		{"a term comes back", check.ResurrectedLease, false, func(b *breaker) {
			l := b.lease(func(l history.Lease) bool { return l.NewTerm != l.OldTerm && l.NewTerm != "" && b.endedBefore(l) != "" })
			b.rename(l.NewTerm, b.endedBefore(*l))
		}},
		{"a healthy node is found dead", check.FreedAlive, false, func(b *breaker) {
			place(b, b.Faults, func(i int) bool { return b.Faults[i].Kind == "blackhole" })
			for i := range b.Faults {
				b.Faults[i].Begin = b.Meta.Began.Add(-time.Hour)
				b.Faults[i].End = b.Faults[i].Begin
			}
		}},
		{"tokens of a lock run backwards", check.FenceBackwards, false, func(b *breaker) { b.grant().Fence = 0 }},
		{"a token is given twice", check.FenceBackwards, false, func(b *breaker) {
			g := b.grant()
			for _, o := range b.Grants {
				if o.Key == g.Key && o.ID < g.ID {
					g.Fence = o.Fence
				}
			}
		}},
	}
}

// grant chooses one that is neither the first of its lock nor only a note.
func (b *breaker) grant() *history.Grant {
	return pick(b, b.Grants, func(i int) bool {
		for _, o := range b.Grants[:i] {
			if o.Key == b.Grants[i].Key && o.Term != b.Grants[i].Term {
				return b.Grants[i].Liveness != "gone"
			}
		}
		return false
	})
}

// ends reports whether a lease that lives is deleted.
func (b *breaker) ends(l history.Lease) bool {
	return l.NewTerm == "" && l.At.Sub(l.OldTouched) < ttl*3/4
}

// death is the note that the holder of a lease was found dead.
func (b *breaker) death(l history.Lease) *history.Grant {
	for i := range b.Grants {
		if g := &b.Grants[i]; g.Xid == l.Xid && g.Liveness == "gone" {
			return g
		}
	}
	return nil
}

// endedBefore is a term of the lock that had ended before; empty for none.
func (b *breaker) endedBefore(l history.Lease) string {
	for _, o := range b.Leases {
		if o.Key == l.Key && o.ID < l.ID && o.OldTerm != "" && o.OldTerm != o.NewTerm {
			return o.OldTerm
		}
	}
	return ""
}

// rename gives a term of INT_LOCK another name.
func (b *breaker) rename(from, to string) {
	for i := range b.Leases {
		l := &b.Leases[i]
		if l.OldTerm == from {
			l.OldTerm = to
		}
		if l.NewTerm == from {
			l.NewTerm = to
		}
	}
}

package check

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// term is one acquisition of a general lock, as its guarded rows show it.
type term struct {
	*history.Guarded // its first row
	// written is when the last of its guarded rows was committed, and until when the lease
	// lasts that was renewed with those that were written in trust.
	written, until time.Time
	// bare is when it trusted its lease last and wrote without a guard.
	bare time.Time
	// left is when its holder noted that it wants the lock no more; zero for never.
	left time.Time
}

// reaches is how long the term says something about others.
func (t *term) reaches() time.Time { return later(later(t.written, t.until), t.bare) }

// guarded judges general locks by what was written under them.
func (c *checker) guarded() {
	terms := c.terms()
	for _, key := range slices.Sorted(maps.Keys(terms)) {
		c.key(key, terms[key])
	}
	if len(c.run.Meta.Programs) > 0 && c.report.Counts[Handovers] == 0 {
		c.void("no general lock went from one holder to another that excludes it")
	}
}

// terms are those of each key that wrote, by their fencing tokens.
func (c *checker) terms() map[string][]*term {
	byTerm := make(map[[2]string]*term)
	left := make(map[[2]string]time.Time)
	for i := range c.run.Guarded {
		g := &c.run.Guarded[i]
		id := [2]string{g.Key, g.Term}
		if g.Kind == history.Left {
			if at, ok := left[id]; !ok || g.At.Before(at) {
				left[id] = g.At
			}
			continue
		}
		c.report.Counts[Guarded]++
		t := byTerm[id]
		switch {
		case t == nil:
			t = &term{Guarded: g}
			byTerm[id] = t
		case g.At.Before(t.At):
			t.Guarded = g
		}
		if g.Kind == history.Bare {
			t.bare = later(t.bare, g.Began)
			continue
		}
		t.written = later(t.written, g.Committed)
		if g.Trusted {
			t.until = later(t.until, g.Began.Add(g.TTL))
		}
	}
	terms := make(map[string][]*term)
	for id, t := range byTerm {
		t.left = left[id]
		terms[t.Key] = append(terms[t.Key], t)
	}
	for _, of := range terms {
		slices.SortFunc(of, func(a, b *term) int {
			return cmp.Or(cmp.Compare(a.Fence, b.Fence), a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
		})
		c.report.Counts[Holds] += len(of)
	}
	return terms
}

// key compares each term of a key with those of lesser tokens that exclude it, as far back
// as they reach.
func (c *checker) key(key string, terms []*term) {
	var open []*term
	first := firsts(terms)
	for i, now := range terms {
		open = slices.DeleteFunc(open, func(o *term) bool { return o.reaches().Before(first[i]) })
		handed := false
		for _, before := range open {
			if excludes(before.Mode, now.Mode) {
				c.succeeds(key, before, now)
				handed = true
			}
		}
		if handed {
			c.report.Counts[Handovers]++
		}
		open = append(open, now)
	}
}

// firsts are when the first of the terms from each on wrote.
func firsts(terms []*term) []time.Time {
	first := make([]time.Time, len(terms))
	for i := len(terms) - 1; i >= 0; i-- {
		first[i] = terms[i].At
		if i+1 < len(terms) && first[i+1].Before(first[i]) {
			first[i] = first[i+1]
		}
	}
	return first
}

// succeeds judges two terms that exclude each other. A lease that was renewed in a
// transaction is nobody else's until that has ended, nor until its TTL is over unless its
// holder has left: that it has died, or was cut off, ends no lease. Nor does its holder trust
// it any longer, unless it was stopped and wakes.
func (c *checker) succeeds(key string, before, now *term) {
	switch {
	case now.Fence == before.Fence:
		c.blame(FenceBackwards, key, "", now.At, "row %d: the token %d was given before, with that of row %d", now.ID, now.Fence, before.ID)
	case before.At.After(now.At):
		c.blame(FenceBackwards, key, "", now.At, "row %d: the token %d came after %d, of row %d", before.ID, before.Fence, now.Fence, now.ID)
	case before.written.After(now.At):
		c.blame(StaleWrite, key, "", now.At, "%s, %s, wrote with the token %d after %s, %s, had it with %d: row %d",
			before.Node, before.Mode, before.Fence, now.Node, now.Mode, now.Fence, now.ID)
	case before.bare.After(now.At.Add(tolerance)) && !c.stopped(before, now.At):
		c.blame(StaleWrite, key, "", now.At, "%s, %s, trusted its lease with the token %d, and wrote, %s after %s, %s, had it with %d: row %d",
			before.Node, before.Mode, before.Fence, before.bare.Sub(now.At).Round(time.Millisecond), now.Node, now.Mode, now.Fence, now.ID)
	case !before.until.After(now.At.Add(tolerance)):
		// It has ended by itself.
	case !before.left.IsZero() && !before.left.After(now.At):
	default:
		c.blame(StolenHold, key, "", now.At, "row %d: %s, %s, had it %s before the lease of %s, %s, was over, which had not left",
			now.ID, now.Node, now.Mode, before.until.Sub(now.At).Round(time.Millisecond), before.Node, before.Mode)
	}
}

// stopped reports whether the program stood still near the moment at which another had its lock.
func (c *checker) stopped(t *term, at time.Time) bool {
	return slices.ContainsFunc(c.run.Faults, func(f history.Fault) bool {
		return f.Kind == "stop-program" && f.Node == t.Node && !f.Begin.After(at) && later(f.Begin, f.End).Add(c.settle).After(at)
	})
}

// excludes is the matrix of modes, in the checker's own words.
func excludes(a, b string) bool {
	return a == "exclusive" || b == "exclusive" || a == "shared" && b == "intent-exclusive" || a == "intent-exclusive" && b == "shared"
}

package check

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// lockRecord is all that is known of one lock.
type lockRecord struct {
	key    string
	leases []*history.Lease // by id
	grants []*history.Grant // by id
	// deaths are the terms that a transaction ended because their holder had
	// died.
	deaths map[string]string
}

func (c *checker) indexLocks() {
	byKey := make(map[string]*lockRecord)
	lock := func(key string) *lockRecord {
		if byKey[key] == nil {
			byKey[key] = &lockRecord{key: key, deaths: make(map[string]string)}
		}
		return byKey[key]
	}
	c.endOf = make(map[string]time.Time)
	for i := range c.run.Leases {
		lease := &c.run.Leases[i]
		l := lock(lease.Key)
		l.leases = append(l.leases, lease)
		if lease.OldTerm != "" && lease.OldTerm != lease.NewTerm {
			c.endOf[lease.OldTerm] = lease.At
		}
	}
	c.grantOf = make(map[string]*history.Grant)
	for i := range c.run.Grants {
		g := &c.run.Grants[i]
		l := lock(g.Key)
		l.grants = append(l.grants, g)
		if c.grantOf[g.Term] == nil {
			c.grantOf[g.Term] = g
		}
		if g.Liveness == "gone" {
			l.deaths[g.Xid] = g.Term
		}
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		l := byKey[key]
		slices.SortStableFunc(l.leases, func(a, b *history.Lease) int { return cmp.Compare(a.ID, b.ID) })
		slices.SortStableFunc(l.grants, func(a, b *history.Grant) int { return cmp.Compare(a.ID, b.ID) })
		c.locks = append(c.locks, l)
	}
}

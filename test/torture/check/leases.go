package check

import (
	"fmt"
	"time"

	"github.com/observerd/observerd/test/torture/history"
)

// lease follows the row of one lock: who had it, until when, and who ended it.
func (c *checker) lease(l *lockRecord) {
	ended := make(map[string]bool)
	for i, now := range l.leases {
		if i > 0 && now.OldTerm != l.leases[i-1].NewTerm {
			c.void("the record of the lock %s is broken: lease %d does not begin where the one before it ended", l.key, now.ID)
			return
		}
		age := l.age(i)
		switch {
		case now.OldTerm == "":
		case now.NewTerm == "":
			c.released(l, now, age)
		case now.NewTerm == now.OldTerm:
			if age > l.ttl(c, now)+c.demands.Tolerance {
				c.blameLease(ResurrectedLease, l, i, "it was renewed %s after it had last been; its TTL is %s", age, l.ttl(c, now))
			}
		case age < l.ttl(c, now)-c.demands.Tolerance:
			c.blameLease(StolenLease, l, i, "another took it %s after it had last been renewed; its TTL is %s", age, l.ttl(c, now))
		default:
			c.report.Counts[Expiries]++
		}
		if ended[now.NewTerm] {
			c.blameLease(ResurrectedLease, l, i, "a term that had ended came back")
		}
		if now.OldTerm != "" && now.OldTerm != now.NewTerm {
			ended[now.OldTerm] = true
		}
	}
}

// released judges the end of a lease whose row was deleted: by its holder, by
// anybody when it had expired, or by those who found its holder dead.
func (c *checker) released(l *lockRecord, now *history.Lease, age time.Duration) {
	grant := l.byTerm[now.OldTerm]
	switch {
	case now.Node == "" && !c.knowsWhoReleased():
		c.skip("who ended a lease: no change of INT_LOCK names the node that made it")
	case grant != nil && grant.Node == now.Node:
	case age >= l.ttl(c, now)-c.demands.Tolerance:
		c.report.Counts[Expiries]++
	case l.foundDead(now):
		c.freed(l, grant, now)
	default:
		c.blame(Violation{
			Kind: StolenLease, Subject: l.key,
			What: fmt.Sprintf("%s deleted it %s after its holder had last renewed it", nobody(now.Node), age),
			IDs:  []string{leaseID(now), "transaction " + now.Xid}, From: now.OldTouched, To: now.At,
		})
	}
}

func nobody(node string) string {
	if node == "" {
		return "a stranger"
	}
	return node
}

func (c *checker) knowsWhoReleased() bool {
	for i := range c.run.Leases {
		if c.run.Leases[i].Node != "" {
			return true
		}
	}
	return false
}

// freed judges a lease that was ended because its holder was found dead.
func (c *checker) freed(l *lockRecord, grant *history.Grant, now *history.Lease) {
	c.report.Counts[Freed]++
	life := c.lifeAt(grant.Node, grant.At)
	switch {
	case life == nil:
		c.skip("whether those found dead had died: the life of a process is not known")
	case !life.Ended.IsZero() && !life.Ended.After(now.At.Add(c.demands.Tolerance)):
	case c.disturbed(grant.Node, now.At): // It lives, but was cut off.
	default:
		c.blame(Violation{
			Kind: FreedAlive, Subject: l.key, What: fmt.Sprintf("%s freed it as a dead node's, but %s lived, and no fault was near", nobody(now.Node), grant.Node),
			IDs: []string{grantID(grant), leaseID(now)}, From: grant.At, To: now.At,
		})
	}
}

// lifeAt is the process of the node that took a lock at that instant.
func (c *checker) lifeAt(node string, at time.Time) (found *history.Life) {
	for i := range c.run.Lives {
		life := &c.run.Lives[i]
		if life.Node == node && !life.Began.After(at) && (found == nil || life.Began.After(found.Began)) {
			found = life
		}
	}
	return found
}

// age is how long the lease had run at its i-th change since its last renewal.
func (l *lockRecord) age(i int) time.Duration {
	now := l.leases[i]
	before, after := now.OldTouched, now.NewTouched
	if before.IsZero() && i > 0 {
		before = l.leases[i-1].At
	}
	if after.IsZero() {
		after = now.At
	}
	return after.Sub(before)
}

// ttl is that of the lease before the change.
func (l *lockRecord) ttl(c *checker, now *history.Lease) time.Duration {
	if g := l.byTerm[now.OldTerm]; g != nil && g.TTL > 0 {
		return g.TTL
	}
	return c.run.Meta.TTL
}

// foundDead reports whether the transaction noted that the holder had died.
func (l *lockRecord) foundDead(now *history.Lease) bool {
	return l.deaths[now.Xid] == now.OldTerm && now.OldTerm != ""
}

func (c *checker) blameLease(kind Kind, l *lockRecord, i int, format string, args ...any) {
	v := Violation{Kind: kind, Subject: l.key, What: fmt.Sprintf(format, args...), IDs: []string{leaseID(l.leases[i])}, To: l.leases[i].At}
	if i > 0 {
		v.IDs = []string{leaseID(l.leases[i-1]), leaseID(l.leases[i])}
		v.From = l.leases[i-1].At
	}
	c.blame(v)
}

// tokens finds fencing tokens of a lock that do not grow from one grant to the
// next.
func (c *checker) tokens(l *lockRecord) {
	var before *history.Grant
	for _, g := range l.grants {
		switch {
		case before != nil && g.Term == before.Term && g.Fence == before.Fence:
			continue // A note about the holder.
		case before != nil && g.Fence <= before.Fence:
			c.blame(Violation{
				Kind: FenceBackwards, Subject: l.key, What: fmt.Sprintf("the token %d was given after %d", g.Fence, before.Fence),
				IDs: []string{grantID(before), grantID(g)}, From: before.At, To: g.At,
			})
		}
		c.report.Counts[Acquisitions]++
		before = g
	}
}

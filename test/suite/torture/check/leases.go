package check

import (
	"time"

	"github.com/observerd/observerd/test/suite/torture/history"
)

// lease follows the row of one lock: who had it, until when, and who ended it.
func (c *checker) lease(l *lockRecord) {
	ended := make(map[string]bool)
	for i, now := range l.leases {
		if i > 0 && now.OldTerm != l.leases[i-1].NewTerm {
			c.void("the record of the lock %s is broken: lease %d does not begin where the one before it ended", l.key, now.ID)
			return
		}
		age := age(now)
		switch {
		case now.OldTerm == "":
		case now.NewTerm == "":
			c.released(l, now, age)
		case now.NewTerm == now.OldTerm:
			if age > c.ttl(now)+tolerance {
				c.blameLease(ResurrectedLease, now, "it was renewed %s after it had last been; its TTL is %s", age, c.ttl(now))
			}
		case age < c.ttl(now)-tolerance:
			c.blameLease(StolenLease, now, "another took it %s after it had last been renewed; its TTL is %s", age, c.ttl(now))
		default:
			c.report.Counts[Expiries]++
		}
		if ended[now.NewTerm] {
			c.blameLease(ResurrectedLease, now, "a term that had ended came back")
		}
		if now.OldTerm != "" && now.OldTerm != now.NewTerm {
			ended[now.OldTerm] = true
		}
	}
}

// released judges the end of a lease whose row was deleted: by its holder, by
// anybody when it had expired, or by those who found its holder dead.
func (c *checker) released(l *lockRecord, now *history.Lease, age time.Duration) {
	grant := c.grantOf[now.OldTerm]
	switch {
	case grant != nil && grant.Node == now.Node:
	case age >= c.ttl(now)-tolerance:
		c.report.Counts[Expiries]++
	case l.foundDead(now):
		c.freed(grant, now)
	default:
		c.blameLease(StolenLease, now, "%s deleted it %s after its holder had last renewed it", nobody(now.Node), age)
	}
}

func nobody(node string) string {
	if node == "" {
		return "a stranger"
	}
	return node
}

// freed judges a lease that was ended because its holder was found dead.
func (c *checker) freed(grant *history.Grant, now *history.Lease) {
	c.report.Counts[Freed]++
	life := c.lifeAt(grant.Node, grant.At)
	switch {
	case life == nil:
		c.void("of %s, which lost lease %d as a dead node, no life is known", grant.Node, now.ID)
	case !life.Ended.IsZero() && !life.Ended.After(now.At.Add(tolerance)):
	case c.disturbed(grant.Node, now.At): // It lives, but was cut off.
	default:
		c.blameLease(FreedAlive, now, "%s freed it as a dead node's, but %s lived, and no fault was near", nobody(now.Node), grant.Node)
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

// age is how long the lease had run at its change since its last renewal.
func age(now *history.Lease) time.Duration {
	if now.NewTouched.IsZero() {
		return now.At.Sub(now.OldTouched)
	}
	return now.NewTouched.Sub(now.OldTouched)
}

// ttl is that of the lease before the change.
func (c *checker) ttl(now *history.Lease) time.Duration {
	if g := c.grantOf[now.OldTerm]; g != nil && g.TTL > 0 {
		return g.TTL
	}
	return c.run.Meta.TTL
}

// foundDead reports whether the transaction noted that the holder had died.
func (l *lockRecord) foundDead(now *history.Lease) bool {
	return l.deaths[now.Xid] == now.OldTerm && now.OldTerm != ""
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
			c.blame(FenceBackwards, l.key, "", g.At, "grant %d: the token %d was given after %d", g.ID, g.Fence, before.Fence)
		}
		c.report.Counts[Acquisitions]++
		before = g
	}
}

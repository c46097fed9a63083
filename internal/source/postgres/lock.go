package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

const (
	// maxLockWait is how long a statement waits for a lock before it gives its
	// connection back for a while, see [source.LockWaits]. It waits in the queue,
	// so it gets its turn among sessions that lock a table over and over, and VACUUM,
	// which looks for waiters every 20 ms, gives way.
	maxLockWait = time.Second
	// noWait is as good as none: for what a read with a snapshot has not locked.
	noWait = time.Millisecond
)

// lockWait is never so long that a deadline of ours comes first.
func lockWait(o Options) time.Duration { return min(maxLockWait, o.QueryTimeout/2) }

// locks are what a read locks before it makes its snapshot: a table that is
// written anew while its lock is waited for, by ALTER TABLE or TRUNCATE, is empty
// for a snapshot from before. LOCK TABLE makes none.
type locks struct {
	// tables are what follows LOCK TABLE; none is for what cannot be locked.
	tables []string
	// all says that for sure no table is left out that could be written anew. It is
	// never said where functions may be called: what those read is not known.
	all bool
}

// statements are to be run in the transaction of the read, before all queries.
func (l locks) statements() (all []string) {
	if len(l.tables) > 0 {
		all = append(all, "LOCK TABLE "+strings.Join(l.tables, ", ")+" IN ACCESS SHARE MODE")
	}
	if !l.all {
		all = append(all, "SET LOCAL lock_timeout = "+milliseconds(noWait))
	}
	return all
}

// locks finds out what to lock. For a plain table the catalogue has said it. For all else the planner
// says it, and of partitions those that the range needs: in a round trip more, unless the horizon
// has just asked. A settled session locks nothing for a single statement over what is fixed, see begin.
func (c *session) locks(ctx context.Context, q observer.Query, p plan) (locks, error) {
	r := p.relation
	plain := r.kind == 'r' && !r.policies
	switch {
	case plain && r.readable:
		return locks{tables: []string{r.from}, all: true}, nil
	case plain:
		return locks{}, nil
	case r.kind == materialized || r.kind == foreignTable:
		return locks{all: true}, nil
	case r.fixed() && p.isSingle():
		if settled, err := c.settle(ctx, q.Stream); err != nil || settled {
			return locks{}, err
		}
	}
	if just := c.source.justSeen(q); just != nil {
		return locks{tables: lockable(just)}, nil
	}
	found, err := c.reads(ctx, "look up the tables of the query", p.steps)
	return locks{tables: lockable(found.tables)}, err
}

// lockable chooses among the tables. What we may read only as a part, or through
// a view, is locked with that: LOCK TABLE goes from there to all that is below, of
// which ONLY keeps it. Which view it is that leads to a table is not looked at.
// Foreign tables and materialized views cannot be locked and need not be: the rows
// of the former are elsewhere, and REFRESH writes rows that every snapshot sees.
func lockable(tables []table) []string {
	var each, whole []string
	below := false
	for _, t := range tables {
		if t.kind == foreignTable || t.kind == materialized {
			continue
		}
		if t.readable {
			whole = append(whole, t.name)
		}
		if t.readable && t.kind != view {
			each = append(each, "ONLY "+t.name)
		}
		below = below || !t.readable && t.kind != view
	}
	if below {
		return whole
	}
	return each
}

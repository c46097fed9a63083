package lockdb

import (
	"context"
	"database/sql"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// HeldLock is a row of INT_LOCK as a person wants to see it.
type HeldLock struct {
	Key, Region, Term string
	// Name, Node and Fence are empty for a holder that is not ours.
	Name, Node string
	Fence      int64
	// Holders is how many share the lock; 0 when nobody does. Node is empty then.
	Holders int
	// Touched is when the lease was acquired or last renewed.
	Touched time.Time
	// Left is how long it still runs; 0 or less when it has expired. It is only
	// known of our own holders.
	Left time.Duration
	// Ahead is how far Touched lies ahead of the database's clock, where that is
	// more than a clock may be off: the database's has gone back, or that of a
	// foreign holder is wrong. A row of ours is dated anew when another wants the lock.
	Ahead time.Duration
}

// tolerable is how far the clock of a foreign holder may be off unsaid.
const tolerable = 2 * time.Second

// mostCounted bounds how many locks are counted.
const mostCounted = 10_000

// Locks returns rows of INT_LOCK, sorted by region and key, at most as many as limit says:
// those of the regions in first come first. total is how many there are, counted up to
// [mostCounted].
func (l *Leases) Locks(ctx context.Context, first []string, limit int) (locks []HeldLock, total int64, err error) {
	regions, err := l.db.List(append([]string{""}, first...))
	if err != nil {
		return nil, 0, err
	}
	locks, err = sqldb.All(ctx, l.db, "read the locks", l.sql.SQL().Lease.Locks,
		func(scan sqldb.Scan, h *HeldLock) error {
			var term, name, node sql.NullString
			var fence, ttl sql.NullInt64
			var now time.Time
			err := scan(&h.Key, &h.Region, &term, sqldb.ScanTime(&h.Touched), sqldb.ScanTime(&now), &name, &node, &fence, &ttl, &h.Holders, &total)
			h.Key, h.Term = sqldb.Unpadded(h.Key), sqldb.Unpadded(term.String)
			h.Name, h.Node, h.Fence = name.String, node.String, fence.Int64
			if h.Ahead = h.Touched.Sub(now); h.Ahead < tolerable {
				h.Ahead = 0
			}
			if lives := time.Duration(ttl.Int64) * time.Millisecond; ttl.Valid {
				h.Left = lives - max(0, now.Sub(h.Touched))
			}
			return err
		}, regions, limit, mostCounted)
	return locks, total, err
}

package lockdb

import (
	"context"
	"fmt"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// The database's clock alone dates our leases. One that is dated in the future was renewed
// before that clock went back, which says nothing about its holder. Whoever is refused by it
// dates it now: a holder that lives renews it within a third of its TTL, and that of one that
// is dead ends a TTL later. A row that another client has locked is left to the next caller.
// Rows that are not ours are left alone.
const (
	redateSQL = `
UPDATE int_lock AS l
   SET {touch o.ttl_ms / 1000.0}
  FROM obs_lock o
 WHERE l.lock_key = $1 AND l.region = $2 AND l.created_date > {utc}
   AND o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
   AND EXISTS (SELECT 1 FROM int_lock WHERE lock_key = $1 AND region = $2{skip})`

	redateHoldsSQL = `
UPDATE obs_hold
   SET touched_at = {now}
 WHERE lock_key = $1 AND region = $2 AND touched_at > {now}
   AND term IN (SELECT term FROM obs_hold WHERE lock_key = $1 AND region = $2{skip})`
)

// redate dates the lease, or those who share it, now, if that is earlier.
func redate(ctx context.Context, db *sqldb.DB, r lock.Request) error {
	if err := db.Fits(ctx); err != nil {
		return err
	}
	texts := []string{db.SQL(redateSQL)}
	if r.Mode != "" { // The locks of pollers are not shared.
		texts = append(texts, db.SQL(redateHoldsSQL))
	}
	for _, text := range texts {
		if _, err := db.Acquire.ExecContext(ctx, text, rowKey(r.Key), r.Region); err != nil {
			return fmt.Errorf("date the lease of lock %s anew: %w", r.Key, err)
		}
	}
	return nil
}

// redateIf is redate for a caller that was refused and tries again.
func (l *Leases) redateIf(ctx context.Context, ahead bool, r lock.Request) {
	if !ahead {
		return
	}
	if err := redate(ctx, l.db, r); err != nil {
		l.log.Debug("A lease in the future was not dated anew; the next attempt does it", "lock", r.Key, "err", err)
	}
}

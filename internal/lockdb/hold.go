package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// A lock that several hold at once is a row of INT_LOCK whose CLIENT_ID is a term of the
// group, and a row of obs_hold for each holder. To all others it looks held by one: every
// holder's renewal touches the row, whose TTL is at least the longest of theirs. All that
// changes who holds locks the row first, and reads obs_hold in a later statement: one that
// began before it had the lock would not see who joined meanwhile.

// liveHoldSQL is the condition that the time of a row of obs_hold is not over: what
// {unexpired} and {alive} are for INT_LOCK.
const liveHoldSQL = `(h.touched_at >= {ago h.ttl_ms / 1000.0})`

// conflictSQL is [lock.Mode.Conflicts] of two modes.
func conflictSQL(a, b string) string {
	return strings.NewReplacer("{a}", a, "{b}", b).Replace(`({a} = 'exclusive' OR {b} = 'exclusive'
       OR ({a} = 'shared' AND {b} = 'intent-exclusive') OR ({a} = 'intent-exclusive' AND {b} = 'shared'))`)
}

// standingSQL returns what stands in the way of a lock: whether a group holds it, whether
// any of the group lives, and whether one of those keeps out the mode; and whether a lease
// has ended that is no group's. It needs l, and o with the term of l.
func standingSQL(mode, ttl string) string {
	const held = `EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND ` + liveHoldSQL
	return `COALESCE(o.group_term = l.client_id, FALSE) AS grouped, ` + held + `) AS lives, ` +
		held + ` AND ` + conflictSQL("h.mode", mode) + `) AS refuses, COALESCE({expired l ` + ttl + `}, FALSE) AS expired`
}

// rowTerm is the CLIENT_ID of the row when the grant is the first of the lock: its own term,
// or that of a new group.
func rowTerm(g lock.Grant) string {
	if g.Mode.Alone() {
		return g.Term
	}
	return uuid.NewString()
}

// acquired is what an engine says of a lock that it has acquired.
type acquired struct {
	fence  int64
	before previousHolder
}

// refusedError is errHeld for one of several locks.
type refusedError struct{ n int }

func (refusedError) Error() string { return errHeld.Error() }

func (refusedError) Is(target error) bool { return target == errHeld }

// AcquireAll implements [lock.Sets]. It waits for a row that is locked as Acquire does,
// while it has locked those before it: all who lock several rows do it in one order.
func (l *Leases) AcquireAll(ctx context.Context, requests []lock.Request) ([]lock.Grant, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("acquire %d locks: %w", len(requests), context.Cause(ctx))
	}
	return l.takeAll(ctx, requests, l.engine.acquireAll)
}

// group is what a refused caller finds of a lock that several hold.
type group struct {
	// lives reports whether any holder lives, and refuses that one keeps the caller out:
	// node is its name then, left the time until its lease is over, and ahead reports
	// whether that is dated in the future.
	lives, refuses, ahead bool
	node                  string
	left                  time.Duration
}

// group looks at those who share the lock of the request; nil when nobody shares it.
func (l *Leases) group(ctx context.Context, r lock.Request) (*group, error) {
	var node, mode sql.NullString
	var touched, now time.Time
	var ttl sql.NullInt64
	err := l.db.Acquire.QueryRowContext(ctx, l.db.SQL(`
		SELECT h.node, h.mode, h.touched_at, h.ttl_ms, {now}
		  FROM int_lock l
		  JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id AND o.group_term = o.term
		  LEFT JOIN obs_hold h ON h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND `+liveHoldSQL+`
		 WHERE l.lock_key = $1 AND l.region = $2
		 ORDER BY CASE WHEN `+conflictSQL("h.mode", "$3")+` THEN 0 ELSE 1 END, h.touched_at DESC
		 LIMIT 1`), rowKey(r.Key), r.Region, modeOf(lock.Grant{Request: r})).
		Scan(&node, &mode, sqldb.ScanTime(&touched), &ttl, sqldb.ScanTime(&now))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look who shares lock %s: %w", r.Key, err)
	case !ttl.Valid:
		return &group{}, nil
	}
	return &group{
		lives: true, refuses: lock.Mode(mode.String).Conflicts(r.Mode), ahead: touched.After(now),
		node: node.String, left: leftOf(time.Duration(ttl.Int64)*time.Millisecond, now.Sub(touched)),
	}, nil
}

// extendHold is Extend of a lock that is shared. The row of INT_LOCK comes first, which
// keeps all others from changing who holds the lock.
func (l *Leases) extendHold(ctx context.Context, tx *sql.Tx, g lock.Grant, ttl time.Duration) error {
	const own = ` FROM obs_hold h WHERE h.lock_key = $1 AND h.region = $2 AND h.term = $3`
	row := []any{rowKey(g.Key), g.Region, g.Term}
	err := changeOne(ctx, tx, l.db.SQL(`
		UPDATE int_lock AS l
		   SET {prolong l $4}
		 WHERE lock_key = $1 AND region = $2
		   AND EXISTS (SELECT 1`+own+` AND h.group_term = l.client_id AND `+liveHoldSQL+` AND CAST($4 AS DOUBLE PRECISION) IS NOT NULL)`),
		append(row, ttl.Seconds())...)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, l.db.SQL(pinHoldSQL), row...); err != nil {
		return err
	}
	err = changeOne(ctx, tx, l.db.SQL(`
		UPDATE obs_lock
		   SET ttl_ms = CASE WHEN ttl_ms < $4 THEN $4 ELSE ttl_ms END
		 WHERE lock_key = $1 AND region = $2 AND term = (SELECT h.group_term`+own+`)`), append(row, ttl.Milliseconds())...)
	if err != nil {
		return err
	}
	return changeOne(ctx, tx, l.db.SQL(`
		UPDATE obs_hold AS h
		   SET touched_at = {now}, ttl_ms = $4
		 WHERE lock_key = $1 AND region = $2 AND term = $3 AND `+liveHoldSQL), append(row, ttl.Milliseconds())...)
}

// guardHoldSQL is the statement of [Leases.GuardSQL] for a lock that is shared. It locks
// the holder's own row alone, so that others who share the lock renew, come and go
// meanwhile. The transaction keeps the lock because all who end a holder delete that row.
const guardHoldSQL = `
UPDATE obs_hold AS h
   SET touched_at = {now}
 WHERE lock_key = $1 AND region = $2 AND term = $3 AND ` + liveHoldSQL + `
   AND EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = h.group_term)`

// pinHoldSQL locks the holder's own row; that of INT_LOCK is locked. A transaction that it
// guards may run: the others must not wait with us for its end.
const pinHoldSQL = `SELECT 1 FROM obs_hold WHERE lock_key = $1 AND region = $2 AND term = $3{nowait}`

// reapSQL deletes the dead who have shared a lock with the term, but for one whose guarded
// transaction still runs. The row of INT_LOCK is locked.
const reapSQL = `
DELETE FROM obs_hold
 WHERE lock_key = $1 AND region = $2 AND term IN (
       SELECT h.term FROM obs_hold h WHERE h.lock_key = $1 AND h.region = $2 AND h.term <> $3 AND NOT ` + liveHoldSQL + `{skip})`

// vacantSQL is the condition that the term $3 is the last of the group. A statement of its
// own has deleted the dead.
const vacantSQL = `NOT EXISTS (SELECT 1 FROM obs_hold h
       WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND h.term <> $3)`

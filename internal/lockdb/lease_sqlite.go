package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// A row that could be taken had ended. Asked a moment before, in a statement of
// its own, it might not have.
var sqlitePredecessorSQL = strings.Replace(previousSQL, "{ended}", "l.client_id IS NOT NULL", 1)

const takeSQL = `
INSERT INTO int_lock AS l (lock_key, region, client_id, {cols})
VALUES ($1, $2, $3, {vals $4})
ON CONFLICT (lock_key, region) DO UPDATE
   SET client_id = excluded.client_id, {touch $4}
 WHERE {expired l $4}
RETURNING client_id`

// takeInTurnSQL is takeSQL for a lock for which others may wait in line.
var takeInTurnSQL = strings.Replace(takeSQL, "VALUES ($1, $2, $3, {vals $4})", `SELECT $1, $2, $3, {vals $4}
 WHERE NOT (SELECT `+behindSQL+` FROM (SELECT $1 AS lock_key, $2 AS region, 'exclusive' AS mode, $5 AS waiter, $6 AS priority, $7 AS ticket, $8 AS holds) want)`, 1)

const describeSQL = `
INSERT INTO obs_lock (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, boot_term, liveness, metadata)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, {now}, $9, $3, $10, $11)
ON CONFLICT (lock_key, region) DO UPDATE
   SET term = excluded.term, fence = excluded.fence, name = excluded.name, node = excluded.node,
       descriptor = excluded.descriptor, ttl_ms = excluded.ttl_ms, acquired_at = excluded.acquired_at,
       boot_id = excluded.boot_id, boot_term = excluded.boot_term, liveness = excluded.liveness,
       metadata = excluded.metadata`

func (e *sqliteEngine) acquire(ctx context.Context, g lock.Grant, by process) (fence int64, before previousHolder, err error) {
	tx, err := e.db.Acquire.BeginTx(ctx, nil)
	if err != nil {
		return 0, before, err
	}
	defer func() { err = sqldb.EndTx(tx, err) }()
	was := e.db.SQL(sqlitePredecessorSQL)
	if err := tx.QueryRowContext(ctx, was, g.Key, g.Region).Scan(before.scan()...); err != nil {
		return 0, before, err
	}
	take, args := takeSQL, []any{g.Key, g.Region, g.Term, g.TTL.Seconds()}
	if g.Mode != "" {
		take, args = takeInTurnSQL, append(args, g.Place.ID, g.Place.Priority, ticketOf(g), holdsOf(g))
	}
	err = tx.QueryRowContext(ctx, e.db.SQL(take), args...).Scan(new(string))
	if errors.Is(err, sql.ErrNoRows) {
		return 0, before, errHeld
	}
	if err != nil {
		return 0, before, err
	}
	if fence, err = drawFence(ctx, tx); err != nil {
		return 0, before, err
	}
	_, err = tx.ExecContext(ctx, e.db.SQL(describeSQL),
		g.Key, g.Region, g.Term, fence, g.Name, g.Node, g.Descriptor, g.TTL.Milliseconds(), by.boot, by.liveness, g.Metadata)
	if err != nil {
		return fence, before, err
	}
	return fence, before, e.come(ctx, tx, g)
}

const drawFenceSQL = `UPDATE obs_fence SET last_value = last_value + 1 RETURNING last_value`

// refillFenceSQL fills an emptied obs_fence, past all that is known to have been drawn. The
// rows of many tokens are gone; a thousand for each second since 1970 is more than were drawn.
const refillFenceSQL = `
INSERT INTO obs_fence (last_value)
SELECT 1 + max(1000 * CAST(strftime('%s', 'now') AS INTEGER),
               COALESCE((SELECT max(fence) FROM obs_lock), 0),
               COALESCE((SELECT max(fence) FROM obs_hold), 0),
               COALESCE((SELECT max(ticket) FROM obs_wait), 0),
               COALESCE((SELECT max(epoch) FROM obs_sink_offset), 0))
RETURNING last_value`

// drawFence draws the next fencing token, or ticket of the line.
func drawFence(ctx context.Context, tx *sql.Tx) (fence int64, err error) {
	err = tx.QueryRowContext(ctx, drawFenceSQL).Scan(&fence)
	if errors.Is(err, sql.ErrNoRows) {
		err = tx.QueryRowContext(ctx, refillFenceSQL).Scan(&fence)
	}
	return fence, err
}

// come takes the caller out of the line.
func (e *sqliteEngine) come(ctx context.Context, tx *sql.Tx, g lock.Grant) error {
	if g.Place.ID == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, e.db.SQL(`DELETE FROM obs_wait WHERE waiter = $1`), g.Place.ID)
	return err
}

func (e *sqliteEngine) renew(ctx context.Context, grants []lock.Grant) (renewals []lock.Renewal, err error) {
	tx, err := e.db.Lease.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = sqldb.EndTx(tx, err) }()
	for _, g := range grants {
		alive, err := e.touch(ctx, tx, g)
		if err != nil {
			return nil, err
		}
		renewals = append(renewals, renewal(alive, false))
	}
	return renewals, nil
}

// touch makes the lease run anew; false when it has ended.
func (e *sqliteEngine) touch(ctx context.Context, tx *sql.Tx, g lock.Grant) (bool, error) {
	result, err := tx.ExecContext(ctx, e.db.SQL(touchSQL), touchArgs(g)...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

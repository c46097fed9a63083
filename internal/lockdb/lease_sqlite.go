package lockdb

import (
	"context"
	"database/sql"
	"errors"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

func (e *sqliteEngine) acquire(ctx context.Context, g lock.Grant, by process) (fence int64, before previousHolder, err error) {
	tx, err := e.db.Acquire.BeginTx(ctx, nil)
	if err != nil {
		return 0, before, err
	}
	defer func() { err = sqldb.EndTx(tx, err) }()
	text := e.sql.SQL().Lease
	err = tx.QueryRowContext(ctx, text.Former, g.Key, g.Region).Scan(&before.expired, &before.liveness, &before.node)
	if err != nil {
		return 0, before, err
	}
	err = tx.QueryRowContext(ctx, text.Take, g.Key, g.Region, g.Term, g.TTL.Seconds()).Scan(new(string))
	if errors.Is(err, sql.ErrNoRows) {
		return 0, before, sqldb.ErrHeld
	}
	if err != nil {
		return 0, before, err
	}
	if fence, err = DrawFence(ctx, tx); err != nil {
		return 0, before, err
	}
	_, err = tx.ExecContext(ctx, text.Describe,
		g.Key, g.Region, g.Term, fence, g.Name, g.Node, g.Descriptor, g.TTL.Milliseconds(), by.boot, by.liveness, g.Metadata)
	return fence, before, err
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

// DrawFence draws the next fencing token, or ticket of the line, on SQLite.
func DrawFence(ctx context.Context, tx *sql.Tx) (fence int64, err error) {
	err = tx.QueryRowContext(ctx, drawFenceSQL).Scan(&fence)
	if errors.Is(err, sql.ErrNoRows) {
		err = tx.QueryRowContext(ctx, refillFenceSQL).Scan(&fence)
	}
	return fence, err
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
	n, err := sqldb.Affected(tx.ExecContext(ctx, e.sql.SQL().Lease.Guard, RowKey(g.Key), g.Region, g.Term, g.TTL.Seconds()))
	return n == 1, err
}

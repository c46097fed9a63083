package lockdb

import (
	"context"
	"fmt"
	"math"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// waitingSQL is how many seconds ago a waiting caller was noted last that has not lost its
// place. Its process notes it twice a second. One that is dated more than twice that ahead
// has lost it too: the database's clock has gone back.
const waitingSQL = "5"

// waitsSQL is the condition that w has not lost its place.
const waitsSQL = `w.touched_at >= {ago ` + waitingSQL + `} AND w.touched_at <= {in 2 * ` + waitingSQL + `}`

// aheadSQL is the condition that one who waits, w, is ahead of want, and must not be passed.
// It needs lock_key, region, mode, waiter, priority and ticket of want.
var aheadSQL = `w.lock_key = want.lock_key AND w.region = want.region AND w.waiter <> want.waiter AND ` + waitsSQL + `
         AND (w.priority > want.priority OR (w.priority = want.priority AND w.ticket < want.ticket))
         AND ` + conflictSQL("w.mode", "want.mode")

// behindSQL is the condition that there is such a one.
var behindSQL = `EXISTS (SELECT 1 FROM obs_wait w WHERE ` + aheadSQL + `)`

// ticketOf is the ticket of the grant's place; of one without, that of the end of the line.
func ticketOf(g lock.Grant) int64 {
	if g.Place.Ticket == 0 {
		return math.MaxInt64
	}
	return g.Place.Ticket
}

func tickets(grants []lock.Grant) []int64 {
	all := make([]int64, len(grants))
	for i, g := range grants {
		all[i] = ticketOf(g)
	}
	return all
}

func priorities(grants []lock.Grant) []int32 {
	all := make([]int32, len(grants))
	for i, g := range grants {
		all[i] = int32(g.Place.Priority) //nolint:gosec // The manager bounds it.
	}
	return all
}

// Wait implements [lock.Line].
func (l *Leases) Wait(ctx context.Context, requests []lock.Request) (turns []lock.Turn, err error) {
	rows := make([]lock.Grant, len(requests))
	for i, r := range requests {
		rows[i] = stored(lock.Grant{Request: r})
	}
	err = sqldb.RetryConflicts(ctx, func() error {
		turns, err = l.engine.wait(ctx, rows)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("wait for %d locks: %w", len(requests), err)
	}
	return turns, nil
}

// Leave implements [lock.Line].
func (l *Leases) Leave(ctx context.Context, requests []lock.Request) error {
	ids := make([]string, len(requests))
	for i, r := range requests {
		ids[i] = r.Place.ID
	}
	list, err := l.db.List(ids)
	if err != nil {
		return err
	}
	if _, err := l.db.Acquire.ExecContext(ctx, l.db.SQL(`DELETE FROM obs_wait WHERE waiter {among $1}`), list); err != nil {
		return fmt.Errorf("leave the line of %d locks: %w", len(requests), err)
	}
	return nil
}

// aheadOf returns the node of the first in line whom the request must not pass; empty for
// none.
func (l *Leases) aheadOf(ctx context.Context, r lock.Request) string {
	var node string
	g := stored(lock.Grant{Request: r})
	err := l.db.Acquire.QueryRowContext(ctx, l.db.SQL(`
		SELECT w.node
		  FROM (`+wantedSQL+`) want
		  JOIN obs_wait w ON `+aheadSQL+`
		 ORDER BY w.priority DESC, w.ticket
		 LIMIT 1`), wantedArgs(g)...).Scan(&node)
	if err != nil {
		return ""
	}
	return node
}

// comeSQL reports whether neither a holder nor one who waits is in the way of want.
func comeSQL() string {
	return `NOT ` + behindSQL + ` AND NOT EXISTS (
       SELECT 1
         FROM (SELECT l.lock_key, ` + standingSQL("want.mode") + `
                 FROM int_lock l
                 LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
                WHERE l.lock_key = want.lock_key AND l.region = want.region) held
        WHERE CASE WHEN held.grouped THEN held.refuses ELSE NOT held.expired END)`
}

// noteSQL notes one who waits. It gets its ticket once.
const noteSQL = `
ON CONFLICT (waiter) DO UPDATE
   SET lock_key = excluded.lock_key, region = excluded.region, mode = excluded.mode, touched_at = excluded.touched_at`

var waitSQL = `
WITH want AS (
  SELECT n, w::char(36) AS waiter, k::char(36) AS lock_key, g::varchar(100) AS region, m AS mode, s AS ttl, p AS priority
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::float8[], $6::integer[]) WITH ORDINALITY AS u(w, k, g, m, s, p, n)
)
SELECT want.ticket, ` + comeSQL() + `
  FROM (SELECT want.*, own.ticket FROM want JOIN obs_wait own ON own.waiter = want.waiter) want
 ORDER BY want.n`

func (e *postgresEngine) wait(ctx context.Context, wanted []lock.Grant) ([]lock.Turn, error) {
	ids := texts(wanted, func(g lock.Grant) string { return g.Place.ID })
	keys, regions, modes := texts(wanted, keyOf), texts(wanted, regionOf), texts(wanted, modeOf)
	given := make([]int64, len(wanted))
	for i, g := range wanted {
		given[i] = g.Place.Ticket
	}
	turns := make([]lock.Turn, 0, len(wanted))
	err := e.db.Pipeline(ctx, []sqldb.Statement{
		{Text: e.db.SQL(`
			INSERT INTO obs_wait (waiter, lock_key, region, mode, priority, ticket, node, touched_at)
			SELECT w, k, g, m, p, CASE WHEN t = 0 THEN nextval('obs_fence') ELSE t END, node, clock_timestamp()
			  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::bigint[], $7::text[]) WITH ORDINALITY AS u(w, k, g, m, p, t, node, n)
			 ORDER BY n` + noteSQL), Args: []any{ids, keys, regions, modes, priorities(wanted), given, texts(wanted, func(g lock.Grant) string { return g.Node })}},
		{Text: e.db.LockSQL(waitSQL, "l", "want.ttl"), Args: []any{ids, keys, regions, modes, seconds(wanted), priorities(wanted)}},
	}, func(scan func(...any) error) error {
		var turn lock.Turn
		err := scan(&turn.Ticket, &turn.Come)
		turns = append(turns, turn)
		return err
	})
	if err == nil && len(turns) != len(wanted) {
		err = fmt.Errorf("%d of %d answered", len(turns), len(wanted))
	}
	return turns, err
}

// wantedSQL is one who wants a lock, as behindSQL and comeSQL need it.
const wantedSQL = `SELECT CAST($1 AS CHAR(36)) AS lock_key, CAST($2 AS VARCHAR(100)) AS region, CAST($3 AS VARCHAR(36)) AS mode,
       CAST($4 AS CHAR(36)) AS waiter, CAST($5 AS INTEGER) AS priority, CAST($6 AS BIGINT) AS ticket`

func wantedArgs(g lock.Grant) []any {
	return []any{g.Key, g.Region, modeOf(g), g.Place.ID, g.Place.Priority, ticketOf(g)}
}

func (e *sqliteEngine) wait(ctx context.Context, wanted []lock.Grant) (turns []lock.Turn, err error) {
	tx, err := e.db.Acquire.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = sqldb.EndTx(tx, err) }()
	for _, g := range wanted {
		if g.Place.Ticket == 0 {
			draw := `UPDATE obs_fence SET last_value = last_value + 1 RETURNING last_value`
			if err := tx.QueryRowContext(ctx, draw).Scan(&g.Place.Ticket); err != nil {
				return nil, err
			}
		}
		note := e.db.SQL(`
			INSERT INTO obs_wait (waiter, lock_key, region, mode, priority, ticket, node, touched_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, {now})` + noteSQL)
		if _, err := tx.ExecContext(ctx, note, g.Place.ID, g.Key, g.Region, modeOf(g), g.Place.Priority, g.Place.Ticket, g.Node); err != nil {
			return nil, err
		}
		turn := lock.Turn{Ticket: g.Place.Ticket}
		text := e.db.LockSQL(`SELECT `+comeSQL()+` FROM (`+wantedSQL+`) want`, "l", "$7")
		if err := tx.QueryRowContext(ctx, text, append(wantedArgs(g), g.TTL.Seconds())...).Scan(&turn.Come); err != nil {
			return nil, err
		}
		turns = append(turns, turn)
	}
	return turns, nil
}

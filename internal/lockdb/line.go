package lockdb

import (
	"context"
	"fmt"
	"math"
	"strings"

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
// It needs lock_key, region, mode, waiter, priority, ticket and holds of want.
//
// Of two who are noted at the same time, the one with the greater ticket may see the lines
// before the other stands in them, and pass it, once: later looks find the other ahead. All
// lines have the tickets in one order, so that no two sets wait for each other.
var aheadSQL = `w.lock_key = want.lock_key AND w.region = want.region AND w.waiter <> want.waiter AND ` + waitsSQL + `
         AND (w.priority > want.priority OR (w.priority = want.priority AND w.ticket < want.ticket))
         AND ` + conflictSQL("w.mode", "want.mode") + `
         AND NOT (want.holds <> '' AND EXISTS (
             SELECT 1
               FROM obs_wait o
              WHERE o.region = want.region AND o.waiter <> want.waiter
                AND o.touched_at >= {ago ` + waitingSQL + `} AND o.touched_at <= {in 2 * ` + waitingSQL + `}
                AND replace(want.holds, '|' || o.mode || ' ' || o.lock_key || '|', '') <> want.holds))`

// behindSQL is the condition that there is such a one.
var behindSQL = `EXISTS (SELECT 1 FROM obs_wait w WHERE ` + aheadSQL + `)`

// ticketOf is the ticket of the grant's place; of one without, that of the end of the line.
func ticketOf(g lock.Grant) int64 {
	if g.Place.Ticket == 0 {
		return math.MaxInt64
	}
	return g.Place.Ticket
}

// holdsOf are the locks that the caller holds, each between two bars, with each mode that it
// keeps out. One with a bar in it may count as more than it is: then the caller passes one
// whom it need not pass.
func holdsOf(g lock.Grant) string {
	var text strings.Builder
	for key, held := range g.Holds {
		for _, mode := range lock.Modes() {
			if mode.Conflicts(held) {
				text.WriteString("|" + string(mode) + " " + rowKey(key) + "|")
			}
		}
	}
	return text.String()
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
func comeSQL(ttl string) string {
	return `NOT ` + behindSQL + ` AND NOT EXISTS (
       SELECT 1
         FROM (SELECT l.lock_key, ` + standingSQL("want.mode", ttl) + `
                 FROM int_lock l
                 LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
                WHERE l.lock_key = want.lock_key AND l.region = want.region) held
        WHERE CASE WHEN held.grouped THEN held.refuses ELSE NOT held.expired END)`
}

// noteSQL notes those who wait, and draws one ticket for each who has none, in their order.
// The places of one caller are locked in the order in which [grantSQL] deletes them.
const noteSQL = `
WITH want AS (
  SELECT n, w::char(36) AS waiter, k::char(36) AS lock_key, g::varchar(100) AS region, m AS mode, p AS priority, t AS ticket, node
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::bigint[], $7::text[]) WITH ORDINALITY AS u(w, k, g, m, p, t, node, n)
), caller AS MATERIALIZED (
  SELECT waiter, CASE WHEN ticket = 0 THEN nextval('obs_fence') ELSE ticket END AS ticket
    FROM (SELECT waiter, max(ticket) AS ticket FROM want GROUP BY waiter ORDER BY min(n)) c
)
INSERT INTO obs_wait (waiter, lock_key, region, mode, priority, ticket, node, touched_at)
SELECT want.waiter, want.lock_key, want.region, want.mode, want.priority, caller.ticket, want.node, clock_timestamp()
  FROM want
  JOIN caller ON caller.waiter = want.waiter
 ORDER BY want.waiter, want.lock_key, want.region
ON CONFLICT (waiter, lock_key, region) DO UPDATE
   SET touched_at = excluded.touched_at`

var waitSQL = `
WITH want AS (
  SELECT n, w::char(36) AS waiter, k::char(36) AS lock_key, g::varchar(100) AS region, m AS mode, s AS ttl, p AS priority, h AS holds
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::float8[], $6::integer[], $7::text[]) WITH ORDINALITY AS u(w, k, g, m, s, p, h, n)
)
SELECT want.ticket, ` + comeSQL("want.ttl") + `
  FROM (SELECT want.*, own.ticket
          FROM want
          JOIN obs_wait own ON own.waiter = want.waiter AND own.lock_key = want.lock_key AND own.region = want.region) want
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
		{Text: e.db.SQL(noteSQL), Args: []any{ids, keys, regions, modes, priorities(wanted), given, texts(wanted, func(g lock.Grant) string { return g.Node })}},
		{Text: e.db.SQL(waitSQL), Args: []any{ids, keys, regions, modes, seconds(wanted), priorities(wanted), texts(wanted, holdsOf)}},
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
       CAST($4 AS CHAR(36)) AS waiter, CAST($5 AS INTEGER) AS priority, CAST($6 AS BIGINT) AS ticket, CAST($7 AS TEXT) AS holds`

func wantedArgs(g lock.Grant) []any {
	return []any{g.Key, g.Region, modeOf(g), g.Place.ID, g.Place.Priority, ticketOf(g), holdsOf(g)}
}

func (e *sqliteEngine) wait(ctx context.Context, wanted []lock.Grant) (turns []lock.Turn, err error) {
	tx, err := e.db.Acquire.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = sqldb.EndTx(tx, err) }()
	given := make(map[string]int64)
	for _, g := range wanted {
		if g.Place.Ticket == 0 {
			g.Place.Ticket = given[g.Place.ID]
		}
		if g.Place.Ticket == 0 {
			if g.Place.Ticket, err = drawFence(ctx, tx); err != nil {
				return nil, err
			}
			given[g.Place.ID] = g.Place.Ticket
		}
		note := e.db.SQL(`
			INSERT INTO obs_wait (waiter, lock_key, region, mode, priority, ticket, node, touched_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, {now})
			ON CONFLICT (waiter, lock_key, region) DO UPDATE
			   SET touched_at = excluded.touched_at`)
		if _, err := tx.ExecContext(ctx, note, g.Place.ID, g.Key, g.Region, modeOf(g), g.Place.Priority, g.Place.Ticket, g.Node); err != nil {
			return nil, err
		}
		turn := lock.Turn{Ticket: g.Place.Ticket}
		text := e.db.SQL(`SELECT ` + comeSQL("$8") + ` FROM (` + wantedSQL + `) want`)
		if err := tx.QueryRowContext(ctx, text, append(wantedArgs(g), g.TTL.Seconds())...).Scan(&turn.Come); err != nil {
			return nil, err
		}
		turns = append(turns, turn)
	}
	return turns, nil
}

package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/observerd/observerd/internal/lock"
)

// acquireSQL takes a free or expired lock in one round trip. The token is
// drawn in the outer statement, when the row of INT_LOCK is already locked:
// drawn before it, tokens would run backwards between contenders. The TTL of the holder
// is read before the row is locked, so it counts for the row that was seen then alone.
var acquireSQL = `
WITH was AS (` + strings.Replace(previousSQL, "{ended}", "COALESCE({expired l $4::float8}, FALSE)", 1) + `
), seen AS (
  SELECT client_id, created_date FROM int_lock WHERE lock_key = $1 AND region = $2
), l AS (
  INSERT INTO int_lock AS l (lock_key, region, client_id, {cols})
  VALUES ($1, $2, $3, {vals $4::float8})
  ON CONFLICT (lock_key, region) DO UPDATE
     SET client_id = excluded.client_id, {touch $4::float8}
   WHERE EXISTS (SELECT 1 FROM seen WHERE seen.client_id IS NOT DISTINCT FROM l.client_id AND seen.created_date = l.created_date)
     AND {expired l $4::float8}
  RETURNING lock_key, region, client_id
)` + describeLSQL + `, (SELECT expired FROM was), (SELECT ours FROM was), (SELECT liveness FROM was), (SELECT node FROM was)`

// describeLSQL describes the lock whose row of INT_LOCK is l, and returns its token.
const describeLSQL = `
INSERT INTO obs_lock AS o (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, boot_term, liveness, metadata)
SELECT lock_key, region, client_id, nextval('obs_fence'), $5, $6, $7, ($4 * 1000)::bigint, clock_timestamp(), $8, client_id, $9, $10
  FROM l
ON CONFLICT (lock_key, region) DO UPDATE
   SET term = excluded.term, fence = excluded.fence, name = excluded.name, node = excluded.node,
       descriptor = excluded.descriptor, ttl_ms = excluded.ttl_ms, acquired_at = excluded.acquired_at,
       boot_id = excluded.boot_id, boot_term = excluded.boot_term, liveness = excluded.liveness,
       metadata = excluded.metadata
RETURNING fence`

// firstTrySQL is acquireSQL for a lock for which others may wait in line, and that others
// may have shared: grantSQL ends a group. Each mention of a table costs time, also where
// nothing is read of it. So what was there is read once: if it had expired, and the row is
// as it was when it is locked, it has expired.
var firstTrySQL = `
WITH was AS (` + strings.NewReplacer(
	"{ended}", "COALESCE({ended l COALESCE(CASE WHEN o.term = l.client_id THEN o.ttl_ms / 1000.0 END, $4::float8)}, FALSE)",
	"o.node AS node", "o.node AS node, COALESCE(o.group_term = l.client_id, FALSE) AS grouped, l.client_id, {cols}").Replace(previousSQL) + `
), l AS (
  INSERT INTO int_lock AS l (lock_key, region, client_id, {cols})
  SELECT $1, $2, $3, {vals $4::float8}
    FROM (SELECT $1::char(36) AS lock_key, $2::varchar(100) AS region, 'exclusive' AS mode, $11::char(36) AS waiter,
                 $12::integer AS priority, $13::bigint AS ticket, $14::text AS holds) want
   WHERE NOT ` + behindSQL + `
  ON CONFLICT (lock_key, region) DO UPDATE
     SET client_id = excluded.client_id, {touch $4::float8}
   WHERE EXISTS (SELECT 1 FROM was WHERE was.expired AND NOT was.grouped AND {same l was})
  RETURNING lock_key, region, client_id
), o AS (` + describeLSQL + `
)
SELECT fence, expired, ours, liveness, node FROM o, was`

// inTurnSQL is firstTrySQL for a caller who waits in line. It takes the caller out of it.
var inTurnSQL = strings.Replace(firstTrySQL, "), o AS (", `), come AS (
  DELETE FROM obs_wait WHERE waiter = $11::char(36) AND EXISTS (SELECT 1 FROM l)
), o AS (`, 1)

func (e *postgresEngine) acquire(ctx context.Context, g lock.Grant, by process) (fence int64, before previousHolder, err error) {
	text := acquireSQL
	args := []any{g.Key, g.Region, g.Term, g.TTL.Seconds(), g.Name, g.Node, g.Descriptor, by.boot, by.liveness, g.Metadata}
	if g.Mode != "" {
		text, args = firstTrySQL, append(args, g.Place.ID, g.Place.Priority, ticketOf(g), holdsOf(g))
	}
	if g.Place.ID != "" {
		text = inTurnSQL
	}
	err = e.db.Acquire.QueryRowContext(ctx, e.db.SQL(text), args...).
		Scan(append([]any{&fence}, before.scan()...)...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, previousHolder{}, errHeld
	case lockTimedOut(err):
		return 0, previousHolder{}, errLocked
	}
	return fence, before, err
}

// renewSQL renews many leases in one statement. Rows are locked in the order
// of their keys, so that two such statements cannot deadlock, and a row that
// another client has locked is skipped: its state is not known then.
const renewSQL = `
WITH want AS (
  SELECT n, k::char(36) AS lock_key, g::varchar(100) AS region, t::char(36) AS term, s AS ttl
    FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[]) WITH ORDINALITY AS u(k, g, t, s, n)
), due AS (
  SELECT l.lock_key, l.region, want.ttl
    FROM int_lock l
    JOIN want ON want.lock_key = l.lock_key AND want.region = l.region AND want.term = l.client_id
   WHERE {alive l want.ttl}
   ORDER BY l.lock_key, l.region
     FOR UPDATE OF l SKIP LOCKED
), renewed AS (
  UPDATE int_lock l
     SET {touch want.ttl}
    FROM due want
   WHERE l.lock_key = want.lock_key AND l.region = want.region
  RETURNING l.lock_key, l.region, l.client_id
)
SELECT renewed.client_id IS NOT NULL, l.client_id IS NOT NULL
  FROM want
  LEFT JOIN renewed ON renewed.lock_key = want.lock_key AND renewed.region = want.region AND renewed.client_id = want.term
  LEFT JOIN int_lock l ON l.lock_key = want.lock_key AND l.region = want.region AND l.client_id = want.term AND {alive l want.ttl}
 ORDER BY want.n`

func (e *postgresEngine) renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
	return e.renewals(ctx, len(grants), e.db.SQL(renewSQL),
		texts(grants, keyOf), texts(grants, regionOf), texts(grants, termOf), seconds(grants))
}

// renewals runs a statement that renews that many leases, and reads its answers.
func (e *postgresEngine) renewals(ctx context.Context, leases int, text string, args ...any) ([]lock.Renewal, error) {
	rows, err := e.db.Lease.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	renewals := make([]lock.Renewal, 0, leases)
	for rows.Next() {
		var renewed, present bool
		if err := rows.Scan(&renewed, &present); err != nil {
			return nil, err
		}
		renewals = append(renewals, renewal(renewed, present))
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(renewals) != leases {
		return nil, fmt.Errorf("%d of %d leases answered", len(renewals), leases)
	}
	return renewals, nil
}

// renewal reads the two facts of a row: a lease that is present and alive but
// was not renewed was locked by another client.
func renewal(renewed, present bool) lock.Renewal {
	switch {
	case renewed:
		return lock.Renewed
	case present:
		return lock.Unknown
	}
	return lock.Lost
}

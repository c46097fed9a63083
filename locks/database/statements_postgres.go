package database

import "github.com/observerd/observerd/internal/lockdb"

// Acquire reads once what was there, since each mention of a table costs time, also where
// nothing is read of it: if that had expired, and the row is as it was when it is locked, it
// has expired. It takes the caller out of the line. It ends no group, as Grant does.
//
// Claim locks the rows of INT_LOCK, in one order, and makes those that are missing. Grant
// takes the locks, all or none, and undoes what Claim has made when it takes none. A holder
// that has ended and would be in the way stays so, whatever its guarded transaction has
// written meanwhile, whose end the deletion of its row waits for. Any other one may live on.
//
// The places of one caller are locked in one order by Grant and Note.
var postgresStatements = statements{
	Acquire: `
WITH was AS (
  SELECT COALESCE({ended l COALESCE(o.ttl_ms / 1000.0, $4::float8)}, FALSE) AS expired, COALESCE(o.group_term = l.client_id, FALSE) AS grouped,
         ` + released + `, COALESCE(o.node, '') AS node, l.client_id, l.created_date, COALESCE(o.ttl_ms / 1000.0, $4::float8) AS ttl
    FROM (SELECT 1 AS one) x
    LEFT JOIN int_lock l ON l.lock_key = $1 AND l.region = $2
    LEFT JOIN obs_lock o ON o.lock_key = $1 AND o.region = $2 AND o.term = l.client_id
), l AS (
  INSERT INTO int_lock AS l (lock_key, region, client_id, {cols})
  SELECT $1, $2, $3, {vals $4::float8}
    FROM (SELECT $1::char(36) AS lock_key, $2::varchar(100) AS region, 'exclusive' AS mode, $9::char(36) AS waiter,
                 $10::integer AS priority, $11::bigint AS ticket, $12::text AS holds) want
   WHERE NOT ` + behind + `
  ON CONFLICT (lock_key, region) DO UPDATE
     SET client_id = excluded.client_id, {touch $4::float8}
   WHERE EXISTS (SELECT 1 FROM was
                  WHERE was.expired AND NOT was.grouped AND was.client_id IS NOT DISTINCT FROM l.client_id AND was.created_date = l.created_date
                    AND {ended l was.ttl})
  RETURNING lock_key, region, client_id
), come AS (
  DELETE FROM obs_wait WHERE waiter = $9::char(36) AND EXISTS (SELECT 1 FROM l)
), noted AS (
  INSERT INTO obs_lock AS o (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness, metadata)
  SELECT lock_key, region, client_id, nextval('obs_fence'), $5, $6, $7, ($4 * 1000)::bigint, clock_timestamp(), '', '', $8
    FROM l
  ` + lockdb.Described + `
  RETURNING fence
)
SELECT noted.fence, was.expired, was.released, was.node FROM noted, was`,

	Claim: `
INSERT INTO int_lock AS l (lock_key, region, client_id, {cols})
SELECT want.lock_key, want.region, want.client_id, {vals want.ttl}
  FROM (SELECT k::char(36) AS lock_key, g::varchar(100) AS region, c::char(36) AS client_id, s AS ttl
          FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[]) AS u(k, g, c, s)) want
 ORDER BY want.lock_key, want.region
ON CONFLICT (lock_key, region) DO UPDATE SET client_id = l.client_id`,

	Grant: `
WITH want AS (
  SELECT n, k::char(36) AS lock_key, g::varchar(100) AS region, c::char(36) AS own, s AS ttl, t::char(36) AS term,
         m AS mode, name, node, d AS descriptor, meta AS metadata, w::char(36) AS waiter, priority, ticket, holds
    FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
                $11::text[], $12::integer[], $13::bigint[], $14::text[])
         WITH ORDINALITY AS u(k, g, c, s, t, m, name, node, d, meta, w, priority, ticket, holds, n)
), cur AS (
  SELECT want.*, l.client_id, l.client_id = want.own AS fresh, o.ttl_ms / 1000.0 AS lasts, COALESCE(o.node, '') AS former, ` + released + `,
         ` + standing + `,
         ` + behind + ` AS behind
    FROM want
    JOIN int_lock l ON l.lock_key = want.lock_key AND l.region = want.region
    LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
), fit AS (
  SELECT cur.*, (fresh OR CASE WHEN grouped THEN NOT lives ELSE expired END) AND NOT behind AS free,
         grouped AND lives AND NOT refuses AND NOT behind AS joins
    FROM cur
), verdict AS (
  SELECT COALESCE(bool_and(free OR joins), FALSE) AND count(*) = (SELECT count(*) FROM want) AS ok FROM fit
), taken AS MATERIALIZED (
  SELECT fit.n, fit.lock_key, fit.region, fit.term, fit.mode, fit.mode <> 'exclusive' AS shares, fit.name, fit.node, fit.descriptor, fit.metadata,
         CASE WHEN joins THEN client_id ELSE own END AS client_id, (fit.ttl * 1000)::bigint AS ttl_ms,
         CASE WHEN joins THEN GREATEST(fit.ttl, fit.lasts) ELSE fit.ttl END AS ttl, nextval('obs_fence') AS fence
    FROM fit, verdict
   WHERE verdict.ok
), touched AS (
  UPDATE int_lock l
     SET client_id = want.client_id, {touch want.ttl}
    FROM taken want
   WHERE l.lock_key = want.lock_key AND l.region = want.region
), noted AS (
  INSERT INTO obs_lock AS o (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness, metadata, group_term)
  SELECT lock_key, region, client_id, fence, name, CASE WHEN shares THEN '' ELSE node END, CASE WHEN shares THEN '' ELSE descriptor END,
         (ttl * 1000)::bigint, clock_timestamp(), '', '',
         CASE WHEN shares THEN '' ELSE metadata END, CASE WHEN shares THEN client_id ELSE '' END
    FROM taken
  ` + lockdb.Described + `, group_term = excluded.group_term
), ended AS MATERIALIZED (
  SELECT h.lock_key, h.region, h.term
    FROM obs_hold h
    JOIN taken ON h.lock_key = taken.lock_key AND h.region = taken.region
     AND (h.group_term <> taken.client_id OR (NOT {live h} AND {conflict h.mode taken.mode}))
), reaped AS (
  DELETE FROM obs_hold h
   USING ended
   WHERE h.lock_key = ended.lock_key AND h.region = ended.region AND h.term = ended.term
), held AS (
  INSERT INTO obs_hold (lock_key, region, term, group_term, mode, fence, name, node, descriptor, metadata, ttl_ms, acquired_at, touched_at)
  SELECT lock_key, region, term, client_id, mode, fence, name, node, descriptor, metadata, ttl_ms, clock_timestamp(), clock_timestamp()
    FROM taken
   WHERE shares
), places AS MATERIALIZED (
  SELECT w.waiter, w.lock_key, w.region
    FROM obs_wait w
   WHERE w.waiter = (SELECT want.waiter FROM want, verdict WHERE verdict.ok AND want.n = 1)
   ORDER BY w.lock_key, w.region
     FOR UPDATE OF w
), come AS (
  DELETE FROM obs_wait w
   USING places
   WHERE w.waiter = places.waiter AND w.lock_key = places.lock_key AND w.region = places.region
), undone AS (
  DELETE FROM int_lock l
   USING fit, verdict
   WHERE NOT verdict.ok AND fit.fresh AND l.lock_key = fit.lock_key AND l.region = fit.region
)
SELECT fit.free OR fit.joins, COALESCE(taken.fence, 0), NOT fit.fresh AND fit.free, fit.released, fit.former
  FROM fit
  LEFT JOIN taken ON taken.n = fit.n
 ORDER BY fit.n`,

	RenewHolds: `
WITH want AS (
  SELECT n, k::char(36) AS lock_key, g::varchar(100) AS region, t::char(36) AS term
    FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS u(k, g, t, n)
), due AS (
  SELECT l.lock_key, l.region, h.term, h.ttl_ms / 1000.0 AS ttl
    FROM int_lock l
    JOIN obs_hold h ON h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id
    JOIN want ON h.lock_key = want.lock_key AND h.region = want.region AND h.term = want.term
   WHERE {live h}
   ORDER BY l.lock_key, l.region, h.term
     FOR UPDATE OF l, h SKIP LOCKED
), touched AS (
  UPDATE int_lock l
     SET {prolong l want.ttl}
    FROM (SELECT lock_key, region, max(ttl) AS ttl FROM due GROUP BY lock_key, region) want
   WHERE l.lock_key = want.lock_key AND l.region = want.region
), renewed AS (
  UPDATE obs_hold h
     SET touched_at = clock_timestamp()
    FROM due
   WHERE h.lock_key = due.lock_key AND h.region = due.region AND h.term = due.term
  RETURNING h.lock_key, h.region, h.term
)
SELECT renewed.term IS NOT NULL, EXISTS (
       SELECT 1
         FROM obs_hold h
         JOIN int_lock l ON l.lock_key = h.lock_key AND l.region = h.region AND l.client_id = h.group_term
        WHERE h.lock_key = want.lock_key AND h.region = want.region AND h.term = want.term AND {live h})
  FROM want
  LEFT JOIN renewed ON renewed.lock_key = want.lock_key AND renewed.region = want.region AND renewed.term = want.term
 ORDER BY want.n`,

	ReleaseHold: `
WITH gone AS (
  DELETE FROM obs_hold WHERE lock_key = $1 AND region = $2 AND term = $3 RETURNING group_term
), last AS (
  DELETE FROM int_lock l USING gone
   WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = gone.group_term AND ` + vacant + `
)
SELECT EXISTS (SELECT 1 FROM int_lock l, gone WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = gone.group_term)`,

	PinHold: `
SELECT 1 FROM obs_hold WHERE lock_key = $1 AND region = $2 AND term = $3{nowait}`,

	Note: `
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
   SET touched_at = excluded.touched_at`,

	Wait: `
WITH want AS (
  SELECT n, w::char(36) AS waiter, k::char(36) AS lock_key, g::varchar(100) AS region, m AS mode, s AS ttl, p AS priority, h AS holds
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::float8[], $6::integer[], $7::text[]) WITH ORDINALITY AS u(w, k, g, m, s, p, h, n)
)
SELECT want.ticket, ` + come + `
  FROM (SELECT want.*, own.ticket
          FROM want
          JOIN obs_wait own ON own.waiter = want.waiter AND own.lock_key = want.lock_key AND own.region = want.region) want
 ORDER BY want.n`,

	Group: groupSQL, GuardHold: guardHoldSQL, LockRow: lockRowSQL, Reap: reapSQL,
	EndAlone: endAloneSQL, EndGroup: endGroupSQL, EndHold: endHoldSQL,
	Extend: extendSQL, ExtendRow: extendRowSQL, ExtendGroup: extendGroupSQL, ExtendHold: extendHoldSQL,
	Delay: delaySQL, DelayLock: delayLockSQL, DelayGroup: delayGroupSQL, DelayHold: delayHoldSQL,
	RedateHolds: redateHoldsSQL, LeaveLine: leaveLineSQL, Ahead: aheadSQL,
	SeenAlone: seenAloneSQL, SeenHold: seenHoldSQL, Refusing: refusingSQL,
	Find: findSQL, NoteFailures: noteFailuresSQL, KindStats: kindStatsSQL, FailedLocks: failedLocksSQL,
}

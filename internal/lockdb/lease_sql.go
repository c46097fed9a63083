package lockdb

import "github.com/observerd/observerd/internal/lockdb/liveness"

// leaseSQL are the statements of [Leases]; see Rendering.SQL in package sqldb for their tokens.
type leaseSQL struct {
	// Acquire takes a free or expired lock in one round trip, on PostgreSQL.
	Acquire string
	// Former, Take and Describe do it in one transaction, on SQLite.
	Former, Take, Describe string
	// Renew is of many leases, on PostgreSQL. SQLite renews each by Guard.
	Renew string
	// Guard makes a lease run anew if its term still holds it.
	Guard string
	// Release deletes the row unless another client has locked it; Holds reports whether it
	// stands.
	Release, Holds string
	// Holder describes the lock of a row.
	Holder string
	// Redate dates a lease of ours now that is dated in the future.
	Redate string
	// Locks returns at most $2 rows of INT_LOCK: those of the pollers, in the regions $1, first.
	// General locks are in other regions, and may be many: their number must not matter.
	Locks string
}

// underLease is a condition of statements that must write nothing once the lease has ended:
// it is true while the lease lives, and keeps it from being stolen until the transaction
// ends. Its parameters are the first four; those of the statement follow from $5. See
// [fencedArgs].
const underLease = `EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = $3 AND {alive l $4}{share})`

// Described has an acquisition describe itself in obs_lock in place of the one before.
const Described = `ON CONFLICT (lock_key, region) DO UPDATE
   SET term = excluded.term, fence = excluded.fence, name = excluded.name, node = excluded.node,
       descriptor = excluded.descriptor, ttl_ms = excluded.ttl_ms, acquired_at = excluded.acquired_at,
       boot_id = excluded.boot_id, liveness = excluded.liveness,
       metadata = excluded.metadata`

// The token is drawn in the outer statement of Acquire, when the row of INT_LOCK is already
// locked: drawn before it, tokens would run backwards between contenders. The TTL of the
// holder is read before the row is locked, so it counts for the row that was seen then alone.
//
// Renew locks rows in the order of their keys, so that two such statements cannot deadlock,
// and skips a row that another client has locked: its state is not known then.
var postgresLeaseSQL = leaseSQL{
	Acquire: `
WITH was AS (
  SELECT COALESCE({expired l $4::float8}, FALSE) AS expired, COALESCE(o.liveness, '') AS liveness,
         COALESCE(CASE WHEN l.client_id = o.term OR l.client_id IS NULL THEN o.node END, '') AS node
    FROM (SELECT 1 AS one) x
    LEFT JOIN int_lock l ON l.lock_key = $1 AND l.region = $2
    LEFT JOIN obs_lock o ON o.lock_key = $1 AND o.region = $2
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
)
INSERT INTO obs_lock AS o (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness, metadata)
SELECT lock_key, region, client_id, nextval('obs_fence'), $5, $6, $7, ($4 * 1000)::bigint, clock_timestamp(), $8, $9, $10
  FROM l
` + Described + `
RETURNING fence, (SELECT expired FROM was), (SELECT liveness FROM was), (SELECT node FROM was)`,
	Renew: `
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
 ORDER BY want.n`,
	Guard: guardSQL, Release: liveness.ReleaseSQL, Holds: holdsSQL, Holder: holderSQL, Redate: redateSQL, Locks: locksSQL,
}

// A row that could be taken had ended. Asked a moment before, in a statement of its own, it
// might not have.
var sqliteLeaseSQL = leaseSQL{
	Former: `
SELECT l.client_id IS NOT NULL AS expired, COALESCE(o.liveness, '') AS liveness,
       COALESCE(CASE WHEN l.client_id = o.term OR l.client_id IS NULL THEN o.node END, '') AS node
  FROM (SELECT 1 AS one) x
  LEFT JOIN int_lock l ON l.lock_key = $1 AND l.region = $2
  LEFT JOIN obs_lock o ON o.lock_key = $1 AND o.region = $2`,
	Take: `
INSERT INTO int_lock AS l (lock_key, region, client_id, {cols})
VALUES ($1, $2, $3, {vals $4})
ON CONFLICT (lock_key, region) DO UPDATE
   SET client_id = excluded.client_id, {touch $4}
 WHERE {expired l $4}
RETURNING client_id`,
	Describe: `
INSERT INTO obs_lock (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness, metadata)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, {now}, $9, $10, $11)
` + Described,
	Guard: guardSQL, Release: liveness.ReleaseSQL, Holds: holdsSQL, Holder: holderSQL, Redate: redateSQL, Locks: locksSQL,
}

const (
	guardSQL = `
UPDATE int_lock AS l
   SET {touch $4}
 WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND {alive l $4}`

	holdsSQL = `
SELECT EXISTS (SELECT 1 FROM int_lock WHERE lock_key = $1 AND region = $2 AND client_id = $3)`

	// holderTTL is the TTL of the holder, and that of the request for a foreign one.
	holderTTL = `COALESCE(o.ttl_ms / 1000.0, CAST($3 AS DOUBLE PRECISION))`

	holderSQL = `
SELECT l.client_id, {alive l ` + holderTTL + `}, ` + holderTTL + `, {began l ` + holderTTL + `}, {utc}, o.node, o.fence, o.term IS NOT NULL AND l.created_date > {utc}
  FROM int_lock l
  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
 WHERE l.lock_key = $1 AND l.region = $2`

	// The database's clock alone dates our leases. One that is dated in the future was
	// renewed before that clock went back, which says nothing about its holder. A caller
	// that is refused by it dates it now: a holder that lives renews it within a third of its
	// TTL, and that of one that is dead ends a TTL later. A row that another client has
	// locked is left to the next caller, and rows that are not ours are left alone.
	redateSQL = `
UPDATE int_lock AS l
   SET {touch o.ttl_ms / 1000.0}
  FROM obs_lock o
 WHERE l.lock_key = $1 AND l.region = $2 AND l.created_date > {utc}
   AND o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
   AND EXISTS (SELECT 1 FROM int_lock WHERE lock_key = $1 AND region = $2{skip})`

	locksSQL = `
SELECT l.lock_key, l.region, l.client_id, l.created_date, {utc}, o.name, o.node, o.fence, o.ttl_ms, o.acquired_at,
       coalesce(CASE WHEN o.group_term = o.term THEN (
         SELECT max(h.descriptor) FROM obs_hold h
          WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id) ELSE o.descriptor END, ''),
       (SELECT count(*) FROM obs_wait w WHERE w.lock_key = l.lock_key AND w.region = l.region AND w.touched_at >= {ago 5}),
       CASE WHEN o.group_term = o.term THEN (
         SELECT count(*) FROM obs_hold h
          WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND {live h}) ELSE 0 END,
       (SELECT count(*) FROM (SELECT 1 FROM int_lock LIMIT $3) counted)
  FROM (
    SELECT * FROM (
      SELECT l.*, 0 AS part
        FROM obs_lock o
        JOIN int_lock l ON l.lock_key = o.lock_key AND l.region = o.region
       WHERE o.region {among $1}
       ORDER BY o.region, o.lock_key
       LIMIT $2) pollers
    UNION ALL
    SELECT * FROM (
      SELECT l.*, 1 AS part
        FROM int_lock l
       WHERE NOT EXISTS (SELECT 1 FROM obs_lock o WHERE o.lock_key = l.lock_key AND o.region = l.region AND o.region {among $1})
       ORDER BY l.lock_key, l.region
       LIMIT $2) others
     ORDER BY part, region, lock_key
     LIMIT $2) l
  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
 ORDER BY l.part, l.region, l.lock_key`
)

-- Acquire
PREPARE "Acquire" AS
WITH was AS (
  SELECT COALESCE((l.created_date < ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => COALESCE(o.ttl_ms / 1000.0, $4::float8)))), FALSE) AS expired, COALESCE(o.group_term = l.client_id, FALSE) AS grouped,
         COALESCE(o.liveness = 'released', FALSE) AS released, COALESCE(o.node, '') AS node, l.client_id, l.created_date, COALESCE(o.ttl_ms / 1000.0, $4::float8) AS ttl
    FROM (SELECT 1 AS one) x
    LEFT JOIN int_lock l ON l.lock_key = $1 AND l.region = $2
    LEFT JOIN obs_lock o ON o.lock_key = $1 AND o.region = $2 AND o.term = l.client_id
), l AS (
  INSERT INTO int_lock AS l (lock_key, region, client_id, created_date)
  SELECT $1, $2, $3, (clock_timestamp() AT TIME ZONE 'UTC')
    FROM (SELECT $1::char(36) AS lock_key, $2::varchar(100) AS region, 'exclusive' AS mode, $9::char(36) AS waiter,
                 $10::integer AS priority, $11::bigint AS ticket, $12::text AS holds) want
   WHERE NOT EXISTS (SELECT 1 FROM obs_wait w WHERE w.lock_key = want.lock_key AND w.region = want.region AND w.waiter <> want.waiter AND w.touched_at >= (clock_timestamp() - make_interval(secs => 5)) AND w.touched_at <= (clock_timestamp() + make_interval(secs => 2 * 5))
         AND (w.priority > want.priority OR (w.priority = want.priority AND w.ticket < want.ticket))
         AND (w.mode = 'exclusive' OR want.mode = 'exclusive'
       OR (w.mode = 'shared' AND want.mode = 'intent-exclusive') OR (w.mode = 'intent-exclusive' AND want.mode = 'shared'))
         AND NOT (want.holds <> '' AND EXISTS (
             SELECT 1
               FROM obs_wait o
              WHERE o.region = want.region AND o.waiter <> want.waiter
                AND o.touched_at >= (clock_timestamp() - make_interval(secs => 5)) AND o.touched_at <= (clock_timestamp() + make_interval(secs => 2 * 5))
                AND replace(want.holds, '|' || o.mode || ' ' || o.lock_key || '|', '') <> want.holds)))
  ON CONFLICT (lock_key, region) DO UPDATE
     SET client_id = excluded.client_id, created_date = (clock_timestamp() AT TIME ZONE 'UTC')
   WHERE EXISTS (SELECT 1 FROM was
                  WHERE was.expired AND NOT was.grouped AND was.client_id IS NOT DISTINCT FROM l.client_id AND was.created_date = l.created_date
                    AND (l.created_date < ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => was.ttl))))
  RETURNING lock_key, region, client_id
), come AS (
  DELETE FROM obs_wait WHERE waiter = $9::char(36) AND EXISTS (SELECT 1 FROM l)
), noted AS (
  INSERT INTO obs_lock AS o (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness, metadata)
  SELECT lock_key, region, client_id, nextval('obs_fence'), $5, $6, $7, ($4 * 1000)::bigint, clock_timestamp(), '', '', $8
    FROM l
  ON CONFLICT (lock_key, region) DO UPDATE
   SET term = excluded.term, fence = excluded.fence, name = excluded.name, node = excluded.node,
       descriptor = excluded.descriptor, ttl_ms = excluded.ttl_ms, acquired_at = excluded.acquired_at,
       boot_id = excluded.boot_id, liveness = excluded.liveness,
       metadata = excluded.metadata
  RETURNING fence
)
SELECT noted.fence, was.expired, was.released, was.node FROM noted, was;

-- Claim
PREPARE "Claim" AS
INSERT INTO int_lock AS l (lock_key, region, client_id, created_date)
SELECT want.lock_key, want.region, want.client_id, (clock_timestamp() AT TIME ZONE 'UTC')
  FROM (SELECT k::char(36) AS lock_key, g::varchar(100) AS region, c::char(36) AS client_id, s AS ttl
          FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[]) AS u(k, g, c, s)) want
 ORDER BY want.lock_key, want.region
ON CONFLICT (lock_key, region) DO UPDATE SET client_id = l.client_id;

-- Grant
PREPARE "Grant" AS
WITH want AS (
  SELECT n, k::char(36) AS lock_key, g::varchar(100) AS region, c::char(36) AS own, s AS ttl, t::char(36) AS term,
         m AS mode, name, node, d AS descriptor, meta AS metadata, w::char(36) AS waiter, priority, ticket, holds
    FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
                $11::text[], $12::integer[], $13::bigint[], $14::text[])
         WITH ORDINALITY AS u(k, g, c, s, t, m, name, node, d, meta, w, priority, ticket, holds, n)
), cur AS (
  SELECT want.*, l.client_id, l.client_id = want.own AS fresh, o.ttl_ms / 1000.0 AS lasts, COALESCE(o.node, '') AS former, COALESCE(o.liveness = 'released', FALSE) AS released,
         COALESCE(o.group_term = l.client_id, FALSE) AS grouped,
         EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND (h.touched_at >= (clock_timestamp() - make_interval(secs => h.ttl_ms / 1000.0)))) AS lives,
         EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND (h.touched_at >= (clock_timestamp() - make_interval(secs => h.ttl_ms / 1000.0)))
                    AND (h.mode = 'exclusive' OR want.mode = 'exclusive'
       OR (h.mode = 'shared' AND want.mode = 'intent-exclusive') OR (h.mode = 'intent-exclusive' AND want.mode = 'shared'))) AS refuses,
         COALESCE((l.created_date < ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => COALESCE(o.ttl_ms / 1000.0, want.ttl)))), FALSE) AS expired,
         EXISTS (SELECT 1 FROM obs_wait w WHERE w.lock_key = want.lock_key AND w.region = want.region AND w.waiter <> want.waiter AND w.touched_at >= (clock_timestamp() - make_interval(secs => 5)) AND w.touched_at <= (clock_timestamp() + make_interval(secs => 2 * 5))
         AND (w.priority > want.priority OR (w.priority = want.priority AND w.ticket < want.ticket))
         AND (w.mode = 'exclusive' OR want.mode = 'exclusive'
       OR (w.mode = 'shared' AND want.mode = 'intent-exclusive') OR (w.mode = 'intent-exclusive' AND want.mode = 'shared'))
         AND NOT (want.holds <> '' AND EXISTS (
             SELECT 1
               FROM obs_wait o
              WHERE o.region = want.region AND o.waiter <> want.waiter
                AND o.touched_at >= (clock_timestamp() - make_interval(secs => 5)) AND o.touched_at <= (clock_timestamp() + make_interval(secs => 2 * 5))
                AND replace(want.holds, '|' || o.mode || ' ' || o.lock_key || '|', '') <> want.holds))) AS behind
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
     SET client_id = want.client_id, created_date = (clock_timestamp() AT TIME ZONE 'UTC')
    FROM taken want
   WHERE l.lock_key = want.lock_key AND l.region = want.region
), noted AS (
  INSERT INTO obs_lock AS o (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness, metadata, group_term)
  SELECT lock_key, region, client_id, fence, name, CASE WHEN shares THEN '' ELSE node END, CASE WHEN shares THEN '' ELSE descriptor END,
         (ttl * 1000)::bigint, clock_timestamp(), '', '',
         CASE WHEN shares THEN '' ELSE metadata END, CASE WHEN shares THEN client_id ELSE '' END
    FROM taken
  ON CONFLICT (lock_key, region) DO UPDATE
   SET term = excluded.term, fence = excluded.fence, name = excluded.name, node = excluded.node,
       descriptor = excluded.descriptor, ttl_ms = excluded.ttl_ms, acquired_at = excluded.acquired_at,
       boot_id = excluded.boot_id, liveness = excluded.liveness,
       metadata = excluded.metadata, group_term = excluded.group_term
), ended AS MATERIALIZED (
  SELECT h.lock_key, h.region, h.term
    FROM obs_hold h
    JOIN taken ON h.lock_key = taken.lock_key AND h.region = taken.region
     AND (h.group_term <> taken.client_id OR (NOT (h.touched_at >= (clock_timestamp() - make_interval(secs => h.ttl_ms / 1000.0))) AND (h.mode = 'exclusive' OR taken.mode = 'exclusive'
       OR (h.mode = 'shared' AND taken.mode = 'intent-exclusive') OR (h.mode = 'intent-exclusive' AND taken.mode = 'shared'))))
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
 ORDER BY fit.n;

-- Group
PREPARE "Group" AS
SELECT h.node, h.mode, h.touched_at, h.ttl_ms, clock_timestamp()
  FROM int_lock l
  JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id AND o.group_term = o.term
  LEFT JOIN obs_hold h ON h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND (h.touched_at >= (clock_timestamp() - make_interval(secs => h.ttl_ms / 1000.0)))
 WHERE l.lock_key = $1 AND l.region = $2
 ORDER BY CASE WHEN (h.mode = 'exclusive' OR $3 = 'exclusive'
       OR (h.mode = 'shared' AND $3 = 'intent-exclusive') OR (h.mode = 'intent-exclusive' AND $3 = 'shared')) THEN 0 ELSE 1 END, h.touched_at DESC
 LIMIT 1;

-- RenewHolds
PREPARE "RenewHolds" AS
WITH want AS (
  SELECT n, k::char(36) AS lock_key, g::varchar(100) AS region, t::char(36) AS term
    FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS u(k, g, t, n)
), due AS (
  SELECT l.lock_key, l.region, h.term, h.ttl_ms / 1000.0 AS ttl
    FROM int_lock l
    JOIN obs_hold h ON h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id
    JOIN want ON h.lock_key = want.lock_key AND h.region = want.region AND h.term = want.term
   WHERE (h.touched_at >= (clock_timestamp() - make_interval(secs => h.ttl_ms / 1000.0)))
   ORDER BY l.lock_key, l.region, h.term
     FOR UPDATE OF l, h SKIP LOCKED
), touched AS (
  UPDATE int_lock l
     SET created_date = (clock_timestamp() AT TIME ZONE 'UTC')
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
        WHERE h.lock_key = want.lock_key AND h.region = want.region AND h.term = want.term AND (h.touched_at >= (clock_timestamp() - make_interval(secs => h.ttl_ms / 1000.0))))
  FROM want
  LEFT JOIN renewed ON renewed.lock_key = want.lock_key AND renewed.region = want.region AND renewed.term = want.term
 ORDER BY want.n;

-- GuardHold
PREPARE "GuardHold" AS
UPDATE obs_hold AS h
   SET touched_at = clock_timestamp()
 WHERE lock_key = $1 AND region = $2 AND term = $3 AND (h.touched_at >= (clock_timestamp() - make_interval(secs => h.ttl_ms / 1000.0)))
   AND EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = h.group_term);

-- LockRow
PREPARE "LockRow" AS
SELECT client_id FROM int_lock WHERE lock_key = $1 AND region = $2 FOR UPDATE;

-- PinHold
PREPARE "PinHold" AS
SELECT 1 FROM obs_hold WHERE lock_key = $1 AND region = $2 AND term = $3 FOR UPDATE NOWAIT;

-- Reap
PREPARE "Reap" AS
DELETE FROM obs_hold
 WHERE lock_key = $1 AND region = $2 AND term IN (
       SELECT h.term FROM obs_hold h WHERE h.lock_key = $1 AND h.region = $2 AND h.term <> $3 AND NOT (h.touched_at >= (clock_timestamp() - make_interval(secs => h.ttl_ms / 1000.0))) FOR UPDATE SKIP LOCKED);

-- ReleaseHold
PREPARE "ReleaseHold" AS
WITH gone AS (
  DELETE FROM obs_hold WHERE lock_key = $1 AND region = $2 AND term = $3 RETURNING group_term
), last AS (
  DELETE FROM int_lock l USING gone
   WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = gone.group_term AND NOT EXISTS (SELECT 1 FROM obs_hold h
       WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND h.term <> $3)
)
SELECT EXISTS (SELECT 1 FROM int_lock l, gone WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = gone.group_term);

-- EndAlone
PREPARE "EndAlone" AS
DELETE FROM int_lock
 WHERE lock_key = $1 AND region = $2 AND client_id = $3
   AND NOT EXISTS (SELECT 1 FROM obs_lock o WHERE o.lock_key = $1 AND o.region = $2 AND o.group_term = $3);

-- EndGroup
PREPARE "EndGroup" AS
DELETE FROM int_lock AS l
 WHERE lock_key = $1 AND region = $2
   AND EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND h.term = $3)
   AND NOT EXISTS (SELECT 1 FROM obs_hold h
       WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND h.term <> $3);

-- EndHold
PREPARE "EndHold" AS
DELETE FROM obs_hold WHERE lock_key = $1 AND region = $2 AND term = $3;

-- Extend
PREPARE "Extend" AS
UPDATE obs_lock SET ttl_ms = $4 WHERE lock_key = $1 AND region = $2 AND term = $3;

-- ExtendRow
PREPARE "ExtendRow" AS
UPDATE int_lock AS l
   SET created_date = (clock_timestamp() AT TIME ZONE 'UTC')
 WHERE lock_key = $1 AND region = $2
   AND EXISTS (SELECT 1 FROM obs_hold h
                WHERE h.lock_key = $1 AND h.region = $2 AND h.term = $3 AND h.group_term = l.client_id AND (h.touched_at >= (clock_timestamp() - make_interval(secs => h.ttl_ms / 1000.0)))
                  AND CAST($4 AS DOUBLE PRECISION) IS NOT NULL);

-- ExtendGroup
PREPARE "ExtendGroup" AS
UPDATE obs_lock
   SET ttl_ms = CASE WHEN ttl_ms < $4 THEN $4 ELSE ttl_ms END
 WHERE lock_key = $1 AND region = $2
   AND term = (SELECT h.group_term FROM obs_hold h WHERE h.lock_key = $1 AND h.region = $2 AND h.term = $3);

-- ExtendHold
PREPARE "ExtendHold" AS
UPDATE obs_hold AS h
   SET touched_at = clock_timestamp(), ttl_ms = $4
 WHERE lock_key = $1 AND region = $2 AND term = $3 AND (h.touched_at >= (clock_timestamp() - make_interval(secs => h.ttl_ms / 1000.0)));

-- Delay
PREPARE "Delay" AS
UPDATE int_lock AS l
   SET client_id = $5, created_date = (clock_timestamp() AT TIME ZONE 'UTC')
 WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND CAST($4 AS DOUBLE PRECISION) IS NOT NULL;

-- DelayLock
PREPARE "DelayLock" AS
UPDATE obs_lock
   SET term = $4, boot_id = '', liveness = 'released', ttl_ms = $5
 WHERE lock_key = $1 AND region = $2 AND term = $3;

-- DelayGroup
PREPARE "DelayGroup" AS
UPDATE obs_lock
   SET liveness = 'released'
 WHERE lock_key = $1 AND region = $2
   AND term = (SELECT h.group_term FROM obs_hold h WHERE h.lock_key = $1 AND h.region = $2 AND h.term = $3);

-- DelayHold
PREPARE "DelayHold" AS
UPDATE obs_hold SET term = $4 WHERE lock_key = $1 AND region = $2 AND term = $3;

-- RedateHolds
PREPARE "RedateHolds" AS
UPDATE obs_hold
   SET touched_at = clock_timestamp()
 WHERE lock_key = $1 AND region = $2 AND touched_at > clock_timestamp()
   AND term IN (SELECT term FROM obs_hold WHERE lock_key = $1 AND region = $2 FOR UPDATE SKIP LOCKED);

-- Note
PREPARE "Note" AS
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
   SET touched_at = excluded.touched_at;

-- Wait
PREPARE "Wait" AS
WITH want AS (
  SELECT n, w::char(36) AS waiter, k::char(36) AS lock_key, g::varchar(100) AS region, m AS mode, s AS ttl, p AS priority, h AS holds
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::float8[], $6::integer[], $7::text[]) WITH ORDINALITY AS u(w, k, g, m, s, p, h, n)
)
SELECT want.ticket, NOT EXISTS (SELECT 1 FROM obs_wait w WHERE w.lock_key = want.lock_key AND w.region = want.region AND w.waiter <> want.waiter AND w.touched_at >= (clock_timestamp() - make_interval(secs => 5)) AND w.touched_at <= (clock_timestamp() + make_interval(secs => 2 * 5))
         AND (w.priority > want.priority OR (w.priority = want.priority AND w.ticket < want.ticket))
         AND (w.mode = 'exclusive' OR want.mode = 'exclusive'
       OR (w.mode = 'shared' AND want.mode = 'intent-exclusive') OR (w.mode = 'intent-exclusive' AND want.mode = 'shared'))
         AND NOT (want.holds <> '' AND EXISTS (
             SELECT 1
               FROM obs_wait o
              WHERE o.region = want.region AND o.waiter <> want.waiter
                AND o.touched_at >= (clock_timestamp() - make_interval(secs => 5)) AND o.touched_at <= (clock_timestamp() + make_interval(secs => 2 * 5))
                AND replace(want.holds, '|' || o.mode || ' ' || o.lock_key || '|', '') <> want.holds))) AND NOT EXISTS (
       SELECT 1
         FROM (SELECT l.lock_key, COALESCE(o.group_term = l.client_id, FALSE) AS grouped,
         EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND (h.touched_at >= (clock_timestamp() - make_interval(secs => h.ttl_ms / 1000.0)))) AS lives,
         EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND (h.touched_at >= (clock_timestamp() - make_interval(secs => h.ttl_ms / 1000.0)))
                    AND (h.mode = 'exclusive' OR want.mode = 'exclusive'
       OR (h.mode = 'shared' AND want.mode = 'intent-exclusive') OR (h.mode = 'intent-exclusive' AND want.mode = 'shared'))) AS refuses,
         COALESCE((l.created_date < ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => COALESCE(o.ttl_ms / 1000.0, want.ttl)))), FALSE) AS expired
                 FROM int_lock l
                 LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
                WHERE l.lock_key = want.lock_key AND l.region = want.region) held
        WHERE CASE WHEN held.grouped THEN held.refuses ELSE NOT held.expired END)
  FROM (SELECT want.*, own.ticket
          FROM want
          JOIN obs_wait own ON own.waiter = want.waiter AND own.lock_key = want.lock_key AND own.region = want.region) want
 ORDER BY want.n;

-- LeaveLine
PREPARE "LeaveLine" AS
DELETE FROM obs_wait WHERE waiter = ANY ($1::text[]);

-- Ahead
PREPARE "Ahead" AS
SELECT w.node
  FROM (SELECT CAST($1 AS CHAR(36)) AS lock_key, CAST($2 AS VARCHAR(100)) AS region, CAST($3 AS VARCHAR(36)) AS mode,
               CAST($4 AS CHAR(36)) AS waiter, CAST($5 AS INTEGER) AS priority, CAST($6 AS BIGINT) AS ticket, CAST($7 AS TEXT) AS holds,
               CAST($8 AS DOUBLE PRECISION) AS ttl) want
  JOIN obs_wait w ON w.lock_key = want.lock_key AND w.region = want.region AND w.waiter <> want.waiter AND w.touched_at >= (clock_timestamp() - make_interval(secs => 5)) AND w.touched_at <= (clock_timestamp() + make_interval(secs => 2 * 5))
         AND (w.priority > want.priority OR (w.priority = want.priority AND w.ticket < want.ticket))
         AND (w.mode = 'exclusive' OR want.mode = 'exclusive'
       OR (w.mode = 'shared' AND want.mode = 'intent-exclusive') OR (w.mode = 'intent-exclusive' AND want.mode = 'shared'))
         AND NOT (want.holds <> '' AND EXISTS (
             SELECT 1
               FROM obs_wait o
              WHERE o.region = want.region AND o.waiter <> want.waiter
                AND o.touched_at >= (clock_timestamp() - make_interval(secs => 5)) AND o.touched_at <= (clock_timestamp() + make_interval(secs => 2 * 5))
                AND replace(want.holds, '|' || o.mode || ' ' || o.lock_key || '|', '') <> want.holds))
 ORDER BY w.priority DESC, w.ticket
 LIMIT 1;

-- SeenAlone
PREPARE "SeenAlone" AS
SELECT CAST(created_date AS TEXT)
  FROM int_lock
 WHERE lock_key = $1 AND region = $2 AND client_id = $3
   AND NOT EXISTS (SELECT 1 FROM obs_lock o WHERE o.lock_key = $1 AND o.region = $2 AND o.group_term = $3);

-- SeenHold
PREPARE "SeenHold" AS
SELECT CAST(h.touched_at AT TIME ZONE 'UTC' AS TEXT)
  FROM obs_hold h
  JOIN int_lock l ON l.lock_key = h.lock_key AND l.region = h.region AND l.client_id = h.group_term
 WHERE h.lock_key = $1 AND h.region = $2 AND h.term = $3 FOR UPDATE;

-- Refusing
PREPARE "Refusing" AS
SELECT h.node, h.touched_at, h.ttl_ms, clock_timestamp()
  FROM obs_hold h
  JOIN int_lock l ON l.lock_key = h.lock_key AND l.region = h.region AND l.client_id = h.group_term
 WHERE h.lock_key = $1 AND h.region = $2 AND (h.touched_at >= (clock_timestamp() - make_interval(secs => h.ttl_ms / 1000.0))) AND (h.mode = 'exclusive' OR $3 = 'exclusive'
       OR (h.mode = 'shared' AND $3 = 'intent-exclusive') OR (h.mode = 'intent-exclusive' AND $3 = 'shared'))
 ORDER BY h.touched_at DESC
 LIMIT 1;

-- Find
PREPARE "Find" AS
SELECT held.*, (SELECT count(*) FROM obs_wait w WHERE w.lock_key = held.lock_key AND w.region = $1 AND w.touched_at >= (clock_timestamp() - make_interval(secs => 5)) AND w.touched_at <= (clock_timestamp() + make_interval(secs => 2 * 5))), clock_timestamp()
  FROM (
    SELECT * FROM (
    SELECT o.lock_key, o.term, 'exclusive' AS mode, o.fence, o.name, o.node, o.descriptor, o.metadata, o.ttl_ms, o.acquired_at,
           (SELECT CAST(l.created_date AS TEXT) FROM int_lock l WHERE l.lock_key = o.lock_key AND l.region = o.region) AS touched
      FROM obs_lock o
     WHERE o.lock_key >= $3 AND (o.lock_key > $3 OR o.term > $4)
       AND (o.lock_key = $6 OR $6 = '')
       AND COALESCE(o.region = $1 AND o.group_term <> o.term AND ($2 = '' OR o.node = $2)
                AND (CAST($7 AS DOUBLE PRECISION) <= 0 OR o.acquired_at <= (clock_timestamp() - make_interval(secs => CAST($7 AS DOUBLE PRECISION))))
                AND NOT EXISTS (SELECT 1 FROM (SELECT n, value FROM unnest($9::text[]) WITH ORDINALITY AS l (value, n)) p WHERE o.descriptor || ':' NOT LIKE p.value ESCAPE '\')
                AND o.term = (SELECT l.client_id FROM int_lock l WHERE l.lock_key = o.lock_key AND l.region = o.region)
                AND (NOT $8 OR (SELECT l.created_date FROM int_lock l WHERE l.lock_key = o.lock_key AND l.region = o.region) <= ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => o.ttl_ms / 1000.0))), FALSE)
     ORDER BY o.lock_key, o.term LIMIT $5) alone
    UNION ALL
    SELECT * FROM (
    SELECT h.lock_key, h.term, h.mode, h.fence, h.name, h.node, h.descriptor, h.metadata, h.ttl_ms, h.acquired_at, CAST(h.touched_at AT TIME ZONE 'UTC' AS TEXT)
      FROM obs_hold h
     WHERE h.lock_key >= $3 AND (h.lock_key > $3 OR h.term > $4)
       AND (h.lock_key = $6 OR $6 = '')
       AND COALESCE(h.region = $1 AND ($2 = '' OR h.node = $2)
                AND (CAST($7 AS DOUBLE PRECISION) <= 0 OR h.acquired_at <= (clock_timestamp() - make_interval(secs => CAST($7 AS DOUBLE PRECISION))))
                AND NOT EXISTS (SELECT 1 FROM (SELECT n, value FROM unnest($9::text[]) WITH ORDINALITY AS l (value, n)) p WHERE h.descriptor || ':' NOT LIKE p.value ESCAPE '\')
                AND h.group_term = (SELECT l.client_id FROM int_lock l WHERE l.lock_key = h.lock_key AND l.region = h.region)
                AND (NOT $8 OR h.touched_at <= (clock_timestamp() - make_interval(secs => h.ttl_ms / 1000.0))), FALSE)
     ORDER BY h.lock_key, h.term LIMIT $5) shared
  ) held
 ORDER BY held.lock_key, held.term
 LIMIT $5;

-- NoteFailures
PREPARE "NoteFailures" AS
INSERT INTO obs_lock_failure AS f (lock_key, region, predicate, subject, name, failures, first_at, last_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, CAST(value ->> 5 AS BIGINT), clock_timestamp(), clock_timestamp()
  FROM json_array_elements($1::json)
 WHERE TRUE
 ORDER BY 1, 2, 3
ON CONFLICT (lock_key, region, predicate) DO UPDATE
   SET failures = f.failures + excluded.failures, last_at = excluded.last_at;

-- KindStats
PREPARE "KindStats" AS
SELECT s.subject, s.predicate, s.active, s.ttl_ms, s.oldest_ms, COALESCE(o.node, ''), s.waiting, s.failures
  FROM (
    SELECT subject, predicate, CAST(sum(active) AS BIGINT) AS active,
           CAST(COALESCE(sum(active * average_ttl_ms) / NULLIF(sum(active), 0), 0) AS BIGINT) AS ttl_ms, COALESCE(max(oldest_ms), 0) AS oldest_ms,
           CAST(sum(waiting) AS BIGINT) AS waiting, CAST(sum(failures) AS BIGINT) AS failures
      FROM obs_lock_stats
     WHERE region = $1
     GROUP BY subject, predicate
  ) s
  LEFT JOIN (
    SELECT subject, predicate, node, row_number() OVER (PARTITION BY subject, predicate ORDER BY acquired_at, fence) AS n
      FROM obs_active_locks
     WHERE region = $1
  ) o ON o.subject = s.subject AND o.predicate = s.predicate AND o.n = 1
 ORDER BY s.subject, s.predicate;

-- FailedLocks
PREPARE "FailedLocks" AS
SELECT name, CAST(sum(failures) AS BIGINT) AS failures, max(last_at)
  FROM obs_lock_failure
 WHERE region = $1
 GROUP BY name
 ORDER BY failures DESC, name
 LIMIT $2;


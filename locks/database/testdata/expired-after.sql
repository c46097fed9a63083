-- Acquire
PREPARE "Acquire" AS
WITH was AS (
  SELECT COALESCE((l.expired_after < (clock_timestamp() AT TIME ZONE 'UTC') AND CAST(COALESCE(o.ttl_ms / 1000.0, $4::float8) AS DOUBLE PRECISION) IS NOT NULL), FALSE) AS expired, COALESCE(o.group_term = l.client_id, FALSE) AS grouped,
         COALESCE(o.liveness = 'released', FALSE) AS released, COALESCE(o.node, '') AS node, l.client_id, l.created_date, COALESCE(o.ttl_ms / 1000.0, $4::float8) AS ttl
    FROM (SELECT 1 AS one) x
    LEFT JOIN int_lock l ON l.lock_key = $1 AND l.region = $2
    LEFT JOIN obs_lock o ON o.lock_key = $1 AND o.region = $2 AND o.term = l.client_id
), l AS (
  INSERT INTO int_lock AS l (lock_key, region, client_id, created_date, expired_after)
  SELECT $1, $2, $3, (clock_timestamp() AT TIME ZONE 'UTC'), ((clock_timestamp() AT TIME ZONE 'UTC') + make_interval(secs => $4::float8))
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
     SET client_id = excluded.client_id, created_date = (clock_timestamp() AT TIME ZONE 'UTC'), expired_after = ((clock_timestamp() AT TIME ZONE 'UTC') + make_interval(secs => $4::float8))
   WHERE EXISTS (SELECT 1 FROM was
                  WHERE was.expired AND NOT was.grouped AND was.client_id IS NOT DISTINCT FROM l.client_id AND was.created_date = l.created_date
                    AND (l.expired_after < (clock_timestamp() AT TIME ZONE 'UTC') AND CAST(was.ttl AS DOUBLE PRECISION) IS NOT NULL))
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
INSERT INTO int_lock AS l (lock_key, region, client_id, created_date, expired_after)
SELECT want.lock_key, want.region, want.client_id, (clock_timestamp() AT TIME ZONE 'UTC'), ((clock_timestamp() AT TIME ZONE 'UTC') + make_interval(secs => want.ttl))
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
         COALESCE((l.expired_after < (clock_timestamp() AT TIME ZONE 'UTC') AND CAST(COALESCE(o.ttl_ms / 1000.0, want.ttl) AS DOUBLE PRECISION) IS NOT NULL), FALSE) AS expired,
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
     SET client_id = want.client_id, created_date = (clock_timestamp() AT TIME ZONE 'UTC'), expired_after = ((clock_timestamp() AT TIME ZONE 'UTC') + make_interval(secs => want.ttl))
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
     SET created_date = (clock_timestamp() AT TIME ZONE 'UTC'), expired_after = GREATEST(l.expired_after, ((clock_timestamp() AT TIME ZONE 'UTC') + make_interval(secs => want.ttl)))
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

-- ExtendRow
PREPARE "ExtendRow" AS
UPDATE int_lock AS l
   SET created_date = (clock_timestamp() AT TIME ZONE 'UTC'), expired_after = GREATEST(l.expired_after, ((clock_timestamp() AT TIME ZONE 'UTC') + make_interval(secs => $4)))
 WHERE lock_key = $1 AND region = $2
   AND EXISTS (SELECT 1 FROM obs_hold h
                WHERE h.lock_key = $1 AND h.region = $2 AND h.term = $3 AND h.group_term = l.client_id AND (h.touched_at >= (clock_timestamp() - make_interval(secs => h.ttl_ms / 1000.0)))
                  AND CAST($4 AS DOUBLE PRECISION) IS NOT NULL);

-- Delay
PREPARE "Delay" AS
UPDATE int_lock AS l
   SET client_id = $5, created_date = (clock_timestamp() AT TIME ZONE 'UTC'), expired_after = ((clock_timestamp() AT TIME ZONE 'UTC') + make_interval(secs => $4))
 WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND CAST($4 AS DOUBLE PRECISION) IS NOT NULL;

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
         COALESCE((l.expired_after < (clock_timestamp() AT TIME ZONE 'UTC') AND CAST(COALESCE(o.ttl_ms / 1000.0, want.ttl) AS DOUBLE PRECISION) IS NOT NULL), FALSE) AS expired
                 FROM int_lock l
                 LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
                WHERE l.lock_key = want.lock_key AND l.region = want.region) held
        WHERE CASE WHEN held.grouped THEN held.refuses ELSE NOT held.expired END)
  FROM (SELECT want.*, own.ticket
          FROM want
          JOIN obs_wait own ON own.waiter = want.waiter AND own.lock_key = want.lock_key AND own.region = want.region) want
 ORDER BY want.n;


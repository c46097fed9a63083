-- Lease.Acquire
PREPARE "Lease.Acquire" AS
WITH was AS (
  SELECT COALESCE((l.expired_after < (clock_timestamp() AT TIME ZONE 'UTC') AND CAST($4::float8 AS DOUBLE PRECISION) IS NOT NULL), FALSE) AS expired, COALESCE(o.liveness, '') AS liveness,
         COALESCE(CASE WHEN l.client_id = o.term OR l.client_id IS NULL THEN o.node END, '') AS node
    FROM (SELECT 1 AS one) x
    LEFT JOIN int_lock l ON l.lock_key = $1 AND l.region = $2
    LEFT JOIN obs_lock o ON o.lock_key = $1 AND o.region = $2
), seen AS (
  SELECT client_id, created_date FROM int_lock WHERE lock_key = $1 AND region = $2
), l AS (
  INSERT INTO int_lock AS l (lock_key, region, client_id, created_date, expired_after)
  VALUES ($1, $2, $3, (clock_timestamp() AT TIME ZONE 'UTC'), ((clock_timestamp() AT TIME ZONE 'UTC') + make_interval(secs => $4::float8)))
  ON CONFLICT (lock_key, region) DO UPDATE
     SET client_id = excluded.client_id, created_date = (clock_timestamp() AT TIME ZONE 'UTC'), expired_after = ((clock_timestamp() AT TIME ZONE 'UTC') + make_interval(secs => $4::float8))
   WHERE EXISTS (SELECT 1 FROM seen WHERE seen.client_id IS NOT DISTINCT FROM l.client_id AND seen.created_date = l.created_date)
     AND (l.expired_after < (clock_timestamp() AT TIME ZONE 'UTC') AND CAST($4::float8 AS DOUBLE PRECISION) IS NOT NULL)
  RETURNING lock_key, region, client_id
)
INSERT INTO obs_lock AS o (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness, metadata)
SELECT lock_key, region, client_id, nextval('obs_fence'), $5, $6, $7, ($4 * 1000)::bigint, clock_timestamp(), $8, $9, $10
  FROM l
ON CONFLICT (lock_key, region) DO UPDATE
   SET term = excluded.term, fence = excluded.fence, name = excluded.name, node = excluded.node,
       descriptor = excluded.descriptor, ttl_ms = excluded.ttl_ms, acquired_at = excluded.acquired_at,
       boot_id = excluded.boot_id, liveness = excluded.liveness,
       metadata = excluded.metadata
RETURNING fence, (SELECT expired FROM was), (SELECT liveness FROM was), (SELECT node FROM was);

-- Lease.Renew
PREPARE "Lease.Renew" AS
WITH want AS (
  SELECT n, k::char(36) AS lock_key, g::varchar(100) AS region, t::char(36) AS term, s AS ttl
    FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[]) WITH ORDINALITY AS u(k, g, t, s, n)
), due AS (
  SELECT l.lock_key, l.region, want.ttl
    FROM int_lock l
    JOIN want ON want.lock_key = l.lock_key AND want.region = l.region AND want.term = l.client_id
   WHERE (l.expired_after >= (clock_timestamp() AT TIME ZONE 'UTC') AND CAST(want.ttl AS DOUBLE PRECISION) IS NOT NULL)
   ORDER BY l.lock_key, l.region
     FOR UPDATE OF l SKIP LOCKED
), renewed AS (
  UPDATE int_lock l
     SET created_date = (clock_timestamp() AT TIME ZONE 'UTC'), expired_after = ((clock_timestamp() AT TIME ZONE 'UTC') + make_interval(secs => want.ttl))
    FROM due want
   WHERE l.lock_key = want.lock_key AND l.region = want.region
  RETURNING l.lock_key, l.region, l.client_id
)
SELECT renewed.client_id IS NOT NULL, l.client_id IS NOT NULL
  FROM want
  LEFT JOIN renewed ON renewed.lock_key = want.lock_key AND renewed.region = want.region AND renewed.client_id = want.term
  LEFT JOIN int_lock l ON l.lock_key = want.lock_key AND l.region = want.region AND l.client_id = want.term AND (l.expired_after >= (clock_timestamp() AT TIME ZONE 'UTC') AND CAST(want.ttl AS DOUBLE PRECISION) IS NOT NULL)
 ORDER BY want.n;

-- Lease.Guard
PREPARE "Lease.Guard" AS
UPDATE int_lock AS l
   SET created_date = (clock_timestamp() AT TIME ZONE 'UTC'), expired_after = ((clock_timestamp() AT TIME ZONE 'UTC') + make_interval(secs => $4))
 WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND (l.expired_after >= (clock_timestamp() AT TIME ZONE 'UTC') AND CAST($4 AS DOUBLE PRECISION) IS NOT NULL);

-- Lease.Holder
PREPARE "Lease.Holder" AS
SELECT l.client_id, (l.expired_after >= (clock_timestamp() AT TIME ZONE 'UTC') AND CAST(COALESCE(o.ttl_ms / 1000.0, CAST($3 AS DOUBLE PRECISION)) AS DOUBLE PRECISION) IS NOT NULL), COALESCE(o.ttl_ms / 1000.0, CAST($3 AS DOUBLE PRECISION)), (l.expired_after - make_interval(secs => COALESCE(o.ttl_ms / 1000.0, CAST($3 AS DOUBLE PRECISION)))), (clock_timestamp() AT TIME ZONE 'UTC'), o.node, o.fence, o.term IS NOT NULL AND l.created_date > (clock_timestamp() AT TIME ZONE 'UTC')
  FROM int_lock l
  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
 WHERE l.lock_key = $1 AND l.region = $2;

-- Lease.Redate
PREPARE "Lease.Redate" AS
UPDATE int_lock AS l
   SET created_date = (clock_timestamp() AT TIME ZONE 'UTC'), expired_after = ((clock_timestamp() AT TIME ZONE 'UTC') + make_interval(secs => o.ttl_ms / 1000.0))
  FROM obs_lock o
 WHERE l.lock_key = $1 AND l.region = $2 AND l.created_date > (clock_timestamp() AT TIME ZONE 'UTC')
   AND o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
   AND EXISTS (SELECT 1 FROM int_lock WHERE lock_key = $1 AND region = $2 FOR UPDATE SKIP LOCKED);

-- Store.Create
PREPARE "Store.Create" AS
INSERT INTO obs_cursor (stream) SELECT $5 WHERE EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = $3 AND (l.expired_after >= (clock_timestamp() AT TIME ZONE 'UTC') AND CAST($4 AS DOUBLE PRECISION) IS NOT NULL) FOR SHARE)
ON CONFLICT (stream) DO NOTHING;

-- Store.Outdate
PREPARE "Store.Outdate" AS
UPDATE obs_cursor
   SET version = version + 1, commit_id = NULL
 WHERE stream_id = $5 AND version = $6 AND EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = $3 AND (l.expired_after >= (clock_timestamp() AT TIME ZONE 'UTC') AND CAST($4 AS DOUBLE PRECISION) IS NOT NULL) FOR SHARE);

-- Commit.Commit
PREPARE "Commit.Commit" AS
WITH held AS MATERIALIZED (
  SELECT 1 FROM obs_cursor WHERE stream_id = $5 FOR UPDATE
), lease AS (
  UPDATE int_lock l
     SET created_date = (clock_timestamp() AT TIME ZONE 'UTC'), expired_after = ((clock_timestamp() AT TIME ZONE 'UTC') + make_interval(secs => $4::float8))
    FROM (SELECT count(*) FROM held) AS h
   WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND (l.expired_after >= (clock_timestamp() AT TIME ZONE 'UTC') AND CAST($4::float8 AS DOUBLE PRECISION) IS NOT NULL)
  RETURNING 1
), cur AS (
  UPDATE obs_cursor c
     SET version = $7, commit_id = $8, last_seq = $9, row_count = $10, live_count = $11,
         low_ts = $12, newest_ts = $13, first_reading = $14,
         start_ts = CASE WHEN c.low_ts = '' AND c.query_fingerprint = '' THEN $12 ELSE c.start_ts END,
         query_fingerprint = $15, definition = $16,
         defined_at = CASE WHEN c.definition = $16 THEN c.defined_at ELSE clock_timestamp() END,
         refusal = $17, accepted = $18, marks = $19
    FROM lease
   WHERE c.stream_id = $5 AND c.version = $6 AND NOT c.paused
  RETURNING c.stream_id, c.stream, c.last_seq
), seen AS (
  SELECT cur.stream_id, u.*
    FROM cur, unnest($20::text[], $21::bytea[], $22::integer[], $23::bigint[], $24::boolean[])
              WITH ORDINALITY AS u(key, row_hash, version, row_number, gone, n)
), added AS (
  INSERT INTO obs_observed (stream_id, key, row_hash, version, row_number, gone)
  SELECT stream_id, key, row_hash, version, row_number, gone FROM seen WHERE n <= $25
), changed AS (
  INSERT INTO obs_observed (stream_id, key, row_hash, version, row_number, gone)
  SELECT stream_id, key, row_hash, version, row_number, gone FROM seen WHERE n > $25
  ON CONFLICT (stream_id, key) DO UPDATE
     SET row_hash = excluded.row_hash, version = excluded.version, gone = excluded.gone
), dead AS (
  INSERT INTO obs_dead AS d (stream, key, digest, reason, raw, first_at, last_at, refused)
  SELECT cur.stream, u.key, u.digest, u.reason, u.raw, clock_timestamp(), clock_timestamp(), $30
    FROM cur, unnest($26::text[], $27::bytea[], $28::text[], $29::text[]) AS u(key, digest, reason, raw)
  ON CONFLICT (stream, digest) DO UPDATE SET raw = excluded.raw, last_at = excluded.last_at, refused = excluded.refused
), logged AS (
  INSERT INTO obs_event (stream, seq, event_id, type, subject, version, change, time, data, snapshot)
  SELECT cur.stream, cur.last_seq - cardinality($31::uuid[]) + u.n, u.id, u.type, u.subject, u.version, u.change, u.time, u.data::json, u.snapshot
    FROM cur, unnest($31::uuid[], $32::text[], $33::text[], $34::integer[], $35::text[], $36::timestamptz[], $37::text[], $38::boolean[])
              WITH ORDINALITY AS u(id, type, subject, version, change, time, data, snapshot, n)
)
SELECT (SELECT count(*) FROM lease), (SELECT count(*) FROM cur);

-- Turn.Turn
PREPARE "Turn.Turn" AS
SELECT clock_timestamp(), s.turn_at, COALESCE((l.expired_after >= (clock_timestamp() AT TIME ZONE 'UTC') AND CAST(COALESCE(CASE WHEN o.term = l.client_id THEN o.ttl_ms / 1000.0 END, CAST($4 AS DOUBLE PRECISION)) AS DOUBLE PRECISION) IS NOT NULL), FALSE),
       CASE WHEN o.term = l.client_id THEN o.node ELSE '' END, CASE WHEN o.term = l.client_id THEN o.boot_id ELSE '' END,
       COALESCE(o.term = l.client_id AND l.created_date > (clock_timestamp() AT TIME ZONE 'UTC'), FALSE)
  FROM (SELECT 1 AS one) x
  LEFT JOIN obs_schedule s ON s.type = $1
  LEFT JOIN int_lock l ON l.lock_key = $2 AND l.region = $3
  LEFT JOIN obs_lock o ON o.lock_key = $2 AND o.region = $3;

-- Turn.TakeTurn
PREPARE "Turn.TakeTurn" AS
INSERT INTO obs_schedule AS s (type, turn_at, last_node, last_started, last_finished, last_outcome)
SELECT $5, $6, $7, $8, $9, $10 WHERE EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = $3 AND (l.expired_after >= (clock_timestamp() AT TIME ZONE 'UTC') AND CAST($4 AS DOUBLE PRECISION) IS NOT NULL) FOR SHARE) AND set_config('synchronous_commit', 'off', TRUE) = 'off'
ON CONFLICT (type) DO UPDATE
   SET turn_at = excluded.turn_at, last_node = excluded.last_node, last_started = excluded.last_started,
       last_finished = excluded.last_finished, last_outcome = excluded.last_outcome
 WHERE s.turn_at < excluded.turn_at OR s.turn_at > clock_timestamp();

-- Turn.NoteStream
PREPARE "Turn.NoteStream" AS
WITH noted AS (
  INSERT INTO obs_cursor AS c (stream, turn_at, failures, retry_at, last_error, last_ok_at, lag_ms, failure_class)
  SELECT $5, $6, $7, $8, $9, CASE WHEN $10 = 'ok' THEN clock_timestamp() END, $11, $12 WHERE EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = $3 AND (l.expired_after >= (clock_timestamp() AT TIME ZONE 'UTC') AND CAST($4 AS DOUBLE PRECISION) IS NOT NULL) FOR SHARE)
  ON CONFLICT (stream) DO UPDATE
     SET turn_at = coalesce(excluded.turn_at, c.turn_at), failures = excluded.failures, failure_class = excluded.failure_class, retry_at = excluded.retry_at,
         last_error = CASE WHEN excluded.last_error = '' AND excluded.last_ok_at IS NULL THEN c.last_error ELSE excluded.last_error END, last_ok_at = coalesce(excluded.last_ok_at, c.last_ok_at),
         lag_ms = CASE WHEN excluded.last_ok_at IS NULL THEN c.lag_ms ELSE excluded.lag_ms END
  RETURNING 1
)
INSERT INTO obs_poll (type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count)
SELECT $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23 FROM noted WHERE set_config('synchronous_commit', 'off', TRUE) = 'off';

-- Dead.SettleDead
PREPARE "Dead.SettleDead" AS
SELECT 1 WHERE EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = $3 AND (l.expired_after >= (clock_timestamp() AT TIME ZONE 'UTC') AND CAST($4 AS DOUBLE PRECISION) IS NOT NULL) FOR SHARE);

-- Janitor.Locks
PREPARE "Janitor.Locks" AS
DELETE FROM int_lock
 WHERE EXISTS (
       SELECT 1 FROM obs_lock o
        WHERE o.lock_key = int_lock.lock_key AND o.region = int_lock.region AND o.term = int_lock.client_id
          AND NOT EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = o.lock_key AND h.region = o.region AND h.group_term = o.term)
          AND int_lock.expired_after < ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => CAST($1 AS DOUBLE PRECISION))))
   AND (lock_key, region) IN (SELECT lock_key, region FROM int_lock WHERE EXISTS (
       SELECT 1 FROM obs_lock o
        WHERE o.lock_key = int_lock.lock_key AND o.region = int_lock.region AND o.term = int_lock.client_id
          AND NOT EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = o.lock_key AND h.region = o.region AND h.group_term = o.term)
          AND int_lock.expired_after < ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => CAST($1 AS DOUBLE PRECISION)))) ORDER BY lock_key, region LIMIT 5000);


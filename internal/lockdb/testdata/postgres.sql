-- Lease.Acquire
PREPARE "Lease.Acquire" AS
WITH was AS (
  SELECT COALESCE((l.created_date < ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => COALESCE((
       SELECT own.ttl_ms / 1000.0 FROM obs_lock own
        WHERE own.lock_key = l.lock_key AND own.region = l.region AND own.term = l.client_id), $4::float8)))), FALSE) AS expired, COALESCE(o.liveness, '') AS liveness,
         COALESCE(CASE WHEN l.client_id = o.term OR l.client_id IS NULL THEN o.node END, '') AS node
    FROM (SELECT 1 AS one) x
    LEFT JOIN int_lock l ON l.lock_key = $1 AND l.region = $2
    LEFT JOIN obs_lock o ON o.lock_key = $1 AND o.region = $2
), seen AS (
  SELECT client_id, created_date FROM int_lock WHERE lock_key = $1 AND region = $2
), l AS (
  INSERT INTO int_lock AS l (lock_key, region, client_id, created_date)
  VALUES ($1, $2, $3, (clock_timestamp() AT TIME ZONE 'UTC'))
  ON CONFLICT (lock_key, region) DO UPDATE
     SET client_id = excluded.client_id, created_date = (clock_timestamp() AT TIME ZONE 'UTC')
   WHERE EXISTS (SELECT 1 FROM seen WHERE seen.client_id IS NOT DISTINCT FROM l.client_id AND seen.created_date = l.created_date)
     AND (l.created_date < ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => COALESCE((
       SELECT own.ttl_ms / 1000.0 FROM obs_lock own
        WHERE own.lock_key = l.lock_key AND own.region = l.region AND own.term = l.client_id), $4::float8))))
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
   WHERE (l.created_date >= ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => want.ttl)))
   ORDER BY l.lock_key, l.region
     FOR UPDATE OF l SKIP LOCKED
), renewed AS (
  UPDATE int_lock l
     SET created_date = (clock_timestamp() AT TIME ZONE 'UTC')
    FROM due want
   WHERE l.lock_key = want.lock_key AND l.region = want.region
  RETURNING l.lock_key, l.region, l.client_id
)
SELECT renewed.client_id IS NOT NULL, l.client_id IS NOT NULL
  FROM want
  LEFT JOIN renewed ON renewed.lock_key = want.lock_key AND renewed.region = want.region AND renewed.client_id = want.term
  LEFT JOIN int_lock l ON l.lock_key = want.lock_key AND l.region = want.region AND l.client_id = want.term AND (l.created_date >= ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => want.ttl)))
 ORDER BY want.n;

-- Lease.Guard
PREPARE "Lease.Guard" AS
UPDATE int_lock AS l
   SET created_date = (clock_timestamp() AT TIME ZONE 'UTC')
 WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND (l.created_date >= ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => $4)));

-- Lease.Release
PREPARE "Lease.Release" AS
DELETE FROM int_lock
 WHERE (lock_key, region) IN (
       SELECT lock_key, region FROM int_lock
        WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND set_config('synchronous_commit', 'off', TRUE) = 'off' FOR UPDATE SKIP LOCKED);

-- Lease.Holds
PREPARE "Lease.Holds" AS
SELECT EXISTS (SELECT 1 FROM int_lock WHERE lock_key = $1 AND region = $2 AND client_id = $3);

-- Lease.Holder
PREPARE "Lease.Holder" AS
SELECT l.client_id, (l.created_date >= ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => COALESCE(o.ttl_ms / 1000.0, CAST($3 AS DOUBLE PRECISION))))), COALESCE(o.ttl_ms / 1000.0, CAST($3 AS DOUBLE PRECISION)), l.created_date, (clock_timestamp() AT TIME ZONE 'UTC'), o.node, o.fence, o.term IS NOT NULL AND l.created_date > (clock_timestamp() AT TIME ZONE 'UTC')
  FROM int_lock l
  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
 WHERE l.lock_key = $1 AND l.region = $2;

-- Lease.Redate
PREPARE "Lease.Redate" AS
UPDATE int_lock AS l
   SET created_date = (clock_timestamp() AT TIME ZONE 'UTC')
  FROM obs_lock o
 WHERE l.lock_key = $1 AND l.region = $2 AND l.created_date > (clock_timestamp() AT TIME ZONE 'UTC')
   AND o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
   AND EXISTS (SELECT 1 FROM int_lock WHERE lock_key = $1 AND region = $2 FOR UPDATE SKIP LOCKED);

-- Lease.Locks
PREPARE "Lease.Locks" AS
SELECT l.lock_key, l.region, l.client_id, l.created_date, (clock_timestamp() AT TIME ZONE 'UTC'), o.name, o.node, o.fence, o.ttl_ms, o.acquired_at,
       coalesce(CASE WHEN o.group_term = o.term THEN (
         SELECT max(h.descriptor) FROM obs_hold h
          WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id) ELSE o.descriptor END, ''),
       (SELECT count(*) FROM obs_wait w WHERE w.lock_key = l.lock_key AND w.region = l.region AND w.touched_at >= (clock_timestamp() - make_interval(secs => 5))),
       CASE WHEN o.group_term = o.term THEN (
         SELECT count(*) FROM obs_hold h
          WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND (h.touched_at >= (clock_timestamp() - make_interval(secs => h.ttl_ms / 1000.0)))) ELSE 0 END,
       (SELECT count(*) FROM (SELECT 1 FROM int_lock LIMIT $3) counted)
  FROM (
    SELECT * FROM (
      SELECT l.*, 0 AS part
        FROM obs_lock o
        JOIN int_lock l ON l.lock_key = o.lock_key AND l.region = o.region
       WHERE o.region = ANY ($1::text[])
       ORDER BY o.region, o.lock_key
       LIMIT $2) pollers
    UNION ALL
    SELECT * FROM (
      SELECT l.*, 1 AS part
        FROM int_lock l
       WHERE NOT EXISTS (SELECT 1 FROM obs_lock o WHERE o.lock_key = l.lock_key AND o.region = l.region AND o.region = ANY ($1::text[]))
       ORDER BY l.lock_key, l.region
       LIMIT $2) others
     ORDER BY part, region, lock_key
     LIMIT $2) l
  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
 ORDER BY l.part, l.region, l.lock_key;

-- Store.Cursor
PREPARE "Store.Cursor" AS
SELECT stream_id, stream, version, epoch, last_seq, row_count, live_count, low_ts, newest_ts, first_reading,
       query_fingerprint, definition, defined_at, refusal, accepted, marks
  FROM obs_cursor
 WHERE stream = $1;

-- Store.Create
PREPARE "Store.Create" AS
INSERT INTO obs_cursor (stream) SELECT $5 WHERE EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = $3 AND (l.created_date >= ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => $4))) FOR SHARE)
ON CONFLICT (stream) DO NOTHING;

-- Store.Observed
PREPARE "Store.Observed" AS
SELECT '' AS key, NULL AS row_hash, version, 0 AS row_number, FALSE AS gone FROM obs_cursor WHERE stream_id = $1
 UNION ALL
SELECT o.*
  FROM unnest($2::text[]) AS u(key)
 CROSS JOIN LATERAL (
       SELECT key, row_hash, version, row_number, gone
         FROM obs_observed
        WHERE stream_id = $1 AND key = u.key
       OFFSET 0) AS o;

-- Store.Between
PREPARE "Store.Between" AS
SELECT '' AS key, NULL AS row_hash, version, 0 AS row_number, FALSE AS gone FROM obs_cursor WHERE stream_id = $1
 UNION ALL
SELECT *
  FROM (SELECT key, row_hash, version, row_number, gone
          FROM obs_observed
         WHERE stream_id = $1
           AND key BETWEEN CASE WHEN CAST($2 AS TEXT) < $3 THEN $2 ELSE $3 END AND CASE WHEN CAST($2 AS TEXT) < $3 THEN $3 ELSE $2 END
         ORDER BY key
         LIMIT $4) AS page;

-- Store.Live
PREPARE "Store.Live" AS
SELECT '' AS key, NULL AS row_hash, version, 0 AS row_number, FALSE AS gone FROM obs_cursor WHERE stream_id = $1
 UNION ALL
SELECT *
  FROM (SELECT key, row_hash, version, row_number, gone
          FROM obs_observed
         WHERE stream_id = $1 AND key > $2 AND NOT gone
         ORDER BY key
         LIMIT $3) AS page
 ORDER BY key;

-- Store.Generation
PREPARE "Store.Generation" AS
SELECT reading, key, complete, seen, row_count, started_at, finished_at, took_ms
  FROM obs_generation
 WHERE stream_id = $1;

-- Store.Buried
PREPARE "Store.Buried" AS
SELECT d.*
  FROM unnest($2::text[]) AS u(digest)
 CROSS JOIN LATERAL (
       SELECT digest, refused, last_at > (clock_timestamp() - make_interval(secs => $3::float8))
         FROM obs_dead
        WHERE stream = $1 AND digest = decode(u.digest, 'hex')
       OFFSET 0) AS d;

-- Store.LockCursor
PREPARE "Store.LockCursor" AS
SELECT CAST(commit_id AS TEXT) FROM obs_cursor WHERE stream_id = $1 FOR UPDATE;

-- Store.Outdate
PREPARE "Store.Outdate" AS
UPDATE obs_cursor
   SET version = version + 1, commit_id = NULL
 WHERE stream_id = $5 AND version = $6 AND EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = $3 AND (l.created_date >= ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => $4))) FOR SHARE);

-- Commit.Commit
PREPARE "Commit.Commit" AS
WITH held AS MATERIALIZED (
  SELECT 1 FROM obs_cursor WHERE stream_id = $5 FOR UPDATE
), lease AS (
  UPDATE int_lock l
     SET created_date = (clock_timestamp() AT TIME ZONE 'UTC')
    FROM (SELECT count(*) FROM held) AS h
   WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND (l.created_date >= ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => $4::float8)))
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

-- Commit.Advance
PREPARE "Commit.Advance" AS
UPDATE obs_cursor
   SET version = $3, commit_id = $4, last_seq = $5, row_count = $6, live_count = $7,
       low_ts = $8, newest_ts = $9, first_reading = $10,
       start_ts = CASE WHEN low_ts = '' AND query_fingerprint = '' THEN $8 ELSE start_ts END,
       query_fingerprint = $11, definition = $12,
       defined_at = CASE WHEN definition = $12 THEN defined_at ELSE clock_timestamp() END,
       refusal = $13, accepted = $14, marks = $15
 WHERE stream_id = $1 AND version = $2 AND NOT paused;

-- Commit.Step
PREPARE "Commit.Step" AS
UPDATE obs_sweep
   SET position_ts = $2, row_count = row_count + $3, event_count = event_count + $4,
       state = CASE WHEN $5 THEN 'done' ELSE state END, updated_at = clock_timestamp()
 WHERE id = $1 AND state = 'running' AND stream = $6;

-- Commit.Remember
PREPARE "Commit.Remember" AS
INSERT INTO obs_generation (stream_id, reading, key, complete, seen, row_count, started_at, finished_at, took_ms)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (stream_id) DO UPDATE
   SET reading = excluded.reading, key = excluded.key, complete = excluded.complete, seen = excluded.seen, row_count = excluded.row_count,
       started_at = excluded.started_at, finished_at = excluded.finished_at, took_ms = excluded.took_ms;

-- Commit.Change
PREPARE "Commit.Change" AS
INSERT INTO obs_observed (stream_id, key, row_hash, version, row_number, gone)
SELECT $1, u.*
  FROM unnest($2::text[], $3::bytea[], $4::integer[], $5::bigint[], $6::boolean[])
       AS u(key, row_hash, version, row_number, gone)
ON CONFLICT (stream_id, key) DO UPDATE
   SET row_hash = excluded.row_hash, version = excluded.version, gone = excluded.gone;

-- Commit.Bury
PREPARE "Commit.Bury" AS
INSERT INTO obs_dead AS d (stream, key, digest, reason, raw, first_at, last_at, refused)
SELECT $1, u.key, u.digest, u.reason, u.raw, clock_timestamp(), clock_timestamp(), $6
  FROM unnest($2::text[], $3::bytea[], $4::text[], $5::text[]) AS u(key, digest, reason, raw)
ON CONFLICT (stream, digest) DO UPDATE SET raw = excluded.raw, last_at = excluded.last_at, refused = excluded.refused;

-- Commit.EndStalled
PREPARE "Commit.EndStalled" AS
SELECT count(*) FILTER (WHERE pg_terminate_backend(pid))
  FROM pg_stat_activity
 WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
   AND state = 'active' AND wait_event = 'ClientRead'
   AND starts_with(query, 'copy ' || $2::text)
   AND query_start < clock_timestamp() - make_interval(secs => $1);

-- Turn.Turn
PREPARE "Turn.Turn" AS
SELECT clock_timestamp(), s.turn_at, COALESCE((l.created_date >= ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => COALESCE(CASE WHEN o.term = l.client_id THEN o.ttl_ms / 1000.0 END, CAST($4 AS DOUBLE PRECISION))))), FALSE),
       CASE WHEN o.term = l.client_id THEN o.node ELSE '' END, CASE WHEN o.term = l.client_id THEN o.boot_id ELSE '' END,
       COALESCE(o.term = l.client_id AND l.created_date > (clock_timestamp() AT TIME ZONE 'UTC'), FALSE)
  FROM (SELECT 1 AS one) x
  LEFT JOIN obs_schedule s ON s.type = $1
  LEFT JOIN int_lock l ON l.lock_key = $2 AND l.region = $3
  LEFT JOIN obs_lock o ON o.lock_key = $2 AND o.region = $3;

-- Turn.TakeTurn
PREPARE "Turn.TakeTurn" AS
INSERT INTO obs_schedule AS s (type, turn_at, last_node, last_started, last_finished, last_outcome)
SELECT $5, $6, $7, $8, $9, $10 WHERE EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = $3 AND (l.created_date >= ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => $4))) FOR SHARE) AND set_config('synchronous_commit', 'off', TRUE) = 'off'
ON CONFLICT (type) DO UPDATE
   SET turn_at = excluded.turn_at, last_node = excluded.last_node, last_started = excluded.last_started,
       last_finished = excluded.last_finished, last_outcome = excluded.last_outcome
 WHERE s.turn_at < excluded.turn_at OR s.turn_at > clock_timestamp();

-- Turn.Streams
PREPARE "Turn.Streams" AS
SELECT '' AS stream, clock_timestamp() AS now, s.turn_at, FALSE AS marked, FALSE AS paused, NULL AS paused_until, 0 AS failures, '' AS failure_class, NULL AS retry_at,
       NULL AS last_ok_at, 0 AS lag_ms, FALSE AS unread
  FROM (SELECT 1 AS one) x
  LEFT JOIN obs_schedule s ON s.type = $1
 UNION ALL
SELECT c.stream, clock_timestamp(), c.turn_at, c.paused, (c.paused AND (c.paused_until IS NULL OR c.paused_until > clock_timestamp())), CASE WHEN (c.paused AND (c.paused_until IS NULL OR c.paused_until > clock_timestamp())) THEN c.paused_until END, c.failures, c.failure_class, c.retry_at,
       CASE WHEN c.query_fingerprint <> '' AND NOT c.first_reading THEN c.last_ok_at END, c.lag_ms,
       c.lag_ms > 0 OR coalesce((SELECT g.finished_at IS NULL FROM obs_generation g WHERE g.stream_id = c.stream_id), FALSE)
  FROM obs_cursor c
 WHERE c.stream = ANY ($2::text[]);

-- Turn.NoteStream
PREPARE "Turn.NoteStream" AS
WITH noted AS (
  INSERT INTO obs_cursor AS c (stream, turn_at, failures, retry_at, last_error, last_ok_at, lag_ms, failure_class)
  SELECT $5, $6, $7, $8, $9, CASE WHEN $10 = 'ok' THEN clock_timestamp() END, $11, $12 WHERE EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = $3 AND (l.created_date >= ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => $4))) FOR SHARE)
  ON CONFLICT (stream) DO UPDATE
     SET turn_at = coalesce(excluded.turn_at, c.turn_at), failures = excluded.failures, failure_class = excluded.failure_class, retry_at = excluded.retry_at,
         last_error = CASE WHEN excluded.last_error = '' AND excluded.last_ok_at IS NULL THEN c.last_error ELSE excluded.last_error END, last_ok_at = coalesce(excluded.last_ok_at, c.last_ok_at),
         lag_ms = CASE WHEN excluded.last_ok_at IS NULL THEN c.lag_ms ELSE excluded.lag_ms END
  RETURNING 1
)
INSERT INTO obs_poll (type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count)
SELECT $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23 FROM noted WHERE set_config('synchronous_commit', 'off', TRUE) = 'off';

-- Turn.All
PREPARE "Turn.All" AS
SELECT type, turn_at, last_started, last_finished, last_node, last_outcome FROM obs_schedule ORDER BY type;

-- Turn.Polls
PREPARE "Turn.Polls" AS
SELECT type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count
  FROM obs_poll
 ORDER BY finished_at DESC, id DESC
 LIMIT $1;

-- Turn.PollsOf
PREPARE "Turn.PollsOf" AS
SELECT type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count
  FROM obs_poll
 WHERE stream = $2
 ORDER BY id DESC
 LIMIT $1;

-- Node.Beat
PREPARE "Node.Beat" AS
INSERT INTO obs_node (boot_id, name, version, backend, config_hash, types, unreachable, sinks, started_at, seen_at, liveness, outdated, intervals)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp(), clock_timestamp(), $9, $10, $11)
ON CONFLICT (boot_id) DO UPDATE
   SET types = excluded.types, unreachable = excluded.unreachable, sinks = excluded.sinks, seen_at = excluded.seen_at,
       liveness = excluded.liveness, outdated = excluded.outdated, intervals = excluded.intervals;

-- Node.Nodes
PREPARE "Node.Nodes" AS
SELECT boot_id, name, version, backend, config_hash, types, unreachable, outdated, sinks, intervals, started_at, seen_at
  FROM obs_node
 WHERE seen_at >= (clock_timestamp() - make_interval(secs => $1))
 ORDER BY name, boot_id;

-- Node.Leave
PREPARE "Node.Leave" AS
DELETE FROM obs_node WHERE boot_id = $1 RETURNING sinks;

-- Node.KeepSink
PREPARE "Node.KeepSink" AS
UPDATE obs_sink_offset SET updated_at = clock_timestamp() WHERE sink = $1 AND stream = '';

-- Stream.Start
PREPARE "Stream.Start" AS
SELECT start_ts FROM obs_cursor WHERE stream = $1;

-- Stream.LastError
PREPARE "Stream.LastError" AS
SELECT last_error FROM obs_cursor WHERE stream = $1;

-- Stream.Statuses
PREPARE "Stream.Statuses" AS
SELECT c.stream, c.stream_id, c.version, c.last_seq, c.low_ts, c.newest_ts, c.live_count, c.row_count - c.live_count,
       (c.paused AND (c.paused_until IS NULL OR c.paused_until > clock_timestamp())), c.paused_at, c.paused_until, c.paused_by, c.pause_reason,
       c.turn_at, c.last_ok_at, c.failures, c.retry_at, c.last_error, c.lag_ms,
       c.last_ok_at IS NOT NULL AND c.query_fingerprint <> '' AND NOT c.first_reading, coalesce(d.n, 0), d.since,
       CASE WHEN c.accepted = '' THEN c.refusal ELSE '' END
  FROM obs_cursor c
  LEFT JOIN (SELECT stream, count(*) AS n, min(first_at) AS since FROM obs_dead GROUP BY stream) d ON d.stream = c.stream
 ORDER BY c.stream;

-- Stream.Refused
PREPARE "Stream.Refused" AS
SELECT refusal, accepted <> '' FROM obs_cursor WHERE stream = $1;

-- Sweep.Start
PREPARE "Sweep.Start" AS
INSERT INTO obs_sweep (stream, kind, state, from_ts, before_ts, position_ts, started_at, updated_at)
VALUES ($1, $2, 'running', $3, $4, $3, clock_timestamp(), clock_timestamp())
ON CONFLICT (stream, kind) WHERE state = 'running' DO NOTHING
RETURNING id, stream, kind, state, from_ts, before_ts, position_ts, row_count, event_count, started_at, updated_at;

-- Sweep.Latest
PREPARE "Sweep.Latest" AS
SELECT id, stream, kind, state, from_ts, before_ts, position_ts, row_count, event_count, started_at, updated_at
  FROM (SELECT s.*, row_number() OVER (PARTITION BY stream, kind
                                       ORDER BY CASE state WHEN 'running' THEN 0 ELSE 1 END, id DESC) AS rank
          FROM obs_sweep s
         WHERE stream = $1 OR CAST($1 AS TEXT) = '') AS latest
 WHERE rank = 1
 ORDER BY stream, kind;

-- Sweep.Cancel
PREPARE "Sweep.Cancel" AS
UPDATE obs_sweep SET state = 'cancelled', updated_at = clock_timestamp() WHERE id = $1 AND state = 'running'
RETURNING stream, kind;

-- Account.Account
PREPARE "Account.Account" AS
SELECT account, node, reason, salt, digest, refused_at
  FROM obs_account
 WHERE account = $1
 ORDER BY refused_at, digest;

-- Account.All
PREPARE "Account.All" AS
SELECT account, node, reason, salt, digest, refused_at
  FROM obs_account
 ORDER BY account, refused_at, digest;

-- Account.RefuseAccount
PREPARE "Account.RefuseAccount" AS
INSERT INTO obs_account (account, salt, digest, refused_at, node, reason)
VALUES ($1, $2, $3, clock_timestamp(), $4, $5)
ON CONFLICT (account, digest) DO NOTHING;

-- Pause.Pause
PREPARE "Pause.Pause" AS
INSERT INTO obs_cursor AS c (stream, paused, paused_at, paused_until, paused_by, pause_reason)
VALUES ($1, TRUE, clock_timestamp(), CASE WHEN CAST($2 AS DOUBLE PRECISION) > 0 THEN (clock_timestamp() + make_interval(secs => $2)) END, $3, $4)
ON CONFLICT (stream) DO UPDATE
   SET paused = TRUE, version = c.version + 1, paused_at = CASE WHEN c.paused THEN c.paused_at ELSE excluded.paused_at END,
       paused_until = excluded.paused_until, paused_by = excluded.paused_by, pause_reason = excluded.pause_reason
 WHERE NOT c.paused OR c.paused_until IS NOT NULL AND (excluded.paused_until IS NULL OR excluded.paused_until > c.paused_until);

-- Pause.Resume
PREPARE "Pause.Resume" AS
UPDATE obs_cursor SET paused = FALSE, failures = 0, retry_at = NULL WHERE stream = $1 AND (paused OR failures > 0);

-- Pause.ForgetAccount
PREPARE "Pause.ForgetAccount" AS
DELETE FROM obs_account WHERE account = $1;

-- Pause.EndPauses
PREPARE "Pause.EndPauses" AS
UPDATE obs_cursor SET paused = FALSE WHERE stream = ANY ($1::text[]) AND paused AND paused_until <= clock_timestamp()
RETURNING stream, paused_by, paused_until;

-- Sink.Pause
PREPARE "Sink.Pause" AS
INSERT INTO obs_sink_offset AS o (sink, stream, last_seq, epoch, updated_at, paused_at, paused_by, pause_reason)
VALUES ($1, '', 0, 0, clock_timestamp(), clock_timestamp(), $2, $3)
ON CONFLICT (sink, stream) DO UPDATE
   SET paused_at = excluded.paused_at, paused_by = excluded.paused_by, pause_reason = excluded.pause_reason
 WHERE o.paused_at IS NULL;

-- Sink.Resume
PREPARE "Sink.Resume" AS
UPDATE obs_sink_offset
   SET paused_at = NULL, paused_by = '', pause_reason = ''
 WHERE sink = $1 AND stream = '' AND paused_at IS NOT NULL;

-- Sink.Adopt
PREPARE "Sink.Adopt" AS
INSERT INTO obs_sink_offset AS o (sink, stream, last_seq, epoch, updated_at, adopted)
VALUES ($1, $2, 0, 0, clock_timestamp(), TRUE)
ON CONFLICT (sink, stream) DO UPDATE SET adopted = TRUE
 WHERE NOT o.adopted;

-- Parked.Parked
PREPARE "Parked.Parked" AS
SELECT id, sink, stream, seq, CAST(event_id AS TEXT), subject, reason, parked_at, retry_at IS NOT NULL, CASE WHEN $9 THEN CAST(data AS TEXT) ELSE '' END
  FROM obs_parked
 WHERE ($1 OR id = ANY ($2::text[]::bigint[]))
   AND ($3 OR sink = ANY ($4::text[]))
   AND ($5 OR stream = ANY ($6::text[]))
   AND (CAST($7 AS TEXT) = '' OR subject = $7)
   AND (CAST($8 AS DOUBLE PRECISION) = 0 OR parked_at >= (now() - make_interval(secs => $8)))
 ORDER BY sink, stream, seq
 LIMIT $10;

-- Parked.Retry
PREPARE "Parked.Retry" AS
UPDATE obs_parked
   SET retry_at = clock_timestamp()
 WHERE sink = $1
   AND EXISTS (SELECT 1 FROM obs_parked k
                WHERE k.sink = $1 AND k.stream = obs_parked.stream AND k.subject = obs_parked.subject AND k.id = ANY ($2::text[]::bigint[]));

-- Parked.Drop
PREPARE "Parked.Drop" AS
DELETE FROM obs_parked WHERE sink = $1 AND id = ANY ($2::text[]::bigint[]);

-- Dead.Dead
PREPARE "Dead.Dead" AS
SELECT id, stream, key, reason, refused, first_at, last_at, CASE WHEN $7 THEN raw ELSE '' END
  FROM obs_dead
 WHERE ($1 OR id = ANY ($2::text[]::bigint[]))
   AND ($3 OR stream = ANY ($4::text[]))
   AND (CAST($5 AS TEXT) = '' OR key = $5)
   AND (CAST($6 AS DOUBLE PRECISION) = 0 OR last_at >= (now() - make_interval(secs => $6)))
 ORDER BY last_at DESC, id DESC
 LIMIT $8;

-- Dead.SettleDead
PREPARE "Dead.SettleDead" AS
SELECT 1 WHERE EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = $1 AND l.region = $2 AND l.client_id = $3 AND (l.created_date >= ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => $4))) FOR SHARE);

-- Dead.DeleteDead
PREPARE "Dead.DeleteDead" AS
DELETE FROM obs_dead WHERE stream || '' = $1 AND id = ANY ($2::text[]::bigint[]);

-- Janitor.Polls
PREPARE "Janitor.Polls" AS
DELETE FROM obs_poll WHERE (stream, id) IN (SELECT stream, id FROM obs_poll WHERE finished_at < (now() - make_interval(secs => $1)) ORDER BY finished_at LIMIT 5000);

-- Janitor.Dead
PREPARE "Janitor.Dead" AS
DELETE FROM obs_dead
 WHERE id IN (SELECT d.id
                FROM obs_dead d
                LEFT JOIN obs_cursor c ON c.stream = d.stream
               WHERE d.last_at < (now() - make_interval(secs => $1)) AND (d.refused OR c.stream IS NULL)
               ORDER BY d.last_at
               LIMIT 5000);

-- Janitor.DeadValues
PREPARE "Janitor.DeadValues" AS
UPDATE obs_dead
   SET raw = ''
 WHERE id IN (SELECT id FROM obs_dead WHERE last_at < (now() - make_interval(secs => $1)) AND raw <> '' ORDER BY last_at LIMIT 5000);

-- Janitor.Audit
PREPARE "Janitor.Audit" AS
DELETE FROM obs_audit WHERE id IN (SELECT id FROM obs_audit WHERE at < (now() - make_interval(secs => $1)) ORDER BY at LIMIT 5000);

-- Janitor.Sweeps
PREPARE "Janitor.Sweeps" AS
DELETE FROM obs_sweep
 WHERE state <> 'running' AND updated_at < (clock_timestamp() - make_interval(secs => $1))
   AND EXISTS (SELECT 1 FROM obs_sweep later
                WHERE later.stream = obs_sweep.stream AND later.kind = obs_sweep.kind AND later.id > obs_sweep.id);

-- Janitor.Nodes
PREPARE "Janitor.Nodes" AS
DELETE FROM obs_node WHERE seen_at < (clock_timestamp() - make_interval(secs => $1));

-- Janitor.Holds
PREPARE "Janitor.Holds" AS
DELETE FROM obs_hold
 WHERE touched_at < (clock_timestamp() - make_interval(secs => CAST($1 AS DOUBLE PRECISION) + ttl_ms / 1000.0))
   AND (lock_key, region, term) IN (SELECT lock_key, region, term FROM obs_hold WHERE touched_at < (clock_timestamp() - make_interval(secs => CAST($1 AS DOUBLE PRECISION) + ttl_ms / 1000.0)) ORDER BY lock_key, region, term LIMIT 5000);

-- Janitor.Locks
PREPARE "Janitor.Locks" AS
DELETE FROM int_lock
 WHERE EXISTS (
       SELECT 1 FROM obs_lock o
        WHERE o.lock_key = int_lock.lock_key AND o.region = int_lock.region AND o.term = int_lock.client_id
          AND NOT EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = o.lock_key AND h.region = o.region AND h.group_term = o.term)
          AND int_lock.created_date < ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => (CAST($1 AS DOUBLE PRECISION) + o.ttl_ms / 1000.0))))
   AND (lock_key, region) IN (SELECT lock_key, region FROM int_lock WHERE EXISTS (
       SELECT 1 FROM obs_lock o
        WHERE o.lock_key = int_lock.lock_key AND o.region = int_lock.region AND o.term = int_lock.client_id
          AND NOT EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = o.lock_key AND h.region = o.region AND h.group_term = o.term)
          AND int_lock.created_date < ((clock_timestamp() AT TIME ZONE 'UTC') - make_interval(secs => (CAST($1 AS DOUBLE PRECISION) + o.ttl_ms / 1000.0)))) ORDER BY lock_key, region LIMIT 5000);

-- Janitor.Notes
PREPARE "Janitor.Notes" AS
DELETE FROM obs_lock
 WHERE acquired_at < (clock_timestamp() - make_interval(secs => $1))
   AND NOT EXISTS (SELECT 1 FROM int_lock l
                    WHERE l.lock_key = obs_lock.lock_key AND l.region = obs_lock.region AND l.client_id = obs_lock.term)
   AND (lock_key, region) IN (SELECT lock_key, region FROM obs_lock WHERE acquired_at < (clock_timestamp() - make_interval(secs => $1))
   AND NOT EXISTS (SELECT 1 FROM int_lock l
                    WHERE l.lock_key = obs_lock.lock_key AND l.region = obs_lock.region AND l.client_id = obs_lock.term) ORDER BY lock_key, region LIMIT 5000);

-- Janitor.Waits
PREPARE "Janitor.Waits" AS
DELETE FROM obs_wait
 WHERE touched_at < (clock_timestamp() - make_interval(secs => $1))
   AND (waiter, lock_key, region) IN (SELECT waiter, lock_key, region FROM obs_wait WHERE touched_at < (clock_timestamp() - make_interval(secs => $1)) ORDER BY waiter, lock_key, region LIMIT 5000);

-- Janitor.Failures
PREPARE "Janitor.Failures" AS
DELETE FROM obs_lock_failure
 WHERE last_at < (clock_timestamp() - make_interval(secs => $1))
   AND (lock_key, region, predicate) IN (SELECT lock_key, region, predicate FROM obs_lock_failure
                                          WHERE last_at < (clock_timestamp() - make_interval(secs => $1)) ORDER BY lock_key, region, predicate LIMIT 5000);

-- Janitor.Sinks
PREPARE "Janitor.Sinks" AS
SELECT sink, max(updated_at) >= (clock_timestamp() - make_interval(secs => $1)) FROM obs_sink_offset GROUP BY sink;

-- Janitor.LockSink
PREPARE "Janitor.LockSink" AS
SELECT 1 FROM obs_sink_offset WHERE sink = $1 AND stream = '' FOR UPDATE;

-- Janitor.ForgetSink
PREPARE "Janitor.ForgetSink" AS
DELETE FROM obs_sink_offset
 WHERE sink = $1
   AND NOT EXISTS (SELECT 1 FROM obs_sink_offset fed WHERE fed.sink = $1 AND fed.updated_at >= (clock_timestamp() - make_interval(secs => $2)));

-- Janitor.FirstEvent
PREPARE "Janitor.FirstEvent" AS
SELECT min(seq) FROM obs_event WHERE stream = $1;

-- Janitor.CleanEvents
PREPARE "Janitor.CleanEvents" AS
DELETE FROM obs_event
 WHERE stream = $1 AND seq >= $2 AND seq < $3 AND logged_at < (now() - make_interval(secs => $4))
   AND seq < coalesce((SELECT min(seq)
                         FROM obs_event
                        WHERE stream = $1 AND seq >= $2 AND seq < $3 AND logged_at >= (now() - make_interval(secs => $4))), $3)
   AND seq <= coalesce((SELECT min(coalesce(o.last_seq, 0))
                          FROM obs_sink_offset s
                          LEFT JOIN obs_sink_offset o ON o.sink = s.sink AND o.stream = $1
                         WHERE s.stream = ''), $3);

-- Report.Recent
PREPARE "Report.Recent" AS
SELECT stream, count(*), sum(CASE WHEN outcome = $2 THEN 0 ELSE 1 END), CAST(sum(row_count) AS BIGINT), CAST(sum(event_count) AS BIGINT), CAST(sum(poison_count) AS BIGINT)
  FROM obs_poll
 WHERE finished_at >= (now() - make_interval(secs => $1))
 GROUP BY stream;

-- Report.Parked
PREPARE "Report.Parked" AS
SELECT sink, count(*), min(parked_at) FROM obs_parked GROUP BY sink ORDER BY sink;

-- Report.Generations
PREPARE "Report.Generations" AS
SELECT c.stream, g.row_count, c.live_count, g.started_at, g.finished_at, g.took_ms
  FROM obs_generation g
  JOIN obs_cursor c ON c.stream_id = g.stream_id
 WHERE g.reading NOT LIKE 'apart %'
 ORDER BY c.stream;

-- Report.WentBack
PREPARE "Report.WentBack" AS
SELECT at, actor, subject, detail
  FROM obs_audit
 WHERE action = $1 AND at >= (clock_timestamp() - make_interval(secs => $2))
 ORDER BY id DESC
 LIMIT $3;

-- Report.Past
PREPARE "Report.Past" AS
SELECT type, stream, node, turn_at, started_at, finished_at, outcome, poison_count
  FROM obs_poll
 WHERE finished_at >= $1
 ORDER BY finished_at DESC, id DESC
 LIMIT $2;

-- Operator.Marks
PREPARE "Operator.Marks" AS
SELECT marks FROM obs_cursor WHERE stream = $1 FOR UPDATE;

-- Operator.Reset
PREPARE "Operator.Reset" AS
UPDATE obs_cursor
   SET version = version + 1, query_fingerprint = '', refusal = '', accepted = '', failures = 0, retry_at = NULL, marks = $2,
       low_ts = CASE $3 WHEN 'cursor' THEN low_ts WHEN 'start' THEN start_ts ELSE '' END,
       newest_ts = CASE $3 WHEN 'cursor' THEN newest_ts WHEN 'start' THEN start_ts ELSE '' END
 WHERE stream = $1;

-- Operator.CancelSweeps
PREPARE "Operator.CancelSweeps" AS
UPDATE obs_sweep SET state = 'cancelled', updated_at = clock_timestamp() WHERE stream = $1 AND state = 'running';

-- Operator.ForgetGeneration
PREPARE "Operator.ForgetGeneration" AS
DELETE FROM obs_generation WHERE stream_id = (SELECT stream_id FROM obs_cursor WHERE stream = $1);

-- Operator.ForgetRows
PREPARE "Operator.ForgetRows" AS
UPDATE obs_cursor SET row_count = 0, live_count = 0, epoch = epoch + 1 WHERE stream = $1;

-- Operator.ForgetObserved
PREPARE "Operator.ForgetObserved" AS
DELETE FROM obs_observed WHERE stream_id = (SELECT stream_id FROM obs_cursor WHERE stream = $1);

-- Operator.Accept
PREPARE "Operator.Accept" AS
UPDATE obs_cursor
   SET accepted = refusal, version = version + 1, failures = 0, retry_at = NULL
 WHERE stream = $1 AND refusal = $2 AND refusal <> '';

-- Operator.Audit
PREPARE "Operator.Audit" AS
INSERT INTO obs_audit (at, actor, action, subject, detail) VALUES (clock_timestamp(), $1, $2, $3, $4);

-- Operator.Acts
PREPARE "Operator.Acts" AS
SELECT at, actor, action, subject, detail
  FROM obs_audit
 WHERE (CAST($1 AS DOUBLE PRECISION) = 0 OR at >= (now() - make_interval(secs => $1)))
   AND (CAST($2 AS TEXT) = '' OR action = $2)
   AND (CAST($3 AS TEXT) = '' OR actor = $3)
   AND (CAST($4 AS TEXT) = '' OR substr(' ' || subject, 1 + length(subject) - length($4)) = ' ' || $4)
 ORDER BY id DESC
 LIMIT $5;


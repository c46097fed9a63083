-- Lease.Former
EXPLAIN
SELECT l.client_id IS NOT NULL AS expired, COALESCE(o.liveness, '') AS liveness,
       COALESCE(CASE WHEN l.client_id = o.term OR l.client_id IS NULL THEN o.node END, '') AS node
  FROM (SELECT 1 AS one) x
  LEFT JOIN int_lock l ON l.lock_key = ?1 AND l.region = ?2
  LEFT JOIN obs_lock o ON o.lock_key = ?1 AND o.region = ?2;

-- Lease.Take
EXPLAIN
INSERT INTO int_lock AS l (lock_key, region, client_id, created_date)
VALUES (?1, ?2, ?3, strftime('%Y-%m-%d %H:%M:%f000', 'now'))
ON CONFLICT (lock_key, region) DO UPDATE
   SET client_id = excluded.client_id, created_date = strftime('%Y-%m-%d %H:%M:%f000', 'now')
 WHERE (l.created_date < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', COALESCE((
       SELECT own.ttl_ms / 1000.0 FROM obs_lock own
        WHERE own.lock_key = l.lock_key AND own.region = l.region AND own.term = l.client_id), ?4))))
RETURNING client_id;

-- Lease.Describe
EXPLAIN
INSERT INTO obs_lock (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, liveness, metadata)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, strftime('%Y-%m-%d %H:%M:%f000', 'now'), ?9, ?10, ?11)
ON CONFLICT (lock_key, region) DO UPDATE
   SET term = excluded.term, fence = excluded.fence, name = excluded.name, node = excluded.node,
       descriptor = excluded.descriptor, ttl_ms = excluded.ttl_ms, acquired_at = excluded.acquired_at,
       boot_id = excluded.boot_id, liveness = excluded.liveness,
       metadata = excluded.metadata;

-- Lease.Guard
EXPLAIN
UPDATE int_lock AS l
   SET created_date = strftime('%Y-%m-%d %H:%M:%f000', 'now')
 WHERE lock_key = ?1 AND region = ?2 AND client_id = ?3 AND (l.created_date >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?4)));

-- Lease.Release
EXPLAIN
DELETE FROM int_lock
 WHERE (lock_key, region) IN (
       SELECT lock_key, region FROM int_lock
        WHERE lock_key = ?1 AND region = ?2 AND client_id = ?3 AND TRUE);

-- Lease.Holds
EXPLAIN
SELECT EXISTS (SELECT 1 FROM int_lock WHERE lock_key = ?1 AND region = ?2 AND client_id = ?3);

-- Lease.Holder
EXPLAIN
SELECT l.client_id, (l.created_date >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', COALESCE(o.ttl_ms / 1000.0, CAST(?3 AS DOUBLE PRECISION))))), COALESCE(o.ttl_ms / 1000.0, CAST(?3 AS DOUBLE PRECISION)), l.created_date, strftime('%Y-%m-%d %H:%M:%f000', 'now'), o.node, o.fence, o.term IS NOT NULL AND l.created_date > strftime('%Y-%m-%d %H:%M:%f000', 'now')
  FROM int_lock l
  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
 WHERE l.lock_key = ?1 AND l.region = ?2;

-- Lease.Redate
EXPLAIN
UPDATE int_lock AS l
   SET created_date = strftime('%Y-%m-%d %H:%M:%f000', 'now')
  FROM obs_lock o
 WHERE l.lock_key = ?1 AND l.region = ?2 AND l.created_date > strftime('%Y-%m-%d %H:%M:%f000', 'now')
   AND o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
   AND EXISTS (SELECT 1 FROM int_lock WHERE lock_key = ?1 AND region = ?2);

-- Lease.Locks
EXPLAIN
SELECT l.lock_key, l.region, l.client_id, l.created_date, strftime('%Y-%m-%d %H:%M:%f000', 'now'), o.name, o.node, o.fence, o.ttl_ms, o.acquired_at,
       coalesce(CASE WHEN o.group_term = o.term THEN (
         SELECT max(h.descriptor) FROM obs_hold h
          WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id) ELSE o.descriptor END, ''),
       (SELECT count(*) FROM obs_wait w WHERE w.lock_key = l.lock_key AND w.region = l.region AND w.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', 5))),
       CASE WHEN o.group_term = o.term THEN (
         SELECT count(*) FROM obs_hold h
          WHERE h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id AND (h.touched_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', h.ttl_ms / 1000.0)))) ELSE 0 END,
       (SELECT count(*) FROM (SELECT 1 FROM int_lock LIMIT ?3) counted)
  FROM (
    SELECT * FROM (
      SELECT l.*, 0 AS part
        FROM obs_lock o
        JOIN int_lock l ON l.lock_key = o.lock_key AND l.region = o.region
       WHERE o.region IN (SELECT value FROM json_each(?1))
       ORDER BY o.region, o.lock_key
       LIMIT ?2) pollers
    UNION ALL
    SELECT * FROM (
      SELECT l.*, 1 AS part
        FROM int_lock l
       WHERE NOT EXISTS (SELECT 1 FROM obs_lock o WHERE o.lock_key = l.lock_key AND o.region = l.region AND o.region IN (SELECT value FROM json_each(?1)))
       ORDER BY l.lock_key, l.region
       LIMIT ?2) others
     ORDER BY part, region, lock_key
     LIMIT ?2) l
  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
 ORDER BY l.part, l.region, l.lock_key;

-- Store.Cursor
EXPLAIN
SELECT stream_id, stream, version, epoch, last_seq, row_count, live_count, low_ts, newest_ts, first_reading,
       query_fingerprint, definition, defined_at, refusal, accepted, marks
  FROM obs_cursor
 WHERE stream = ?1;

-- Store.Create
EXPLAIN
INSERT INTO obs_cursor (stream) SELECT ?5 WHERE EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = ?1 AND l.region = ?2 AND l.client_id = ?3 AND (l.created_date >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?4))))
ON CONFLICT (stream) DO NOTHING;

-- Store.Observed
EXPLAIN
SELECT '' AS key, NULL AS row_hash, version, 0 AS row_number, FALSE AS gone FROM obs_cursor WHERE stream_id = ?1
 UNION ALL
SELECT key, row_hash, version, row_number, gone
  FROM obs_observed
 WHERE stream_id = ?1 AND key IN (SELECT value FROM json_each(?2));

-- Store.Between
EXPLAIN
SELECT '' AS key, NULL AS row_hash, version, 0 AS row_number, FALSE AS gone FROM obs_cursor WHERE stream_id = ?1
 UNION ALL
SELECT *
  FROM (SELECT key, row_hash, version, row_number, gone
          FROM obs_observed
         WHERE stream_id = ?1
           AND key BETWEEN CASE WHEN CAST(?2 AS TEXT) < ?3 THEN ?2 ELSE ?3 END AND CASE WHEN CAST(?2 AS TEXT) < ?3 THEN ?3 ELSE ?2 END
         ORDER BY key
         LIMIT ?4) AS page;

-- Store.Live
EXPLAIN
SELECT '' AS key, NULL AS row_hash, version, 0 AS row_number, FALSE AS gone FROM obs_cursor WHERE stream_id = ?1
 UNION ALL
SELECT *
  FROM (SELECT key, row_hash, version, row_number, gone
          FROM obs_observed
         WHERE stream_id = ?1 AND key > ?2 AND NOT gone
         ORDER BY key
         LIMIT ?3) AS page
 ORDER BY key;

-- Store.Generation
EXPLAIN
SELECT reading, key, complete, seen, row_count, started_at, finished_at, took_ms
  FROM obs_generation
 WHERE stream_id = ?1;

-- Store.Buried
EXPLAIN
SELECT digest, refused, last_at > strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?3))
  FROM obs_dead
 WHERE stream = ?1 AND digest IN (SELECT unhex(value) FROM json_each(?2));

-- Store.LockCursor
EXPLAIN
SELECT CAST(commit_id AS TEXT) FROM obs_cursor WHERE stream_id = ?1;

-- Store.Outdate
EXPLAIN
UPDATE obs_cursor
   SET version = version + 1, commit_id = NULL
 WHERE stream_id = ?5 AND version = ?6 AND EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = ?1 AND l.region = ?2 AND l.client_id = ?3 AND (l.created_date >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?4))));

-- Commit.Advance
EXPLAIN
UPDATE obs_cursor
   SET version = ?3, commit_id = ?4, last_seq = ?5, row_count = ?6, live_count = ?7,
       low_ts = ?8, newest_ts = ?9, first_reading = ?10,
       start_ts = CASE WHEN low_ts = '' AND query_fingerprint = '' THEN ?8 ELSE start_ts END,
       query_fingerprint = ?11, definition = ?12,
       defined_at = CASE WHEN definition = ?12 THEN defined_at ELSE strftime('%Y-%m-%d %H:%M:%f000', 'now') END,
       refusal = ?13, accepted = ?14, marks = ?15
 WHERE stream_id = ?1 AND version = ?2 AND NOT paused;

-- Commit.Step
EXPLAIN
UPDATE obs_sweep
   SET position_ts = ?2, row_count = row_count + ?3, event_count = event_count + ?4,
       state = CASE WHEN ?5 THEN 'done' ELSE state END, updated_at = strftime('%Y-%m-%d %H:%M:%f000', 'now')
 WHERE id = ?1 AND state = 'running' AND stream = ?6;

-- Commit.Remember
EXPLAIN
INSERT INTO obs_generation (stream_id, reading, key, complete, seen, row_count, started_at, finished_at, took_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (stream_id) DO UPDATE
   SET reading = excluded.reading, key = excluded.key, complete = excluded.complete, seen = excluded.seen, row_count = excluded.row_count,
       started_at = excluded.started_at, finished_at = excluded.finished_at, took_ms = excluded.took_ms;

-- Commit.Add
EXPLAIN
INSERT INTO obs_observed (stream_id, key, row_hash, version, row_number, gone)
VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- Commit.Change
EXPLAIN
UPDATE obs_observed SET row_hash = ?3, version = ?4, gone = ?5 WHERE stream_id = ?1 AND key = ?2;

-- Commit.Bury
EXPLAIN
INSERT INTO obs_dead (stream, key, digest, reason, raw, first_at, last_at, refused)
VALUES (?1, ?2, ?3, ?4, ?5, strftime('%Y-%m-%d %H:%M:%f000', 'now'), strftime('%Y-%m-%d %H:%M:%f000', 'now'), ?6)
ON CONFLICT (stream, digest) DO UPDATE SET raw = excluded.raw, last_at = excluded.last_at, refused = excluded.refused;

-- Commit.Log
EXPLAIN
INSERT INTO obs_event (stream, seq, event_id, type, subject, version, change, time, data, snapshot)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- Turn.Turn
EXPLAIN
SELECT strftime('%Y-%m-%d %H:%M:%f000', 'now'), s.turn_at, COALESCE((l.created_date >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', COALESCE(CASE WHEN o.term = l.client_id THEN o.ttl_ms / 1000.0 END, CAST(?4 AS DOUBLE PRECISION))))), FALSE),
       CASE WHEN o.term = l.client_id THEN o.node ELSE '' END, CASE WHEN o.term = l.client_id THEN o.boot_id ELSE '' END,
       COALESCE(o.term = l.client_id AND l.created_date > strftime('%Y-%m-%d %H:%M:%f000', 'now'), FALSE)
  FROM (SELECT 1 AS one) x
  LEFT JOIN obs_schedule s ON s.type = ?1
  LEFT JOIN int_lock l ON l.lock_key = ?2 AND l.region = ?3
  LEFT JOIN obs_lock o ON o.lock_key = ?2 AND o.region = ?3;

-- Turn.TakeTurn
EXPLAIN
INSERT INTO obs_schedule AS s (type, turn_at, last_node, last_started, last_finished, last_outcome)
SELECT ?5, ?6, ?7, ?8, ?9, ?10 WHERE EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = ?1 AND l.region = ?2 AND l.client_id = ?3 AND (l.created_date >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?4)))) AND TRUE
ON CONFLICT (type) DO UPDATE
   SET turn_at = excluded.turn_at, last_node = excluded.last_node, last_started = excluded.last_started,
       last_finished = excluded.last_finished, last_outcome = excluded.last_outcome
 WHERE s.turn_at < excluded.turn_at OR s.turn_at > strftime('%Y-%m-%d %H:%M:%f000', 'now');

-- Turn.Streams
EXPLAIN
SELECT '' AS stream, strftime('%Y-%m-%d %H:%M:%f000', 'now') AS now, s.turn_at, FALSE AS marked, FALSE AS paused, NULL AS paused_until, 0 AS failures, '' AS failure_class, NULL AS retry_at,
       NULL AS last_ok_at, 0 AS lag_ms, FALSE AS unread
  FROM (SELECT 1 AS one) x
  LEFT JOIN obs_schedule s ON s.type = ?1
 UNION ALL
SELECT c.stream, strftime('%Y-%m-%d %H:%M:%f000', 'now'), c.turn_at, c.paused, (c.paused AND (c.paused_until IS NULL OR c.paused_until > strftime('%Y-%m-%d %H:%M:%f000', 'now'))), CASE WHEN (c.paused AND (c.paused_until IS NULL OR c.paused_until > strftime('%Y-%m-%d %H:%M:%f000', 'now'))) THEN c.paused_until END, c.failures, c.failure_class, c.retry_at,
       CASE WHEN c.query_fingerprint <> '' AND NOT c.first_reading THEN c.last_ok_at END, c.lag_ms,
       c.lag_ms > 0 OR coalesce((SELECT g.finished_at IS NULL FROM obs_generation g WHERE g.stream_id = c.stream_id), FALSE)
  FROM obs_cursor c
 WHERE c.stream IN (SELECT value FROM json_each(?2));

-- Turn.NoteStream
EXPLAIN
INSERT INTO obs_cursor AS c (stream, turn_at, failures, retry_at, last_error, last_ok_at, lag_ms, failure_class)
SELECT ?5, ?6, ?7, ?8, ?9, CASE WHEN ?10 = 'ok' THEN strftime('%Y-%m-%d %H:%M:%f000', 'now') END, ?11, ?12 WHERE EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = ?1 AND l.region = ?2 AND l.client_id = ?3 AND (l.created_date >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?4))))
ON CONFLICT (stream) DO UPDATE
   SET turn_at = coalesce(excluded.turn_at, c.turn_at), failures = excluded.failures, failure_class = excluded.failure_class, retry_at = excluded.retry_at,
       last_error = CASE WHEN excluded.last_error = '' AND excluded.last_ok_at IS NULL THEN c.last_error ELSE excluded.last_error END, last_ok_at = coalesce(excluded.last_ok_at, c.last_ok_at),
       lag_ms = CASE WHEN excluded.last_ok_at IS NULL THEN c.lag_ms ELSE excluded.lag_ms END;

-- Turn.AddPoll
EXPLAIN
INSERT INTO obs_poll (type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11);

-- Turn.All
EXPLAIN
SELECT type, turn_at, last_started, last_finished, last_node, last_outcome FROM obs_schedule ORDER BY type;

-- Turn.Polls
EXPLAIN
SELECT type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count
  FROM obs_poll
 ORDER BY finished_at DESC, id DESC
 LIMIT ?1;

-- Turn.PollsOf
EXPLAIN
SELECT type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count
  FROM obs_poll
 WHERE stream = ?2
 ORDER BY id DESC
 LIMIT ?1;

-- Node.Beat
EXPLAIN
INSERT INTO obs_node (boot_id, name, version, backend, config_hash, types, unreachable, sinks, started_at, seen_at, liveness, outdated, intervals)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, strftime('%Y-%m-%d %H:%M:%f000', 'now'), strftime('%Y-%m-%d %H:%M:%f000', 'now'), ?9, ?10, ?11)
ON CONFLICT (boot_id) DO UPDATE
   SET types = excluded.types, unreachable = excluded.unreachable, sinks = excluded.sinks, seen_at = excluded.seen_at,
       liveness = excluded.liveness, outdated = excluded.outdated, intervals = excluded.intervals;

-- Node.Nodes
EXPLAIN
SELECT boot_id, name, version, backend, config_hash, types, unreachable, outdated, sinks, intervals, started_at, seen_at
  FROM obs_node
 WHERE seen_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?1))
 ORDER BY name, boot_id;

-- Node.Leave
EXPLAIN
DELETE FROM obs_node WHERE boot_id = ?1 RETURNING sinks;

-- Node.KeepSink
EXPLAIN
UPDATE obs_sink_offset SET updated_at = strftime('%Y-%m-%d %H:%M:%f000', 'now') WHERE sink = ?1 AND stream = '';

-- Stream.Start
EXPLAIN
SELECT start_ts FROM obs_cursor WHERE stream = ?1;

-- Stream.LastError
EXPLAIN
SELECT last_error FROM obs_cursor WHERE stream = ?1;

-- Stream.Statuses
EXPLAIN
SELECT c.stream, c.stream_id, c.version, c.last_seq, c.low_ts, c.newest_ts, c.live_count, c.row_count - c.live_count,
       (c.paused AND (c.paused_until IS NULL OR c.paused_until > strftime('%Y-%m-%d %H:%M:%f000', 'now'))), c.paused_at, c.paused_until, c.paused_by, c.pause_reason,
       c.turn_at, c.last_ok_at, c.failures, c.retry_at, c.last_error, c.lag_ms,
       c.last_ok_at IS NOT NULL AND c.query_fingerprint <> '' AND NOT c.first_reading, coalesce(d.n, 0), d.since,
       CASE WHEN c.accepted = '' THEN c.refusal ELSE '' END
  FROM obs_cursor c
  LEFT JOIN (SELECT stream, count(*) AS n, min(first_at) AS since FROM obs_dead GROUP BY stream) d ON d.stream = c.stream
 ORDER BY c.stream;

-- Stream.Refused
EXPLAIN
SELECT refusal, accepted <> '' FROM obs_cursor WHERE stream = ?1;

-- Sweep.Start
EXPLAIN
INSERT INTO obs_sweep (stream, kind, state, from_ts, before_ts, position_ts, started_at, updated_at)
VALUES (?1, ?2, 'running', ?3, ?4, ?3, strftime('%Y-%m-%d %H:%M:%f000', 'now'), strftime('%Y-%m-%d %H:%M:%f000', 'now'))
ON CONFLICT (stream, kind) WHERE state = 'running' DO NOTHING
RETURNING id, stream, kind, state, from_ts, before_ts, position_ts, row_count, event_count, started_at, updated_at;

-- Sweep.Latest
EXPLAIN
SELECT id, stream, kind, state, from_ts, before_ts, position_ts, row_count, event_count, started_at, updated_at
  FROM (SELECT s.*, row_number() OVER (PARTITION BY stream, kind
                                       ORDER BY CASE state WHEN 'running' THEN 0 ELSE 1 END, id DESC) AS rank
          FROM obs_sweep s
         WHERE stream = ?1 OR CAST(?1 AS TEXT) = '') AS latest
 WHERE rank = 1
 ORDER BY stream, kind;

-- Sweep.Cancel
EXPLAIN
UPDATE obs_sweep SET state = 'cancelled', updated_at = strftime('%Y-%m-%d %H:%M:%f000', 'now') WHERE id = ?1 AND state = 'running'
RETURNING stream, kind;

-- Account.Account
EXPLAIN
SELECT account, node, reason, salt, digest, refused_at
  FROM obs_account
 WHERE account = ?1
 ORDER BY refused_at, digest;

-- Account.All
EXPLAIN
SELECT account, node, reason, salt, digest, refused_at
  FROM obs_account
 ORDER BY account, refused_at, digest;

-- Account.RefuseAccount
EXPLAIN
INSERT INTO obs_account (account, salt, digest, refused_at, node, reason)
VALUES (?1, ?2, ?3, strftime('%Y-%m-%d %H:%M:%f000', 'now'), ?4, ?5)
ON CONFLICT (account, digest) DO NOTHING;

-- Pause.Pause
EXPLAIN
INSERT INTO obs_cursor AS c (stream, paused, paused_at, paused_until, paused_by, pause_reason)
VALUES (?1, TRUE, strftime('%Y-%m-%d %H:%M:%f000', 'now'), CASE WHEN CAST(?2 AS DOUBLE PRECISION) > 0 THEN strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('+%.3f seconds', ?2)) END, ?3, ?4)
ON CONFLICT (stream) DO UPDATE
   SET paused = TRUE, version = c.version + 1, paused_at = CASE WHEN c.paused THEN c.paused_at ELSE excluded.paused_at END,
       paused_until = excluded.paused_until, paused_by = excluded.paused_by, pause_reason = excluded.pause_reason
 WHERE NOT c.paused OR c.paused_until IS NOT NULL AND (excluded.paused_until IS NULL OR excluded.paused_until > c.paused_until);

-- Pause.Resume
EXPLAIN
UPDATE obs_cursor SET paused = FALSE, failures = 0, retry_at = NULL WHERE stream = ?1 AND (paused OR failures > 0);

-- Pause.ForgetAccount
EXPLAIN
DELETE FROM obs_account WHERE account = ?1;

-- Pause.EndPauses
EXPLAIN
UPDATE obs_cursor SET paused = FALSE WHERE stream IN (SELECT value FROM json_each(?1)) AND paused AND paused_until <= strftime('%Y-%m-%d %H:%M:%f000', 'now')
RETURNING stream, paused_by, paused_until;

-- Sink.Pause
EXPLAIN
INSERT INTO obs_sink_offset AS o (sink, stream, last_seq, epoch, updated_at, paused_at, paused_by, pause_reason)
VALUES (?1, '', 0, 0, strftime('%Y-%m-%d %H:%M:%f000', 'now'), strftime('%Y-%m-%d %H:%M:%f000', 'now'), ?2, ?3)
ON CONFLICT (sink, stream) DO UPDATE
   SET paused_at = excluded.paused_at, paused_by = excluded.paused_by, pause_reason = excluded.pause_reason
 WHERE o.paused_at IS NULL;

-- Sink.Resume
EXPLAIN
UPDATE obs_sink_offset
   SET paused_at = NULL, paused_by = '', pause_reason = ''
 WHERE sink = ?1 AND stream = '' AND paused_at IS NOT NULL;

-- Sink.Adopt
EXPLAIN
INSERT INTO obs_sink_offset AS o (sink, stream, last_seq, epoch, updated_at, adopted)
VALUES (?1, ?2, 0, 0, strftime('%Y-%m-%d %H:%M:%f000', 'now'), TRUE)
ON CONFLICT (sink, stream) DO UPDATE SET adopted = TRUE
 WHERE NOT o.adopted;

-- Parked.Parked
EXPLAIN
SELECT id, sink, stream, seq, CAST(event_id AS TEXT), subject, reason, parked_at, retry_at IS NOT NULL, CASE WHEN ?9 THEN CAST(data AS TEXT) ELSE '' END
  FROM obs_parked
 WHERE (?1 OR id IN (SELECT CAST(value AS INTEGER) FROM json_each(?2)))
   AND (?3 OR sink IN (SELECT value FROM json_each(?4)))
   AND (?5 OR stream IN (SELECT value FROM json_each(?6)))
   AND (CAST(?7 AS TEXT) = '' OR subject = ?7)
   AND (CAST(?8 AS DOUBLE PRECISION) = 0 OR parked_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?8)))
 ORDER BY sink, stream, seq
 LIMIT ?10;

-- Parked.Retry
EXPLAIN
UPDATE obs_parked
   SET retry_at = strftime('%Y-%m-%d %H:%M:%f000', 'now')
 WHERE sink = ?1
   AND EXISTS (SELECT 1 FROM obs_parked k
                WHERE k.sink = ?1 AND k.stream = obs_parked.stream AND k.subject = obs_parked.subject AND k.id IN (SELECT CAST(value AS INTEGER) FROM json_each(?2)));

-- Parked.Drop
EXPLAIN
DELETE FROM obs_parked WHERE sink = ?1 AND id IN (SELECT CAST(value AS INTEGER) FROM json_each(?2));

-- Dead.Dead
EXPLAIN
SELECT id, stream, key, reason, refused, first_at, last_at, CASE WHEN ?7 THEN raw ELSE '' END
  FROM obs_dead
 WHERE (?1 OR id IN (SELECT CAST(value AS INTEGER) FROM json_each(?2)))
   AND (?3 OR stream IN (SELECT value FROM json_each(?4)))
   AND (CAST(?5 AS TEXT) = '' OR key = ?5)
   AND (CAST(?6 AS DOUBLE PRECISION) = 0 OR last_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?6)))
 ORDER BY last_at DESC, id DESC
 LIMIT ?8;

-- Dead.SettleDead
EXPLAIN
SELECT 1 WHERE EXISTS (SELECT 1 FROM int_lock l WHERE l.lock_key = ?1 AND l.region = ?2 AND l.client_id = ?3 AND (l.created_date >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?4))));

-- Dead.DeleteDead
EXPLAIN
DELETE FROM obs_dead WHERE stream || '' = ?1 AND id IN (SELECT CAST(value AS INTEGER) FROM json_each(?2));

-- Janitor.Polls
EXPLAIN
DELETE FROM obs_poll WHERE (stream, id) IN (SELECT stream, id FROM obs_poll WHERE finished_at < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?1)) ORDER BY finished_at LIMIT 5000);

-- Janitor.Dead
EXPLAIN
DELETE FROM obs_dead
 WHERE id IN (SELECT d.id
                FROM obs_dead d
                LEFT JOIN obs_cursor c ON c.stream = d.stream
               WHERE d.last_at < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?1)) AND (d.refused OR c.stream IS NULL)
               ORDER BY d.last_at
               LIMIT 5000);

-- Janitor.DeadValues
EXPLAIN
UPDATE obs_dead
   SET raw = ''
 WHERE id IN (SELECT id FROM obs_dead WHERE last_at < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?1)) AND raw <> '' ORDER BY last_at LIMIT 5000);

-- Janitor.Audit
EXPLAIN
DELETE FROM obs_audit WHERE id IN (SELECT id FROM obs_audit WHERE at < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?1)) ORDER BY at LIMIT 5000);

-- Janitor.Sweeps
EXPLAIN
DELETE FROM obs_sweep
 WHERE state <> 'running' AND updated_at < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?1))
   AND EXISTS (SELECT 1 FROM obs_sweep later
                WHERE later.stream = obs_sweep.stream AND later.kind = obs_sweep.kind AND later.id > obs_sweep.id);

-- Janitor.Nodes
EXPLAIN
DELETE FROM obs_node WHERE seen_at < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?1));

-- Janitor.Holds
EXPLAIN
DELETE FROM obs_hold
 WHERE touched_at < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', CAST(?1 AS DOUBLE PRECISION) + ttl_ms / 1000.0))
   AND (lock_key, region, term) IN (SELECT lock_key, region, term FROM obs_hold WHERE touched_at < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', CAST(?1 AS DOUBLE PRECISION) + ttl_ms / 1000.0)) ORDER BY lock_key, region, term LIMIT 5000);

-- Janitor.Locks
EXPLAIN
DELETE FROM int_lock
 WHERE EXISTS (
       SELECT 1 FROM obs_lock o
        WHERE o.lock_key = int_lock.lock_key AND o.region = int_lock.region AND o.term = int_lock.client_id
          AND NOT EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = o.lock_key AND h.region = o.region AND h.group_term = o.term)
          AND int_lock.created_date < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', (CAST(?1 AS DOUBLE PRECISION) + o.ttl_ms / 1000.0))))
   AND (lock_key, region) IN (SELECT lock_key, region FROM int_lock WHERE EXISTS (
       SELECT 1 FROM obs_lock o
        WHERE o.lock_key = int_lock.lock_key AND o.region = int_lock.region AND o.term = int_lock.client_id
          AND NOT EXISTS (SELECT 1 FROM obs_hold h WHERE h.lock_key = o.lock_key AND h.region = o.region AND h.group_term = o.term)
          AND int_lock.created_date < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', (CAST(?1 AS DOUBLE PRECISION) + o.ttl_ms / 1000.0)))) ORDER BY lock_key, region LIMIT 5000);

-- Janitor.Notes
EXPLAIN
DELETE FROM obs_lock
 WHERE acquired_at < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?1))
   AND NOT EXISTS (SELECT 1 FROM int_lock l
                    WHERE l.lock_key = obs_lock.lock_key AND l.region = obs_lock.region AND l.client_id = obs_lock.term)
   AND (lock_key, region) IN (SELECT lock_key, region FROM obs_lock WHERE acquired_at < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?1))
   AND NOT EXISTS (SELECT 1 FROM int_lock l
                    WHERE l.lock_key = obs_lock.lock_key AND l.region = obs_lock.region AND l.client_id = obs_lock.term) ORDER BY lock_key, region LIMIT 5000);

-- Janitor.Waits
EXPLAIN
DELETE FROM obs_wait
 WHERE touched_at < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?1))
   AND (waiter, lock_key, region) IN (SELECT waiter, lock_key, region FROM obs_wait WHERE touched_at < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?1)) ORDER BY waiter, lock_key, region LIMIT 5000);

-- Janitor.Failures
EXPLAIN
DELETE FROM obs_lock_failure
 WHERE last_at < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?1))
   AND (lock_key, region, predicate) IN (SELECT lock_key, region, predicate FROM obs_lock_failure
                                          WHERE last_at < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?1)) ORDER BY lock_key, region, predicate LIMIT 5000);

-- Janitor.Sinks
EXPLAIN
SELECT sink, max(updated_at) >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?1)) FROM obs_sink_offset GROUP BY sink;

-- Janitor.LockSink
EXPLAIN
SELECT 1 FROM obs_sink_offset WHERE sink = ?1 AND stream = '';

-- Janitor.ForgetSink
EXPLAIN
DELETE FROM obs_sink_offset
 WHERE sink = ?1
   AND NOT EXISTS (SELECT 1 FROM obs_sink_offset fed WHERE fed.sink = ?1 AND fed.updated_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?2)));

-- Janitor.FirstEvent
EXPLAIN
SELECT min(seq) FROM obs_event WHERE stream = ?1;

-- Janitor.CleanEvents
EXPLAIN
DELETE FROM obs_event
 WHERE stream = ?1 AND seq >= ?2 AND seq < ?3 AND logged_at < strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?4))
   AND seq < coalesce((SELECT min(seq)
                         FROM obs_event
                        WHERE stream = ?1 AND seq >= ?2 AND seq < ?3 AND logged_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?4))), ?3)
   AND seq <= coalesce((SELECT min(coalesce(o.last_seq, 0))
                          FROM obs_sink_offset s
                          LEFT JOIN obs_sink_offset o ON o.sink = s.sink AND o.stream = ?1
                         WHERE s.stream = ''), ?3);

-- Report.Recent
EXPLAIN
SELECT stream, count(*), sum(CASE WHEN outcome = ?2 THEN 0 ELSE 1 END), CAST(sum(row_count) AS BIGINT), CAST(sum(event_count) AS BIGINT), CAST(sum(poison_count) AS BIGINT)
  FROM obs_poll
 WHERE finished_at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?1))
 GROUP BY stream;

-- Report.Parked
EXPLAIN
SELECT sink, count(*), min(parked_at) FROM obs_parked GROUP BY sink ORDER BY sink;

-- Report.Generations
EXPLAIN
SELECT c.stream, g.row_count, c.live_count, g.started_at, g.finished_at, g.took_ms
  FROM obs_generation g
  JOIN obs_cursor c ON c.stream_id = g.stream_id
 WHERE g.reading NOT LIKE 'apart %'
 ORDER BY c.stream;

-- Report.WentBack
EXPLAIN
SELECT at, actor, subject, detail
  FROM obs_audit
 WHERE action = ?1 AND at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?2))
 ORDER BY id DESC
 LIMIT ?3;

-- Report.Past
EXPLAIN
SELECT type, stream, node, turn_at, started_at, finished_at, outcome, poison_count
  FROM obs_poll
 WHERE finished_at >= ?1
 ORDER BY finished_at DESC, id DESC
 LIMIT ?2;

-- Operator.Marks
EXPLAIN
SELECT marks FROM obs_cursor WHERE stream = ?1;

-- Operator.Reset
EXPLAIN
UPDATE obs_cursor
   SET version = version + 1, query_fingerprint = '', refusal = '', accepted = '', failures = 0, retry_at = NULL, marks = ?2,
       low_ts = CASE ?3 WHEN 'cursor' THEN low_ts WHEN 'start' THEN start_ts ELSE '' END,
       newest_ts = CASE ?3 WHEN 'cursor' THEN newest_ts WHEN 'start' THEN start_ts ELSE '' END
 WHERE stream = ?1;

-- Operator.CancelSweeps
EXPLAIN
UPDATE obs_sweep SET state = 'cancelled', updated_at = strftime('%Y-%m-%d %H:%M:%f000', 'now') WHERE stream = ?1 AND state = 'running';

-- Operator.ForgetGeneration
EXPLAIN
DELETE FROM obs_generation WHERE stream_id = (SELECT stream_id FROM obs_cursor WHERE stream = ?1);

-- Operator.ForgetRows
EXPLAIN
UPDATE obs_cursor SET row_count = 0, live_count = 0, epoch = epoch + 1 WHERE stream = ?1;

-- Operator.ForgetObserved
EXPLAIN
DELETE FROM obs_observed WHERE stream_id = (SELECT stream_id FROM obs_cursor WHERE stream = ?1);

-- Operator.Accept
EXPLAIN
UPDATE obs_cursor
   SET accepted = refusal, version = version + 1, failures = 0, retry_at = NULL
 WHERE stream = ?1 AND refusal = ?2 AND refusal <> '';

-- Operator.Audit
EXPLAIN
INSERT INTO obs_audit (at, actor, action, subject, detail) VALUES (strftime('%Y-%m-%d %H:%M:%f000', 'now'), ?1, ?2, ?3, ?4);

-- Operator.Acts
EXPLAIN
SELECT at, actor, action, subject, detail
  FROM obs_audit
 WHERE (CAST(?1 AS DOUBLE PRECISION) = 0 OR at >= strftime('%Y-%m-%d %H:%M:%f000', 'now', printf('-%.3f seconds', ?1)))
   AND (CAST(?2 AS TEXT) = '' OR action = ?2)
   AND (CAST(?3 AS TEXT) = '' OR actor = ?3)
   AND (CAST(?4 AS TEXT) = '' OR substr(' ' || subject, 1 + length(subject) - length(?4)) = ' ' || ?4)
 ORDER BY id DESC
 LIMIT ?5;


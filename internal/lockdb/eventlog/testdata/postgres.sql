-- Backlog
PREPARE "Backlog" AS
SELECT c.stream, coalesce(o.last_seq, 0), coalesce(e.seq, 0), c.last_seq, e.logged_at, clock_timestamp(), s.paused_at IS NOT NULL
  FROM obs_cursor c
  LEFT JOIN obs_sink_offset o ON o.sink = $1 AND o.stream = c.stream
  LEFT JOIN obs_sink_offset s ON s.sink = $1 AND s.stream = ''
  LEFT JOIN obs_event e ON e.stream = c.stream
                       AND e.seq = (SELECT n.seq FROM obs_event n WHERE n.stream = c.stream AND n.seq > coalesce(o.last_seq, 0) ORDER BY n.seq LIMIT 1)
 WHERE c.last_seq > coalesce(o.last_seq, 0)
 ORDER BY c.stream;

-- After
PREPARE "After" AS
SELECT stream, seq, event_id, type, subject, version, change, snapshot, time, logged_at, data, (SELECT concat(CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS BIGINT), '/', pg_relation_filenode('obs_event'::regclass)))
  FROM obs_event
 WHERE stream = $1 AND seq > $2
 ORDER BY seq
 LIMIT $3;

-- Latest
PREPARE "Latest" AS
SELECT stream, seq, event_id, type, subject, version, change, snapshot, time, logged_at, CASE WHEN CAST($3 AS BOOLEAN) THEN data END, ''
  FROM obs_event
 WHERE stream = $1
 ORDER BY seq DESC
 LIMIT $2;

-- Read
PREPARE "Read" AS
SELECT e.stream, e.seq, e.event_id, e.type, e.subject, e.version, e.change, e.snapshot, e.time, e.logged_at, e.data, (SELECT concat(CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS BIGINT), '/', pg_relation_filenode('obs_event'::regclass)))
  FROM unnest($1::text[], $2::text[]::bigint[], $3::text[]::bigint[]) WITH ORDINALITY AS r (stream, after_seq, last_seq, n)
 CROSS JOIN LATERAL (
       SELECT o.stream, o.seq, o.event_id, o.type, o.subject, o.version, o.change, o.snapshot, o.time, o.logged_at, o.data
         FROM obs_event o
        WHERE o.stream = r.stream AND o.seq > r.after_seq AND o.seq <= r.last_seq
        ORDER BY o.seq
        LIMIT r.last_seq - r.after_seq) AS e
 ORDER BY r.n;

-- Next
PREPARE "Next" AS
SELECT seq, logged_at FROM obs_event WHERE stream = $1 AND seq > $2 ORDER BY seq LIMIT 1;

-- LastSeqs
PREPARE "LastSeqs" AS
SELECT stream, last_seq FROM obs_cursor;

-- Claim
PREPARE "Claim" AS
INSERT INTO obs_sink_offset AS o (sink, stream, last_seq, epoch, updated_at)
VALUES ($1, '', 0, $2, clock_timestamp())
ON CONFLICT (sink, stream) DO UPDATE
   SET epoch = excluded.epoch, updated_at = excluded.updated_at
 WHERE o.epoch <= excluded.epoch;

-- LogID
PREPARE "LogID" AS
SELECT CAST(id AS TEXT) FROM obs_log;

-- Begin
PREPARE "Begin" AS
INSERT INTO obs_sink_offset (sink, stream, last_seq, epoch, updated_at)
SELECT $1, s.value, 0, $2, clock_timestamp()
  FROM (SELECT n, value FROM unnest($3::text[]) WITH ORDINALITY AS l (value, n)) s
 WHERE TRUE
ON CONFLICT (sink, stream) DO NOTHING;

-- Move
PREPARE "Move" AS
INSERT INTO obs_sink_offset AS o (sink, stream, last_seq, stored_seq, stored_id, stored_digest, epoch, updated_at)
SELECT $1, m.stream, m.last_seq, m.stored_seq, m.stored_id, m.stored_digest, $2, clock_timestamp()
  FROM unnest($3::text[], $4::text[]::bigint[], $5::text[]::bigint[], $6::text[], $7::text[]::bigint[], $8::text[], $9::text[], $10::text[])
       AS m (stream, after_seq, last_seq, ids, stored_seq, stored_id, stored_digest, server)
 WHERE EXISTS (SELECT 1 FROM obs_sink_offset c WHERE c.sink = $1 AND c.stream = '' AND c.epoch = $2 FOR SHARE)
   AND (SELECT b.last_seq FROM obs_sink_offset b WHERE b.sink = $1 AND b.stream = m.stream FOR UPDATE) IN (m.after_seq, m.last_seq)
   AND CASE WHEN m.server = '' THEN m.ids = (SELECT string_agg(CAST(e.event_id AS TEXT), '' ORDER BY e.seq)
                                               FROM obs_event e
                                              WHERE e.stream = m.stream AND e.seq > m.after_seq AND e.seq <= m.last_seq)
            ELSE m.server = (SELECT concat(CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 AS BIGINT), '/', pg_relation_filenode('obs_event'::regclass))) AND m.ids = (SELECT CAST(e.event_id AS TEXT) FROM obs_event e WHERE e.stream = m.stream AND e.seq = m.last_seq) END
ON CONFLICT (sink, stream) DO UPDATE
   SET last_seq = excluded.last_seq,
       stored_seq = CASE WHEN excluded.stored_seq > 0 THEN excluded.stored_seq ELSE o.stored_seq END,
       stored_id = CASE WHEN excluded.stored_seq > 0 THEN excluded.stored_id ELSE o.stored_id END,
       stored_digest = CASE WHEN excluded.stored_seq > 0 THEN excluded.stored_digest ELSE o.stored_digest END,
       adopted = o.adopted AND excluded.stored_seq = 0,
       epoch = excluded.epoch, updated_at = excluded.updated_at;

-- Marks
PREPARE "Marks" AS
SELECT stream, last_seq, stored_seq, stored_id, stored_digest, adopted FROM obs_sink_offset WHERE sink = $1 AND stream <> '';

-- Seek
PREPARE "Seek" AS
INSERT INTO obs_sink_offset AS o (sink, stream, last_seq, stored_seq, stored_id, stored_digest, epoch, updated_at)
SELECT $1, $2, $5, $6, $7, $8, $3, clock_timestamp()
 WHERE EXISTS (SELECT 1 FROM obs_sink_offset c WHERE c.sink = $1 AND c.stream = '' AND c.epoch = $3 FOR SHARE)
   AND (CAST($4 AS BIGINT) = 0 OR EXISTS (SELECT 1 FROM obs_sink_offset b WHERE b.sink = $1 AND b.stream = $2))
ON CONFLICT (sink, stream) DO UPDATE
   SET last_seq = excluded.last_seq, stored_seq = excluded.stored_seq, stored_id = excluded.stored_id, stored_digest = excluded.stored_digest, adopted = FALSE,
       epoch = excluded.epoch, updated_at = excluded.updated_at
 WHERE o.last_seq = $4;

-- Park
PREPARE "Park" AS
INSERT INTO obs_parked (sink, stream, seq, event_id, type, subject, version, change, snapshot, time, logged_at, data, reason, parked_at, retry_at)
SELECT $1, e.stream, e.seq, e.event_id, e.type, e.subject, e.version, e.change, e.snapshot, e.time, e.logged_at, e.data, r.value, clock_timestamp(),
       (SELECT max(k.retry_at) FROM obs_parked k WHERE k.sink = $1 AND k.stream = e.stream AND k.subject = e.subject)
  FROM (SELECT n, value FROM unnest($2::text[]) WITH ORDINALITY AS l (value, n)) s
  JOIN (SELECT n, value FROM unnest($3::text[]) WITH ORDINALITY AS l (value, n)) q ON q.n = s.n
  JOIN (SELECT n, value FROM unnest($4::text[]) WITH ORDINALITY AS l (value, n)) r ON r.n = s.n
 CROSS JOIN obs_event e
 WHERE e.stream = s.value AND e.seq = CAST(q.value AS BIGINT)
 ORDER BY s.n
ON CONFLICT (sink, event_id) DO NOTHING;

-- Parked
PREPARE "Parked" AS
SELECT p.stream, p.subject, count(*), min(p.seq), max(p.seq), min(p.parked_at), clock_timestamp(), count(p.retry_at) > 0, s.paused_at IS NOT NULL
  FROM obs_parked p
  LEFT JOIN obs_sink_offset s ON s.sink = p.sink AND s.stream = ''
 WHERE p.sink = $1
 GROUP BY p.stream, p.subject, s.paused_at;

-- Retries
PREPARE "Retries" AS
SELECT p.stream, p.seq, p.event_id, p.type, p.subject, p.version, p.change, p.snapshot, p.time, p.logged_at, p.data, ''
  FROM obs_parked p
  JOIN obs_sink_offset o ON o.sink = p.sink AND o.stream = p.stream AND o.last_seq >= p.seq
 WHERE p.sink = $1
   AND EXISTS (SELECT 1 FROM obs_parked m WHERE m.sink = p.sink AND m.stream = p.stream AND m.subject = p.subject AND m.retry_at IS NOT NULL)
 ORDER BY p.stream, p.seq
 LIMIT $2;

-- Unpark
PREPARE "Unpark" AS
DELETE FROM obs_parked
 WHERE sink = $1 AND CAST(event_id AS TEXT) = ANY ($3::text[])
   AND EXISTS (SELECT 1 FROM obs_sink_offset c WHERE c.sink = $1 AND c.stream = '' AND c.epoch = $2 FOR SHARE);

-- Repark
PREPARE "Repark" AS
UPDATE obs_parked
   SET retry_at = NULL, reason = CASE WHEN CAST(event_id AS TEXT) = $5 THEN $6 ELSE reason END
 WHERE sink = $1 AND stream = $3 AND subject = $4
   AND EXISTS (SELECT 1 FROM obs_sink_offset c WHERE c.sink = $1 AND c.stream = '' AND c.epoch = $2 FOR SHARE);

-- PauseSink
PREPARE "PauseSink" AS
UPDATE obs_sink_offset
   SET paused_at = clock_timestamp(), paused_by = $3, pause_reason = $4
 WHERE sink = $1 AND stream = '' AND epoch = $2 AND paused_at IS NULL;

-- Notify
PREPARE "Notify" AS
SELECT pg_notify($1, '');

-- Failed
PREPARE "Failed" AS
UPDATE obs_sink_offset
   SET failed_at = CASE WHEN $3 = '' THEN NULL WHEN last_error <> '' AND failed_node = $4 THEN failed_at ELSE clock_timestamp() END,
       last_error = $3, failed_node = CASE WHEN $3 = '' THEN '' ELSE $4 END
 WHERE sink = $1 AND stream = '' AND epoch = $2 AND (last_error <> $3 OR $3 <> '');

-- WhyNot
PREPARE "WhyNot" AS
SELECT epoch FROM obs_sink_offset WHERE sink = $1 AND stream = '';

-- Offsets
PREPARE "Offsets" AS
SELECT s.sink, c.stream, coalesce(o.last_seq, 0), c.last_seq, e.logged_at, s.last_error, s.failed_node, s.failed_at,
       s.paused_at, s.paused_by, s.pause_reason
  FROM obs_sink_offset s
 CROSS JOIN obs_cursor c
  LEFT JOIN obs_sink_offset o ON o.sink = s.sink AND o.stream = c.stream
  LEFT JOIN obs_event e ON e.stream = c.stream AND e.seq = coalesce(o.last_seq, 0) + 1
 WHERE s.stream = ''
 ORDER BY s.sink, c.stream;

-- Ends
PREPARE "Ends" AS
SELECT coalesce((SELECT c.last_seq FROM obs_cursor c WHERE c.stream = l.value), 0),
       coalesce((SELECT CAST(e.event_id AS TEXT) FROM obs_event e WHERE e.stream = l.value AND e.seq = CAST(s.value AS BIGINT)), '')
  FROM (SELECT n, value FROM unnest($1::text[]) WITH ORDINALITY AS l (value, n)) l
  JOIN (SELECT n, value FROM unnest($2::text[]) WITH ORDINALITY AS l (value, n)) s ON s.n = l.n
 WHERE NOT pg_is_in_recovery()
 ORDER BY l.n;

-- NoteBack
PREPARE "NoteBack" AS
INSERT INTO obs_audit (at, actor, action, subject, detail)
SELECT clock_timestamp(), CAST($1 AS TEXT), CAST($2 AS TEXT), s.value, d.value
  FROM (SELECT n, value FROM unnest($3::text[]) WITH ORDINALITY AS l (value, n)) s
  JOIN (SELECT n, value FROM unnest($4::text[]) WITH ORDINALITY AS l (value, n)) d ON d.n = s.n
  JOIN (SELECT n, value FROM unnest($5::text[]) WITH ORDINALITY AS l (value, n)) w ON w.n = s.n
 WHERE NOT EXISTS (SELECT 1 FROM obs_audit a
                    WHERE a.action = $2 AND a.subject = s.value
                      AND substr(a.detail, 1, length(w.value)) = w.value)
 ORDER BY s.n;


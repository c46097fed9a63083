-- Backlog
PREPARE "Backlog" AS
SELECT c.stream, coalesce(o.last_seq, 0), c.last_seq,
       (SELECT e.logged_at FROM obs_event e WHERE e.stream = c.stream AND e.seq > coalesce(o.last_seq, 0) ORDER BY e.seq LIMIT 1),
       clock_timestamp()
  FROM obs_cursor c
  LEFT JOIN obs_sink_offset o ON o.sink = $1 AND o.stream = c.stream
 WHERE c.last_seq > coalesce(o.last_seq, 0)
 ORDER BY c.stream;

-- Read
PREPARE "Read" AS
SELECT seq, event_id, type, subject, version, change, snapshot, time, logged_at, data
  FROM obs_event
 WHERE stream = $1 AND seq > $2
 ORDER BY seq
 LIMIT $3;

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

-- Acknowledge
PREPARE "Acknowledge" AS
INSERT INTO obs_sink_offset AS o (sink, stream, last_seq, epoch, updated_at)
SELECT $1, $2, $3, $4, clock_timestamp()
 WHERE EXISTS (SELECT 1 FROM obs_sink_offset s WHERE s.sink = $1 AND s.stream = '' AND s.epoch = $4 FOR SHARE)
   AND (CAST($5 AS BIGINT) = 0 OR EXISTS (SELECT 1 FROM obs_sink_offset b WHERE b.sink = $1 AND b.stream = $2))
   AND CAST($6 AS BIGINT) = (
       SELECT count(*)
         FROM (SELECT n, value FROM unnest($7::text[]) WITH ORDINALITY AS l (value, n)) b
        CROSS JOIN obs_event e
        WHERE e.stream = $2 AND e.seq = CAST($3 AS BIGINT) - CAST($6 AS BIGINT) + b.n AND CAST(e.event_id AS TEXT) = b.value
          AND e.seq > CAST($3 AS BIGINT) - CAST($6 AS BIGINT) AND e.seq <= CAST($3 AS BIGINT))
ON CONFLICT (sink, stream) DO UPDATE
   SET last_seq = excluded.last_seq, epoch = excluded.epoch, updated_at = excluded.updated_at
 WHERE o.last_seq IN (CAST($5 AS BIGINT), excluded.last_seq);

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
SELECT s.sink, c.stream, coalesce(o.last_seq, 0), c.last_seq, e.logged_at, s.last_error, s.failed_node, s.failed_at
  FROM obs_sink_offset s
 CROSS JOIN obs_cursor c
  LEFT JOIN obs_sink_offset o ON o.sink = s.sink AND o.stream = c.stream
  LEFT JOIN obs_event e ON e.stream = c.stream AND e.seq = coalesce(o.last_seq, 0) + 1
 WHERE s.stream = ''
 ORDER BY s.sink, c.stream;

-- GoneBack
PREPARE "GoneBack" AS
SELECT l.n,
       coalesce((SELECT c.last_seq FROM obs_cursor c WHERE c.stream = l.value), 0),
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


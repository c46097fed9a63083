-- Backlog
EXPLAIN
SELECT c.stream, coalesce(o.last_seq, 0), coalesce(e.seq, 0), c.last_seq, e.logged_at, strftime('%Y-%m-%d %H:%M:%f000', 'now'), s.paused_at IS NOT NULL
  FROM obs_cursor c
  LEFT JOIN obs_sink_offset o ON o.sink = ?1 AND o.stream = c.stream
  LEFT JOIN obs_sink_offset s ON s.sink = ?1 AND s.stream = ''
  LEFT JOIN obs_event e ON e.stream = c.stream
                       AND e.seq = (SELECT n.seq FROM obs_event n WHERE n.stream = c.stream AND n.seq > coalesce(o.last_seq, 0) ORDER BY n.seq LIMIT 1)
 WHERE c.last_seq > coalesce(o.last_seq, 0)
 ORDER BY c.stream;

-- After
EXPLAIN
SELECT stream, seq, event_id, type, subject, version, change, snapshot, time, logged_at, data, ''
  FROM obs_event
 WHERE stream = ?1 AND seq > ?2
 ORDER BY seq
 LIMIT ?3;

-- Latest
EXPLAIN
SELECT stream, seq, event_id, type, subject, version, change, snapshot, time, logged_at, CASE WHEN CAST(?3 AS BOOLEAN) THEN data END, ''
  FROM obs_event
 WHERE stream = ?1
 ORDER BY seq DESC
 LIMIT ?2;

-- Read
EXPLAIN
SELECT e.stream, e.seq, e.event_id, e.type, e.subject, e.version, e.change, e.snapshot, e.time, e.logged_at, e.data, ''
  FROM (SELECT key + 1 AS n, value FROM json_each(?1)) s
  JOIN (SELECT key + 1 AS n, value FROM json_each(?2)) a ON a.n = s.n
  JOIN (SELECT key + 1 AS n, value FROM json_each(?3)) l ON l.n = s.n
 CROSS JOIN obs_event e
 WHERE e.stream = s.value AND e.seq > CAST(a.value AS BIGINT) AND e.seq <= CAST(l.value AS BIGINT)
 ORDER BY s.n, e.seq;

-- Next
EXPLAIN
SELECT seq, logged_at FROM obs_event WHERE stream = ?1 AND seq > ?2 ORDER BY seq LIMIT 1;

-- LastSeqs
EXPLAIN
SELECT stream, last_seq FROM obs_cursor;

-- Claim
EXPLAIN
INSERT INTO obs_sink_offset AS o (sink, stream, last_seq, epoch, updated_at)
VALUES (?1, '', 0, ?2, strftime('%Y-%m-%d %H:%M:%f000', 'now'))
ON CONFLICT (sink, stream) DO UPDATE
   SET epoch = excluded.epoch, updated_at = excluded.updated_at
 WHERE o.epoch <= excluded.epoch;

-- LogID
EXPLAIN
SELECT CAST(id AS TEXT) FROM obs_log;

-- Begin
EXPLAIN
INSERT INTO obs_sink_offset (sink, stream, last_seq, epoch, updated_at)
SELECT ?1, s.value, 0, ?2, strftime('%Y-%m-%d %H:%M:%f000', 'now')
  FROM (SELECT key + 1 AS n, value FROM json_each(?3)) s
 WHERE TRUE
ON CONFLICT (sink, stream) DO NOTHING;

-- Move
EXPLAIN
UPDATE obs_sink_offset AS o
   SET last_seq = m.last_seq,
       stored_seq = CASE WHEN m.stored_seq > 0 THEN m.stored_seq ELSE o.stored_seq END,
       stored_id = CASE WHEN m.stored_seq > 0 THEN m.stored_id ELSE o.stored_id END,
       stored_digest = CASE WHEN m.stored_seq > 0 THEN m.stored_digest ELSE o.stored_digest END,
       adopted = o.adopted AND m.stored_seq = 0,
       epoch = ?2, updated_at = strftime('%Y-%m-%d %H:%M:%f000', 'now')
  FROM (SELECT s.value AS stream, CAST(a.value AS BIGINT) AS after_seq, CAST(l.value AS BIGINT) AS last_seq, i.value AS ids,
               CAST(p.value AS BIGINT) AS stored_seq, d.value AS stored_id, g.value AS stored_digest
          FROM (SELECT key + 1 AS n, value FROM json_each(?3)) s
          JOIN (SELECT key + 1 AS n, value FROM json_each(?4)) a ON a.n = s.n
          JOIN (SELECT key + 1 AS n, value FROM json_each(?5)) l ON l.n = s.n
          JOIN (SELECT key + 1 AS n, value FROM json_each(?6)) i ON i.n = s.n
          JOIN (SELECT key + 1 AS n, value FROM json_each(?7)) p ON p.n = s.n
          JOIN (SELECT key + 1 AS n, value FROM json_each(?8)) d ON d.n = s.n
          JOIN (SELECT key + 1 AS n, value FROM json_each(?9)) g ON g.n = s.n) m
 WHERE o.sink = ?1 AND o.stream = m.stream AND o.last_seq IN (m.after_seq, m.last_seq)
   AND EXISTS (SELECT 1 FROM obs_sink_offset c WHERE c.sink = ?1 AND c.stream = '' AND c.epoch = ?2)
   AND m.ids = (SELECT string_agg(CAST(e.event_id AS TEXT), '' ORDER BY e.seq)
                  FROM obs_event e
                 WHERE e.stream = m.stream AND e.seq > m.after_seq AND e.seq <= m.last_seq);

-- Marks
EXPLAIN
SELECT stream, last_seq, stored_seq, stored_id, stored_digest, adopted FROM obs_sink_offset WHERE sink = ?1 AND stream <> '';

-- Seek
EXPLAIN
INSERT INTO obs_sink_offset AS o (sink, stream, last_seq, stored_seq, stored_id, stored_digest, epoch, updated_at)
SELECT ?1, ?2, ?5, ?6, ?7, ?8, ?3, strftime('%Y-%m-%d %H:%M:%f000', 'now')
 WHERE EXISTS (SELECT 1 FROM obs_sink_offset c WHERE c.sink = ?1 AND c.stream = '' AND c.epoch = ?3)
   AND (CAST(?4 AS BIGINT) = 0 OR EXISTS (SELECT 1 FROM obs_sink_offset b WHERE b.sink = ?1 AND b.stream = ?2))
ON CONFLICT (sink, stream) DO UPDATE
   SET last_seq = excluded.last_seq, stored_seq = excluded.stored_seq, stored_id = excluded.stored_id, stored_digest = excluded.stored_digest, adopted = FALSE,
       epoch = excluded.epoch, updated_at = excluded.updated_at
 WHERE o.last_seq = ?4;

-- Park
EXPLAIN
INSERT INTO obs_parked (sink, stream, seq, event_id, type, subject, version, change, snapshot, time, logged_at, data, reason, parked_at, retry_at)
SELECT ?1, e.stream, e.seq, e.event_id, e.type, e.subject, e.version, e.change, e.snapshot, e.time, e.logged_at, e.data, r.value, strftime('%Y-%m-%d %H:%M:%f000', 'now'),
       (SELECT max(k.retry_at) FROM obs_parked k WHERE k.sink = ?1 AND k.stream = e.stream AND k.subject = e.subject)
  FROM (SELECT key + 1 AS n, value FROM json_each(?2)) s
  JOIN (SELECT key + 1 AS n, value FROM json_each(?3)) q ON q.n = s.n
  JOIN (SELECT key + 1 AS n, value FROM json_each(?4)) r ON r.n = s.n
 CROSS JOIN obs_event e
 WHERE e.stream = s.value AND e.seq = CAST(q.value AS BIGINT)
 ORDER BY s.n
ON CONFLICT (sink, event_id) DO NOTHING;

-- Parked
EXPLAIN
SELECT p.stream, p.subject, count(*), min(p.seq), max(p.seq), min(p.parked_at), strftime('%Y-%m-%d %H:%M:%f000', 'now'), count(p.retry_at) > 0, s.paused_at IS NOT NULL
  FROM obs_parked p
  LEFT JOIN obs_sink_offset s ON s.sink = p.sink AND s.stream = ''
 WHERE p.sink = ?1
 GROUP BY p.stream, p.subject, s.paused_at;

-- Retries
EXPLAIN
SELECT p.stream, p.seq, p.event_id, p.type, p.subject, p.version, p.change, p.snapshot, p.time, p.logged_at, p.data, ''
  FROM obs_parked p
  JOIN obs_sink_offset o ON o.sink = p.sink AND o.stream = p.stream AND o.last_seq >= p.seq
 WHERE p.sink = ?1
   AND EXISTS (SELECT 1 FROM obs_parked m WHERE m.sink = p.sink AND m.stream = p.stream AND m.subject = p.subject AND m.retry_at IS NOT NULL)
 ORDER BY p.stream, p.seq
 LIMIT ?2;

-- Unpark
EXPLAIN
DELETE FROM obs_parked
 WHERE sink = ?1 AND CAST(event_id AS TEXT) IN (SELECT value FROM json_each(?3))
   AND EXISTS (SELECT 1 FROM obs_sink_offset c WHERE c.sink = ?1 AND c.stream = '' AND c.epoch = ?2);

-- Repark
EXPLAIN
UPDATE obs_parked
   SET retry_at = NULL, reason = CASE WHEN CAST(event_id AS TEXT) = ?5 THEN ?6 ELSE reason END
 WHERE sink = ?1 AND stream = ?3 AND subject = ?4
   AND EXISTS (SELECT 1 FROM obs_sink_offset c WHERE c.sink = ?1 AND c.stream = '' AND c.epoch = ?2);

-- PauseSink
EXPLAIN
UPDATE obs_sink_offset
   SET paused_at = strftime('%Y-%m-%d %H:%M:%f000', 'now'), paused_by = ?3, pause_reason = ?4
 WHERE sink = ?1 AND stream = '' AND epoch = ?2 AND paused_at IS NULL;

-- Failed
EXPLAIN
UPDATE obs_sink_offset
   SET failed_at = CASE WHEN ?3 = '' THEN NULL WHEN last_error <> '' AND failed_node = ?4 THEN failed_at ELSE strftime('%Y-%m-%d %H:%M:%f000', 'now') END,
       last_error = ?3, failed_node = CASE WHEN ?3 = '' THEN '' ELSE ?4 END
 WHERE sink = ?1 AND stream = '' AND epoch = ?2 AND (last_error <> ?3 OR ?3 <> '');

-- WhyNot
EXPLAIN
SELECT epoch FROM obs_sink_offset WHERE sink = ?1 AND stream = '';

-- Offsets
EXPLAIN
SELECT s.sink, c.stream, coalesce(o.last_seq, 0), c.last_seq, e.logged_at, s.last_error, s.failed_node, s.failed_at,
       s.paused_at, s.paused_by, s.pause_reason
  FROM obs_sink_offset s
 CROSS JOIN obs_cursor c
  LEFT JOIN obs_sink_offset o ON o.sink = s.sink AND o.stream = c.stream
  LEFT JOIN obs_event e ON e.stream = c.stream AND e.seq = coalesce(o.last_seq, 0) + 1
 WHERE s.stream = ''
 ORDER BY s.sink, c.stream;

-- Ends
EXPLAIN
SELECT coalesce((SELECT c.last_seq FROM obs_cursor c WHERE c.stream = l.value), 0),
       coalesce((SELECT CAST(e.event_id AS TEXT) FROM obs_event e WHERE e.stream = l.value AND e.seq = CAST(s.value AS BIGINT)), '')
  FROM (SELECT key + 1 AS n, value FROM json_each(?1)) l
  JOIN (SELECT key + 1 AS n, value FROM json_each(?2)) s ON s.n = l.n
 WHERE NOT FALSE
 ORDER BY l.n;

-- NoteBack
EXPLAIN
INSERT INTO obs_audit (at, actor, action, subject, detail)
SELECT strftime('%Y-%m-%d %H:%M:%f000', 'now'), CAST(?1 AS TEXT), CAST(?2 AS TEXT), s.value, d.value
  FROM (SELECT key + 1 AS n, value FROM json_each(?3)) s
  JOIN (SELECT key + 1 AS n, value FROM json_each(?4)) d ON d.n = s.n
  JOIN (SELECT key + 1 AS n, value FROM json_each(?5)) w ON w.n = s.n
 WHERE NOT EXISTS (SELECT 1 FROM obs_audit a
                    WHERE a.action = ?2 AND a.subject = s.value
                      AND substr(a.detail, 1, length(w.value)) = w.value)
 ORDER BY s.n;


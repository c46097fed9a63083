package eventlog

// logSQL are the statements of [Log]; see [sqldb.Rendering.SQL] for their tokens.
type logSQL struct {
	Backlog, Read, Next, LastSeqs, Claim, Acknowledge, Failed, WhyNot, Offsets, GoneBack, NoteBack string
}

// Backlog costs one row of the log for each stream that has a backlog.
//
// Acknowledge moves the offset of the sink $1 in the stream $2 from $5 to $3, if the claim is
// that of the epoch $4 and the log holds the $6 ids of the list $7 up to there. It looks each
// of them up by its sequence: SQLite keeps the order of a CROSS JOIN, and PostgreSQL reads no
// more than the range.
//
// GoneBack has the number of each stream of $1, where it ends, and its event at the sequence
// in $2. A standby may be behind, and is not believed.
var logTexts = logSQL{
	Backlog: `
SELECT c.stream, coalesce(o.last_seq, 0), c.last_seq,
       (SELECT e.logged_at FROM obs_event e WHERE e.stream = c.stream AND e.seq > coalesce(o.last_seq, 0) ORDER BY e.seq LIMIT 1),
       {now}
  FROM obs_cursor c
  LEFT JOIN obs_sink_offset o ON o.sink = $1 AND o.stream = c.stream
 WHERE c.last_seq > coalesce(o.last_seq, 0)
 ORDER BY c.stream`,
	Read: `
SELECT seq, event_id, type, subject, version, change, snapshot, time, logged_at, data
  FROM obs_event
 WHERE stream = $1 AND seq > $2
 ORDER BY seq
 LIMIT $3`,
	Next:     `SELECT seq, logged_at FROM obs_event WHERE stream = $1 AND seq > $2 ORDER BY seq LIMIT 1`,
	LastSeqs: `SELECT stream, last_seq FROM obs_cursor`,
	Claim: `
INSERT INTO obs_sink_offset AS o (sink, stream, last_seq, epoch, updated_at)
VALUES ($1, '', 0, $2, {now})
ON CONFLICT (sink, stream) DO UPDATE
   SET epoch = excluded.epoch, updated_at = excluded.updated_at
 WHERE o.epoch <= excluded.epoch`,
	Acknowledge: `
INSERT INTO obs_sink_offset AS o (sink, stream, last_seq, epoch, updated_at)
SELECT $1, $2, $3, $4, {now}
 WHERE EXISTS (SELECT 1 FROM obs_sink_offset s WHERE s.sink = $1 AND s.stream = '' AND s.epoch = $4{share})
   AND (CAST($5 AS BIGINT) = 0 OR EXISTS (SELECT 1 FROM obs_sink_offset b WHERE b.sink = $1 AND b.stream = $2))
   AND CAST($6 AS BIGINT) = (
       SELECT count(*)
         FROM {numbered $7} b
        CROSS JOIN obs_event e
        WHERE e.stream = $2 AND e.seq = CAST($3 AS BIGINT) - CAST($6 AS BIGINT) + b.n AND CAST(e.event_id AS TEXT) = b.value
          AND e.seq > CAST($3 AS BIGINT) - CAST($6 AS BIGINT) AND e.seq <= CAST($3 AS BIGINT))
ON CONFLICT (sink, stream) DO UPDATE
   SET last_seq = excluded.last_seq, epoch = excluded.epoch, updated_at = excluded.updated_at
 WHERE o.last_seq IN (CAST($5 AS BIGINT), excluded.last_seq)`,
	Failed: `
UPDATE obs_sink_offset
   SET failed_at = CASE WHEN $3 = '' THEN NULL WHEN last_error <> '' AND failed_node = $4 THEN failed_at ELSE {now} END,
       last_error = $3, failed_node = CASE WHEN $3 = '' THEN '' ELSE $4 END
 WHERE sink = $1 AND stream = '' AND epoch = $2 AND (last_error <> $3 OR $3 <> '')`,
	WhyNot: `SELECT epoch FROM obs_sink_offset WHERE sink = $1 AND stream = ''`,
	Offsets: `
SELECT s.sink, c.stream, coalesce(o.last_seq, 0), c.last_seq, e.logged_at, s.last_error, s.failed_node, s.failed_at
  FROM obs_sink_offset s
 CROSS JOIN obs_cursor c
  LEFT JOIN obs_sink_offset o ON o.sink = s.sink AND o.stream = c.stream
  LEFT JOIN obs_event e ON e.stream = c.stream AND e.seq = coalesce(o.last_seq, 0) + 1
 WHERE s.stream = ''
 ORDER BY s.sink, c.stream`,
	GoneBack: `
SELECT l.n,
       coalesce((SELECT c.last_seq FROM obs_cursor c WHERE c.stream = l.value), 0),
       coalesce((SELECT CAST(e.event_id AS TEXT) FROM obs_event e WHERE e.stream = l.value AND e.seq = CAST(s.value AS BIGINT)), '')
  FROM {numbered $1} l
  JOIN {numbered $2} s ON s.n = l.n
 WHERE NOT {standby}
 ORDER BY l.n`,
	NoteBack: `
INSERT INTO obs_audit (at, actor, action, subject, detail)
SELECT {now}, CAST($1 AS TEXT), CAST($2 AS TEXT), s.value, d.value
  FROM {numbered $3} s
  JOIN {numbered $4} d ON d.n = s.n
  JOIN {numbered $5} w ON w.n = s.n
 WHERE NOT EXISTS (SELECT 1 FROM obs_audit a
                    WHERE a.action = $2 AND a.subject = s.value
                      AND substr(a.detail, 1, length(w.value)) = w.value)
 ORDER BY s.n`,
}

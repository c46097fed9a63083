package eventlog

// logSQL are the statements of [Log]; see [sqldb.Rendering.SQL] for their tokens.
type logSQL struct {
	Backlog, After, Latest, Read, Next, LastSeqs, Claim, LogID, Begin, Move, Marks, Seek, Park, Parked, Retries, Unpark, Repark, PauseSink, Notify, Failed, WhyNot, Offsets, Ends, NoteBack string
}

// Backlog costs one row of the log for each stream that has a backlog.
//
// Read has the streams $1, behind the sequences $2 up to those of $3. SQLite keeps the order of
// a CROSS JOIN.
//
// Latest leaves the data where it is unless $3: of large rows it lies beside the table.
//
// Begin makes offsets for the streams $3. Move moves the offsets of the sink $1 in the streams
// $3 from the sequences $4 to those of $5, if the claim is that of the epoch $2 and the log
// holds the events of $6 between them: their ids, one behind the other. $7 to $9 are the position
// of the last event that was stored of each stream, 0 for none.
//
// Seek sets the offset of the sink $1 in the stream $2 from $4 to $5, under the epoch $3.
//
// Park parks the events of the streams $2 at the sequences $3 for the reasons $4; one that
// comes to a key that is to be retried is, too, unless both happen at once: Retries takes all of
// the key. Unpark and Repark end retries under the epoch $2.
//
// Ends has the number of each stream of $1, where it ends, and its event at the sequence
// in $2. A standby may be behind, and is not believed.
var logTexts = logSQL{
	Backlog: `
SELECT c.stream, coalesce(o.last_seq, 0), coalesce(e.seq, 0), c.last_seq, e.logged_at, {now}, s.paused_at IS NOT NULL
  FROM obs_cursor c
  LEFT JOIN obs_sink_offset o ON o.sink = $1 AND o.stream = c.stream
  LEFT JOIN obs_sink_offset s ON s.sink = $1 AND s.stream = ''
  LEFT JOIN obs_event e ON e.stream = c.stream
                       AND e.seq = (SELECT n.seq FROM obs_event n WHERE n.stream = c.stream AND n.seq > coalesce(o.last_seq, 0) ORDER BY n.seq LIMIT 1)
 WHERE c.last_seq > coalesce(o.last_seq, 0)
 ORDER BY c.stream`,
	After: `
SELECT stream, seq, event_id, type, subject, version, change, snapshot, time, logged_at, data, {server}
  FROM obs_event
 WHERE stream = $1 AND seq > $2
 ORDER BY seq
 LIMIT $3`,
	Latest: `
SELECT stream, seq, event_id, type, subject, version, change, snapshot, time, logged_at, CASE WHEN CAST($3 AS BOOLEAN) THEN data END, ''
  FROM obs_event
 WHERE stream = $1
 ORDER BY seq DESC
 LIMIT $2`,
	Read: `
SELECT e.stream, e.seq, e.event_id, e.type, e.subject, e.version, e.change, e.snapshot, e.time, e.logged_at, e.data, {server}
  FROM {numbered $1} s
  JOIN {numbered $2} a ON a.n = s.n
  JOIN {numbered $3} l ON l.n = s.n
 CROSS JOIN obs_event e
 WHERE e.stream = s.value AND e.seq > CAST(a.value AS BIGINT) AND e.seq <= CAST(l.value AS BIGINT)
 ORDER BY s.n, e.seq`,
	Next:     `SELECT seq, logged_at FROM obs_event WHERE stream = $1 AND seq > $2 ORDER BY seq LIMIT 1`,
	LastSeqs: `SELECT stream, last_seq FROM obs_cursor`,
	Claim: `
INSERT INTO obs_sink_offset AS o (sink, stream, last_seq, epoch, updated_at)
VALUES ($1, '', 0, $2, {now})
ON CONFLICT (sink, stream) DO UPDATE
   SET epoch = excluded.epoch, updated_at = excluded.updated_at
 WHERE o.epoch <= excluded.epoch`,
	LogID: `SELECT CAST(id AS TEXT) FROM obs_log`,
	Begin: `
INSERT INTO obs_sink_offset (sink, stream, last_seq, epoch, updated_at)
SELECT $1, s.value, 0, $2, {now}
  FROM {numbered $3} s
 WHERE TRUE
ON CONFLICT (sink, stream) DO NOTHING`,
	Move: `
UPDATE obs_sink_offset AS o
   SET last_seq = m.last_seq,
       stored_seq = CASE WHEN m.stored_seq > 0 THEN m.stored_seq ELSE o.stored_seq END,
       stored_id = CASE WHEN m.stored_seq > 0 THEN m.stored_id ELSE o.stored_id END,
       stored_digest = CASE WHEN m.stored_seq > 0 THEN m.stored_digest ELSE o.stored_digest END,
       adopted = o.adopted AND m.stored_seq = 0,
       epoch = $2, updated_at = {now}
  FROM (SELECT s.value AS stream, CAST(a.value AS BIGINT) AS after_seq, CAST(l.value AS BIGINT) AS last_seq, i.value AS ids,
               CAST(p.value AS BIGINT) AS stored_seq, d.value AS stored_id, g.value AS stored_digest
          FROM {numbered $3} s
          JOIN {numbered $4} a ON a.n = s.n
          JOIN {numbered $5} l ON l.n = s.n
          JOIN {numbered $6} i ON i.n = s.n
          JOIN {numbered $7} p ON p.n = s.n
          JOIN {numbered $8} d ON d.n = s.n
          JOIN {numbered $9} g ON g.n = s.n) m
 WHERE o.sink = $1 AND o.stream = m.stream AND o.last_seq IN (m.after_seq, m.last_seq)
   AND EXISTS (SELECT 1 FROM obs_sink_offset c WHERE c.sink = $1 AND c.stream = '' AND c.epoch = $2{share})
   AND m.ids = (SELECT string_agg(CAST(e.event_id AS TEXT), '' ORDER BY e.seq)
                  FROM obs_event e
                 WHERE e.stream = m.stream AND e.seq > m.after_seq AND e.seq <= m.last_seq)`,
	Marks: `SELECT stream, last_seq, stored_seq, stored_id, stored_digest, adopted FROM obs_sink_offset WHERE sink = $1 AND stream <> ''`,
	Seek: `
INSERT INTO obs_sink_offset AS o (sink, stream, last_seq, stored_seq, stored_id, stored_digest, epoch, updated_at)
SELECT $1, $2, $5, $6, $7, $8, $3, {now}
 WHERE EXISTS (SELECT 1 FROM obs_sink_offset c WHERE c.sink = $1 AND c.stream = '' AND c.epoch = $3{share})
   AND (CAST($4 AS BIGINT) = 0 OR EXISTS (SELECT 1 FROM obs_sink_offset b WHERE b.sink = $1 AND b.stream = $2))
ON CONFLICT (sink, stream) DO UPDATE
   SET last_seq = excluded.last_seq, stored_seq = excluded.stored_seq, stored_id = excluded.stored_id, stored_digest = excluded.stored_digest, adopted = FALSE,
       epoch = excluded.epoch, updated_at = excluded.updated_at
 WHERE o.last_seq = $4`,
	Park: `
INSERT INTO obs_parked (sink, stream, seq, event_id, type, subject, version, change, snapshot, time, logged_at, data, reason, parked_at, retry_at)
SELECT $1, e.stream, e.seq, e.event_id, e.type, e.subject, e.version, e.change, e.snapshot, e.time, e.logged_at, e.data, r.value, {now},
       (SELECT max(k.retry_at) FROM obs_parked k WHERE k.sink = $1 AND k.stream = e.stream AND k.subject = e.subject)
  FROM {numbered $2} s
  JOIN {numbered $3} q ON q.n = s.n
  JOIN {numbered $4} r ON r.n = s.n
 CROSS JOIN obs_event e
 WHERE e.stream = s.value AND e.seq = CAST(q.value AS BIGINT)
 ORDER BY s.n
ON CONFLICT (sink, event_id) DO NOTHING`,
	Parked: `
SELECT p.stream, p.subject, count(*), min(p.seq), max(p.seq), min(p.parked_at), {now}, count(p.retry_at) > 0, s.paused_at IS NOT NULL
  FROM obs_parked p
  LEFT JOIN obs_sink_offset s ON s.sink = p.sink AND s.stream = ''
 WHERE p.sink = $1
 GROUP BY p.stream, p.subject, s.paused_at`,
	Retries: `
SELECT p.stream, p.seq, p.event_id, p.type, p.subject, p.version, p.change, p.snapshot, p.time, p.logged_at, p.data, ''
  FROM obs_parked p
  JOIN obs_sink_offset o ON o.sink = p.sink AND o.stream = p.stream AND o.last_seq >= p.seq
 WHERE p.sink = $1
   AND EXISTS (SELECT 1 FROM obs_parked m WHERE m.sink = p.sink AND m.stream = p.stream AND m.subject = p.subject AND m.retry_at IS NOT NULL)
 ORDER BY p.stream, p.seq
 LIMIT $2`,
	Unpark: `
DELETE FROM obs_parked
 WHERE sink = $1 AND CAST(event_id AS TEXT) {among $3}
   AND EXISTS (SELECT 1 FROM obs_sink_offset c WHERE c.sink = $1 AND c.stream = '' AND c.epoch = $2{share})`,
	Repark: `
UPDATE obs_parked
   SET retry_at = NULL, reason = CASE WHEN CAST(event_id AS TEXT) = $5 THEN $6 ELSE reason END
 WHERE sink = $1 AND stream = $3 AND subject = $4
   AND EXISTS (SELECT 1 FROM obs_sink_offset c WHERE c.sink = $1 AND c.stream = '' AND c.epoch = $2{share})`,
	Notify: `SELECT pg_notify($1, '')`,
	PauseSink: `
UPDATE obs_sink_offset
   SET paused_at = {now}, paused_by = $3, pause_reason = $4
 WHERE sink = $1 AND stream = '' AND epoch = $2 AND paused_at IS NULL`,
	Failed: `
UPDATE obs_sink_offset
   SET failed_at = CASE WHEN $3 = '' THEN NULL WHEN last_error <> '' AND failed_node = $4 THEN failed_at ELSE {now} END,
       last_error = $3, failed_node = CASE WHEN $3 = '' THEN '' ELSE $4 END
 WHERE sink = $1 AND stream = '' AND epoch = $2 AND (last_error <> $3 OR $3 <> '')`,
	WhyNot: `SELECT epoch FROM obs_sink_offset WHERE sink = $1 AND stream = ''`,
	Offsets: `
SELECT s.sink, c.stream, coalesce(o.last_seq, 0), c.last_seq, e.logged_at, s.last_error, s.failed_node, s.failed_at,
       s.paused_at, s.paused_by, s.pause_reason
  FROM obs_sink_offset s
 CROSS JOIN obs_cursor c
  LEFT JOIN obs_sink_offset o ON o.sink = s.sink AND o.stream = c.stream
  LEFT JOIN obs_event e ON e.stream = c.stream AND e.seq = coalesce(o.last_seq, 0) + 1
 WHERE s.stream = ''
 ORDER BY s.sink, c.stream`,
	Ends: `
SELECT coalesce((SELECT c.last_seq FROM obs_cursor c WHERE c.stream = l.value), 0),
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

// textsOf returns the statements for a backend. PostgreSQL plans them at each call, and took
// joins of lists for a reason to read the whole log.
func textsOf(backend string) logSQL {
	texts := logTexts
	if backend == "postgres" {
		texts.Read, texts.Move = readPostgres, movePostgres
	}
	return texts
}

// readPostgres is Read. The limit, which leaves nothing out, keeps the planner from another
// way than by the index, stream by stream. Each stream stays in its order, which the relay checks:
// another sort of all rows would take a sixth of the server's time.
const readPostgres = `
SELECT e.stream, e.seq, e.event_id, e.type, e.subject, e.version, e.change, e.snapshot, e.time, e.logged_at, e.data, {server}
  FROM unnest($1::text[], $2::text[]::bigint[], $3::text[]::bigint[]) WITH ORDINALITY AS r (stream, after_seq, last_seq, n)
 CROSS JOIN LATERAL (
       SELECT o.stream, o.seq, o.event_id, o.type, o.subject, o.version, o.change, o.snapshot, o.time, o.logged_at, o.data
         FROM obs_event o
        WHERE o.stream = r.stream AND o.seq > r.after_seq AND o.seq <= r.last_seq
        ORDER BY o.seq
        LIMIT r.last_seq - r.after_seq) AS e
 ORDER BY r.n`

// movePostgres is Move. It looks for each row by its key: of a sink that is new to its
// statistics PostgreSQL expects one row, and would compare each with each. What it inserts is
// always there, and locked.
//
// Where $10 has the server that a stream was read from, $6 has the id of its last event alone:
// on the same server that is enough.
const movePostgres = `
INSERT INTO obs_sink_offset AS o (sink, stream, last_seq, stored_seq, stored_id, stored_digest, epoch, updated_at)
SELECT $1, m.stream, m.last_seq, m.stored_seq, m.stored_id, m.stored_digest, $2, {now}
  FROM unnest($3::text[], $4::text[]::bigint[], $5::text[]::bigint[], $6::text[], $7::text[]::bigint[], $8::text[], $9::text[], $10::text[])
       AS m (stream, after_seq, last_seq, ids, stored_seq, stored_id, stored_digest, server)
 WHERE EXISTS (SELECT 1 FROM obs_sink_offset c WHERE c.sink = $1 AND c.stream = '' AND c.epoch = $2 FOR SHARE)
   AND (SELECT b.last_seq FROM obs_sink_offset b WHERE b.sink = $1 AND b.stream = m.stream FOR UPDATE) IN (m.after_seq, m.last_seq)
   AND CASE WHEN m.server = '' THEN m.ids = (SELECT string_agg(CAST(e.event_id AS TEXT), '' ORDER BY e.seq)
                                               FROM obs_event e
                                              WHERE e.stream = m.stream AND e.seq > m.after_seq AND e.seq <= m.last_seq)
            ELSE m.server = {server} AND m.ids = (SELECT CAST(e.event_id AS TEXT) FROM obs_event e WHERE e.stream = m.stream AND e.seq = m.last_seq) END
ON CONFLICT (sink, stream) DO UPDATE
   SET last_seq = excluded.last_seq,
       stored_seq = CASE WHEN excluded.stored_seq > 0 THEN excluded.stored_seq ELSE o.stored_seq END,
       stored_id = CASE WHEN excluded.stored_seq > 0 THEN excluded.stored_id ELSE o.stored_id END,
       stored_digest = CASE WHEN excluded.stored_seq > 0 THEN excluded.stored_digest ELSE o.stored_digest END,
       adopted = o.adopted AND excluded.stored_seq = 0,
       epoch = excluded.epoch, updated_at = excluded.updated_at`

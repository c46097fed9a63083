package lockdb

// pausedSQL reports whether the stream of a row of obs_cursor, c, is paused: a pause with
// an end is over at that time by the database's clock, whether or not a node has cleared
// the column since. Commits look at the column alone, which [endPauses] clears before a
// poll.
const pausedSQL = `(c.paused AND (c.paused_until IS NULL OR c.paused_until > {now}))`

// turnSQL are the statements of [Turns]. AddPoll is empty where NoteStream adds the poll too. A report
// runs All, and [DB.Polls] what follows.
type turnSQL struct{ Turn, TakeTurn, Streams, NoteStream, AddPoll, All, Polls, PollsOf string }

// Turn joins by the parameters alone, which takes less time to plan. Streams has the turn of the
// type as a row without a stream, and counts rows as unread where a poll ended behind its source,
// or within a reading of all rows. TakeTurn and NoteStream do not wait for the disk: what a server
// that dies forgets of them is polled again, and makes no second event.
var turnTexts = turnSQL{
	Turn: `
SELECT {now}, s.turn_at, COALESCE({alive l COALESCE(CASE WHEN o.term = l.client_id THEN o.ttl_ms / 1000.0 END, CAST($4 AS DOUBLE PRECISION))}, FALSE),
       CASE WHEN o.term = l.client_id THEN o.node ELSE '' END, CASE WHEN o.term = l.client_id THEN o.boot_id ELSE '' END,
       COALESCE(o.term = l.client_id AND l.created_date > {utc}, FALSE)
  FROM (SELECT 1 AS one) x
  LEFT JOIN obs_schedule s ON s.type = $1
  LEFT JOIN int_lock l ON l.lock_key = $2 AND l.region = $3
  LEFT JOIN obs_lock o ON o.lock_key = $2 AND o.region = $3`,
	TakeTurn: `
INSERT INTO obs_schedule AS s (type, turn_at, last_node, last_started, last_finished, last_outcome)
SELECT $5, $6, $7, $8, $9, $10 WHERE ` + underLease + ` AND {unsynced}
ON CONFLICT (type) DO UPDATE
   SET turn_at = excluded.turn_at, last_node = excluded.last_node, last_started = excluded.last_started,
       last_finished = excluded.last_finished, last_outcome = excluded.last_outcome
 WHERE s.turn_at < excluded.turn_at OR s.turn_at > {now}`,
	Streams: `
SELECT '' AS stream, {now} AS now, s.turn_at, FALSE AS marked, FALSE AS paused, NULL AS paused_until, 0 AS failures, '' AS failure_class, NULL AS retry_at,
       NULL AS last_ok_at, 0 AS lag_ms, FALSE AS unread
  FROM (SELECT 1 AS one) x
  LEFT JOIN obs_schedule s ON s.type = $1
 UNION ALL
SELECT c.stream, {now}, c.turn_at, c.paused, ` + pausedSQL + `, CASE WHEN ` + pausedSQL + ` THEN c.paused_until END, c.failures, c.failure_class, c.retry_at,
       CASE WHEN c.query_fingerprint <> '' AND NOT c.first_reading THEN c.last_ok_at END, c.lag_ms,
       c.lag_ms > 0 OR coalesce((SELECT g.finished_at IS NULL FROM obs_generation g WHERE g.stream_id = c.stream_id), FALSE)
  FROM obs_cursor c
 WHERE c.stream {among $2}`,
	NoteStream: noteStreamPostgres,
	All:        `SELECT type, turn_at, last_started, last_finished, last_node, last_outcome FROM obs_schedule ORDER BY type`,
	Polls: `
SELECT type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count
  FROM obs_poll
 ORDER BY finished_at DESC, id DESC
 LIMIT $1`,
	PollsOf: `
SELECT type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count
  FROM obs_poll
 WHERE stream = $2
 ORDER BY id DESC
 LIMIT $1`,
}

const (
	noteStreamPostgres = `
WITH noted AS (
  INSERT INTO obs_cursor AS c (stream, turn_at, failures, retry_at, last_error, last_ok_at, lag_ms, failure_class)
  SELECT $5, $6, $7, $8, $9, CASE WHEN $10 = 'ok' THEN {now} END, $11, $12 WHERE ` + underLease + `
  ON CONFLICT (stream) DO UPDATE
     SET turn_at = coalesce(excluded.turn_at, c.turn_at), failures = excluded.failures, failure_class = excluded.failure_class, retry_at = excluded.retry_at,
         last_error = CASE WHEN excluded.last_error = '' AND excluded.last_ok_at IS NULL THEN c.last_error ELSE excluded.last_error END, last_ok_at = coalesce(excluded.last_ok_at, c.last_ok_at),
         lag_ms = CASE WHEN excluded.last_ok_at IS NULL THEN c.lag_ms ELSE excluded.lag_ms END
  RETURNING 1
)
INSERT INTO obs_poll (type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count)
SELECT $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23 FROM noted WHERE {unsynced}`
	noteStreamSQLite = `
INSERT INTO obs_cursor AS c (stream, turn_at, failures, retry_at, last_error, last_ok_at, lag_ms, failure_class)
SELECT $5, $6, $7, $8, $9, CASE WHEN $10 = 'ok' THEN {now} END, $11, $12 WHERE ` + underLease + `
ON CONFLICT (stream) DO UPDATE
   SET turn_at = coalesce(excluded.turn_at, c.turn_at), failures = excluded.failures, failure_class = excluded.failure_class, retry_at = excluded.retry_at,
       last_error = CASE WHEN excluded.last_error = '' AND excluded.last_ok_at IS NULL THEN c.last_error ELSE excluded.last_error END, last_ok_at = coalesce(excluded.last_ok_at, c.last_ok_at),
       lag_ms = CASE WHEN excluded.last_ok_at IS NULL THEN c.lag_ms ELSE excluded.lag_ms END`
	addPollSQLite = `
INSERT INTO obs_poll (type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
)

// nodeSQL are the statements of [Nodes]. KeepSink is run by Leave.
type nodeSQL struct{ Beat, Nodes, Leave, KeepSink string }

var nodeTexts = nodeSQL{
	Beat: `
INSERT INTO obs_node (boot_id, name, version, backend, config_hash, types, unreachable, sinks, started_at, seen_at, liveness, outdated, intervals)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, {now}, {now}, $9, $10, $11)
ON CONFLICT (boot_id) DO UPDATE
   SET types = excluded.types, unreachable = excluded.unreachable, sinks = excluded.sinks, seen_at = excluded.seen_at,
       liveness = excluded.liveness, outdated = excluded.outdated, intervals = excluded.intervals`,
	Nodes: `
SELECT boot_id, name, version, backend, config_hash, types, unreachable, outdated, sinks, intervals, started_at, seen_at
  FROM obs_node
 WHERE seen_at >= {ago $1}
 ORDER BY name, boot_id`,
	Leave:    `DELETE FROM obs_node WHERE boot_id = $1 RETURNING sinks`,
	KeepSink: `UPDATE obs_sink_offset SET updated_at = {now} WHERE sink = $1 AND stream = ''`,
}

// streamSQL are the statements of [Streams].
type streamSQL struct{ Start, LastError, Statuses, Refused string }

var streamTexts = streamSQL{
	Start:     `SELECT start_ts FROM obs_cursor WHERE stream = $1`,
	LastError: `SELECT last_error FROM obs_cursor WHERE stream = $1`,
	Statuses: `
SELECT c.stream, c.stream_id, c.version, c.last_seq, c.low_ts, c.newest_ts, c.live_count, c.row_count - c.live_count,
       ` + pausedSQL + `, c.paused_at, c.paused_until, c.paused_by, c.pause_reason,
       c.turn_at, c.last_ok_at, c.failures, c.retry_at, c.last_error, c.lag_ms,
       c.last_ok_at IS NOT NULL AND c.query_fingerprint <> '' AND NOT c.first_reading, coalesce(d.n, 0), d.since,
       CASE WHEN c.accepted = '' THEN c.refusal ELSE '' END
  FROM obs_cursor c
  LEFT JOIN (SELECT stream, count(*) AS n, min(first_at) AS since FROM obs_dead GROUP BY stream) d ON d.stream = c.stream
 ORDER BY c.stream`,
	Refused: `SELECT refusal, accepted <> '' FROM obs_cursor WHERE stream = $1`,
}

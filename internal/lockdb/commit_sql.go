package lockdb

// commitSQL are the statements of a fenced commit: Commit does all in one on PostgreSQL, the
// others are the steps of a transaction.
type commitSQL struct {
	Commit string
	// Advance is the compare-and-set of the cursor, Step that of a sweep, and Remember stores a
	// generation in place of the last one.
	Advance, Step, Remember string
	// Each writes one row on SQLite. On PostgreSQL rows are copied, or come in arrays.
	Add, Change, Bury, Log string
	// EndStalled ends sessions of ours that have stopped in the middle of a COPY, on PostgreSQL.
	EndStalled string
}

const advanceSQL = `
UPDATE obs_cursor
   SET version = $3, commit_id = $4, last_seq = $5, row_count = $6, live_count = $7,
       low_ts = $8, newest_ts = $9, first_reading = $10,
       start_ts = CASE WHEN low_ts = '' AND query_fingerprint = '' THEN $8 ELSE start_ts END,
       query_fingerprint = $11, definition = $12,
       defined_at = CASE WHEN definition = $12 THEN defined_at ELSE {now} END,
       refusal = $13, accepted = $14, marks = $15
 WHERE stream_id = $1 AND version = $2 AND NOT paused`

// A sweep that is not running is not found; one of another stream is not either.
const stepSQL = `
UPDATE obs_sweep
   SET position_ts = $2, row_count = row_count + $3, event_count = event_count + $4,
       state = CASE WHEN $5 THEN 'done' ELSE state END, updated_at = {now}
 WHERE id = $1 AND state = 'running' AND stream = $6`

const rememberSQL = `
INSERT INTO obs_generation (stream_id, reading, key, complete, seen, row_count, started_at, finished_at, took_ms)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (stream_id) DO UPDATE
   SET reading = excluded.reading, key = excluded.key, complete = excluded.complete, seen = excluded.seen, row_count = excluded.row_count,
       started_at = excluded.started_at, finished_at = excluded.finished_at, took_ms = excluded.took_ms`

// In Commit every part draws from the one before it, so that without the lease, or with
// another version of the cursor, nothing is written. The cursor's row is locked first: a
// statement that waits for it must not hold the lease's row, which the other observers of the
// type and the heartbeat need.
//
// Change names rows that are there. An UPDATE that joins them with some thousand keys would
// read the whole table; this looks each up in the index.
//
// EndStalled names no table, and needs no further rights: a role may end its own sessions.
var postgresCommitSQL = commitSQL{
	Commit: `
WITH held AS MATERIALIZED (
  SELECT 1 FROM obs_cursor WHERE stream_id = $5 FOR UPDATE
), lease AS (
  UPDATE int_lock l
     SET {touch $4::float8}
    FROM (SELECT count(*) FROM held) AS h
   WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND {alive l $4::float8}
  RETURNING 1
), cur AS (
  UPDATE obs_cursor c
     SET version = $7, commit_id = $8, last_seq = $9, row_count = $10, live_count = $11,
         low_ts = $12, newest_ts = $13, first_reading = $14,
         start_ts = CASE WHEN c.low_ts = '' AND c.query_fingerprint = '' THEN $12 ELSE c.start_ts END,
         query_fingerprint = $15, definition = $16,
         defined_at = CASE WHEN c.definition = $16 THEN c.defined_at ELSE {now} END,
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
  SELECT cur.stream, u.key, u.digest, u.reason, u.raw, {now}, {now}, $30
    FROM cur, unnest($26::text[], $27::bytea[], $28::text[], $29::text[]) AS u(key, digest, reason, raw)
  ON CONFLICT (stream, digest) DO UPDATE SET raw = excluded.raw, last_at = excluded.last_at, refused = excluded.refused
), logged AS (
  INSERT INTO obs_event (stream, seq, event_id, type, subject, version, change, time, data, snapshot)
  SELECT cur.stream, cur.last_seq - cardinality($31::uuid[]) + u.n, u.id, u.type, u.subject, u.version, u.change, u.time, u.data::json, u.snapshot
    FROM cur, unnest($31::uuid[], $32::text[], $33::text[], $34::integer[], $35::text[], $36::timestamptz[], $37::text[], $38::boolean[])
              WITH ORDINALITY AS u(id, type, subject, version, change, time, data, snapshot, n)
)
SELECT (SELECT count(*) FROM lease), (SELECT count(*) FROM cur)`,
	Advance:  advanceSQL,
	Step:     stepSQL,
	Remember: rememberSQL,
	Change: `
INSERT INTO obs_observed (stream_id, key, row_hash, version, row_number, gone)
SELECT $1, u.*
  FROM unnest($2::text[], $3::bytea[], $4::integer[], $5::bigint[], $6::boolean[])
       AS u(key, row_hash, version, row_number, gone)
ON CONFLICT (stream_id, key) DO UPDATE
   SET row_hash = excluded.row_hash, version = excluded.version, gone = excluded.gone`,
	Bury: `
INSERT INTO obs_dead AS d (stream, key, digest, reason, raw, first_at, last_at, refused)
SELECT $1, u.key, u.digest, u.reason, u.raw, {now}, {now}, $6
  FROM unnest($2::text[], $3::bytea[], $4::text[], $5::text[]) AS u(key, digest, reason, raw)
ON CONFLICT (stream, digest) DO UPDATE SET raw = excluded.raw, last_at = excluded.last_at, refused = excluded.refused`,
	EndStalled: `
SELECT count(*) FILTER (WHERE pg_terminate_backend(pid))
  FROM pg_stat_activity
 WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
   AND state = 'active' AND wait_event = 'ClientRead'
   AND starts_with(query, 'copy ' || $2::text)
   AND query_start < clock_timestamp() - make_interval(secs => $1)`,
}

var sqliteCommitSQL = commitSQL{
	Advance:  advanceSQL,
	Step:     stepSQL,
	Remember: rememberSQL,
	Add: `
INSERT INTO obs_observed (stream_id, key, row_hash, version, row_number, gone)
VALUES ($1, $2, $3, $4, $5, $6)`,
	Change: `
UPDATE obs_observed SET row_hash = $3, version = $4, gone = $5 WHERE stream_id = $1 AND key = $2`,
	Bury: `
INSERT INTO obs_dead (stream, key, digest, reason, raw, first_at, last_at, refused)
VALUES ($1, $2, $3, $4, $5, {now}, {now}, $6)
ON CONFLICT (stream, digest) DO UPDATE SET raw = excluded.raw, last_at = excluded.last_at, refused = excluded.refused`,
	Log: `
INSERT INTO obs_event (stream, seq, event_id, type, subject, version, change, time, data, snapshot)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
}

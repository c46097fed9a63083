package lockdb

import (
	"context"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
)

// commitSQL is the fenced commit in one statement: every part draws from the
// one before it, so that without the lease, or with another version of the
// cursor, nothing is written. The cursor's row is locked first: a statement that waits
// for it must not hold the lease's row, which the other observers of the type
// and the heartbeat need. {held}, {of} and {more} are where a step of a sweep, or
// a reading of all rows, differs from other polls.
const commitSQL = `
WITH held AS MATERIALIZED ({held}
), lease AS (
  UPDATE int_lock l
     SET {touch}
    FROM (SELECT count(*) FROM held) AS h
   WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND {alive}
  RETURNING 1
), cur AS (
  UPDATE obs_cursor c
     SET version = c.version + 1, commit_id = $7, last_seq = c.last_seq + $8, low_ts = $9, newest_ts = $10,
         row_count = c.row_count + $11, live_count = $12, query_fingerprint = $13,
         source_identity = $30, source_columns = $31, reread_at = $32, refusal = $33, accepted = $34,
         defined_at = CASE WHEN c.definition = $35 THEN c.defined_at ELSE {now} END, definition = $35, timestamp_form = $36, key_form = $37, followed_from = $39, first_reading = $41,
         start_ts = CASE WHEN c.low_ts = '' AND c.query_fingerprint = '' THEN $9 ELSE c.start_ts END
    FROM lease{of}
   WHERE c.stream_id = $5 AND c.version = $6 AND NOT c.paused
  RETURNING c.stream_id, c.stream, c.last_seq - $8 AS seq
), seen AS (
  SELECT cur.stream_id, u.*
    FROM cur, unnest($14::text[], $15::bytea[], $16::integer[], $17::bigint[], $18::boolean[])
              WITH ORDINALITY AS u(key, row_hash, version, row_number, gone, n)
), added AS (
  INSERT INTO obs_observed (stream_id, key, row_hash, version, row_number, gone)
  SELECT stream_id, key, row_hash, version, row_number, gone FROM seen WHERE n <= $11
), changed AS (
  INSERT INTO obs_observed (stream_id, key, row_hash, version, row_number, gone)
  SELECT stream_id, key, row_hash, version, row_number, gone FROM seen WHERE n > $11
  ON CONFLICT (stream_id, key) DO UPDATE
     SET row_hash = excluded.row_hash, version = excluded.version, gone = excluded.gone
), dead AS (
  INSERT INTO obs_dead AS d (stream, key, digest, reason, raw, first_at, last_at, refused)
  SELECT cur.stream, u.key, u.digest, u.reason, u.raw, {now}, {now}, $38
    FROM cur, unnest($19::text[], $20::bytea[], $21::text[], $22::text[]) AS u(key, digest, reason, raw)
  ON CONFLICT (stream, digest) DO UPDATE SET raw = excluded.raw, last_at = excluded.last_at, refused = excluded.refused
), logged AS (
  INSERT INTO obs_event (stream, seq, event_id, type, subject, version, change, time, data, snapshot)
  SELECT cur.stream, cur.seq + u.n, u.id, u.type, u.subject, u.version, u.change, u.time, u.data::json, u.snapshot
    FROM cur, unnest($23::uuid[], $24::text[], $25::text[], $26::integer[], $27::text[], $28::timestamptz[], $29::text[], $40::boolean[])
              WITH ORDINALITY AS u(id, type, subject, version, change, time, data, snapshot, n)
){more}
SELECT (SELECT count(*) FROM lease), (SELECT count(*) FROM cur)`

// A poll pays nothing for sweeps: its statement does not know them.
var pollCommitSQL = strings.NewReplacer(
	"{held}", `
  SELECT 1 FROM obs_cursor WHERE stream_id = $5 FOR UPDATE`,
	"{of}", "", "{more}", "").Replace(commitSQL)

// A step of a sweep locks the sweep's row right after the cursor's, and finds
// no cursor to advance when the sweep is not running any more.
var sweepCommitSQL = strings.NewReplacer(
	"{held}", `
  SELECT s.id
    FROM obs_cursor c
    JOIN obs_sweep s ON s.id = $42 AND s.stream = c.stream AND s.state = 'running'
   WHERE c.stream_id = $5
     FOR UPDATE OF c, s`,
	"{of}", ", held",
	"{more}", `, swept AS (
  UPDATE obs_sweep s
     SET position_ts = $43, row_count = s.row_count + $44, event_count = s.event_count + $45,
         state = CASE WHEN $46 THEN 'done' ELSE s.state END, updated_at = {now}
    FROM cur
   WHERE s.id = $42
)`).Replace(commitSQL)

// The notes of a reading of all rows go with a poll that found nothing new.
var generationCommitSQL = strings.NewReplacer(
	"{held}", `
  SELECT 1 FROM obs_cursor WHERE stream_id = $5 FOR UPDATE`,
	"{of}", "", "{more}", `, generation AS (`+strings.Replace(generationSQL, "{values}",
		`SELECT cur.stream_id, $42, $43, $44, $45, $46, $47, $48, $49 FROM cur`, 1)+`
)`).Replace(commitSQL)

// copyFrom is the number of new rows from which COPY in a transaction is
// faster than one statement with arrays. That needs the events in memory several
// times over, so from copyBytes on they are copied row by row as well.
const (
	copyFrom  = 2000
	copyBytes = 1 << 20
)

func (e *postgresEngine) commit(ctx context.Context, g lock.Grant, ch *observer.Chunk) error {
	how := e.commitStatement
	if len(ch.New) >= copyFrom || isLarge(ch) {
		how = e.commitCopy
	}
	return e.unblocked(ctx, func() error { return how(ctx, g, ch) })
}

func isLarge(ch *observer.Chunk) bool {
	bytes := 0
	for i := range ch.Events {
		bytes += len(ch.Events[i].Data)
	}
	return bytes >= copyBytes
}

func (e *postgresEngine) commitStatement(ctx context.Context, g lock.Grant, ch *observer.Chunk) error {
	var leases, cursors int
	args := append(cursorArgs(g, ch), noteArgs(ch)...)
	args = append(append(args, deadArgs(ch.Dead)...), eventArgs(ch)...)
	args = append(append(args, sourceArgs(e.db, ch)...), ch.Refused, ch.After.Marks.FollowedFrom, snapshots(ch), ch.After.FirstReading)
	text := pollCommitSQL
	switch {
	case ch.Sweep != nil:
		text = sweepCommitSQL
		args = append(args, stepArgs(ch.Sweep)...)
	case ch.Generation != nil:
		text = generationCommitSQL
		args = append(args, generationArgs(e.db, ch.Generation)...)
	}
	text = e.db.LockSQL(text, "l", "$4::float8")
	if err := e.db.Main.QueryRowContext(ctx, text, args...).Scan(&leases, &cursors); err != nil {
		return err
	}
	return verdict(leases == 1, cursors == 1)
}

// verdict names what refused a commit.
func verdict(leased, current bool) error {
	switch {
	case !leased:
		return lock.ErrFenced
	case !current:
		return observer.ErrConflict
	}
	return nil
}

func cursorArgs(g lock.Grant, ch *observer.Chunk) []any {
	return []any{
		rowKey(g.Key), g.Region, g.Term, g.TTL.Seconds(),
		ch.Before.ID, ch.Before.Version, ch.CommitID.String(), len(ch.Events), ch.After.Low, ch.After.Newest,
		len(ch.New), ch.After.Live, ch.After.Fingerprint,
	}
}

// sourceArgs are what the cursor notes of its source, of refusals and of the
// observer.
func sourceArgs(db *sqldb.DB, ch *observer.Chunk) []any {
	var reread any
	if !ch.After.Marks.RereadAt.IsZero() {
		reread = db.TimeArg(ch.After.Marks.RereadAt)
	}
	return []any{ch.After.Marks.Identity, ch.After.Marks.Columns, reread, ch.After.Refusal, ch.After.Accepted, ch.After.Definition, ch.After.Marks.Form, ch.After.Marks.KeyForm}
}

// noteArgs are the new rows, of which there are $11, and the changed ones.
func noteArgs(ch *observer.Chunk) []any {
	return observedArgs(append(append([]observer.Observed(nil), ch.New...), ch.Changed...))
}

func observedArgs(rows []observer.Observed) []any {
	n := len(rows)
	keys, hashes, versions := make([]string, n), make([][]byte, n), make([]int32, n)
	numbers, gone := make([]int64, n), make([]bool, n)
	for i, o := range rows {
		keys[i], hashes[i], versions[i], numbers[i], gone[i] = o.Key, o.Hash, int32(o.Version), o.Number, o.Gone //nolint:gosec // A row does not have two billion versions.
	}
	return []any{keys, hashes, versions, numbers, gone}
}

// deadArgs leaves out repeats: rows without a readable key look alike, and an
// upsert may meet a row once only.
func deadArgs(dead []observer.Dead) []any {
	keys, digests, reasons, raws := []string{}, [][]byte{}, []string{}, []string{}
	seen := make(map[string]bool, len(dead))
	for _, d := range dead {
		digest := deadDigest(d)
		if seen[string(digest)] {
			continue
		}
		seen[string(digest)] = true
		keys, digests = append(keys, d.Key), append(digests, digest)
		reasons, raws = append(reasons, d.Reason), append(raws, string(d.Raw))
	}
	return []any{keys, digests, reasons, raws}
}

func eventArgs(ch *observer.Chunk) []any {
	n := len(ch.Events)
	ids, types, subjects, versions := make([][16]byte, n), make([]string, n), make([]string, n), make([]int32, n)
	changes, times, data := make([]string, n), make([]time.Time, n), make([]string, n)
	for i := range ch.Events {
		ev := &ch.Events[i]
		ids[i], types[i], subjects[i], versions[i] = ev.ID, ev.Type, ev.Subject, int32(ev.Version) //nolint:gosec // As above.
		changes[i], times[i], data[i] = string(ev.Change), ev.Time, string(ev.Data)
	}
	return []any{ids, types, subjects, versions, changes, times, data}
}

func snapshots(ch *observer.Chunk) []bool {
	all := make([]bool, len(ch.Events))
	for i := range ch.Events {
		all[i] = ch.Events[i].Snapshot
	}
	return all
}

// lookUpPostgresSQL looks each key up in the index, and OFFSET 0 keeps the planner
// from doing better: for some thousand keys it prefers to read all that was
// ever observed, be it by "= ANY" or by a join, so that a chunk would cost the
// more the longer the stream is (measured at 0.9 million rows: 4 ms, not 78).
const lookUpPostgresSQL = `
SELECT o.*
  FROM unnest($2::text[]) AS u(key)
 CROSS JOIN LATERAL (
       SELECT ` + observedColumns + `
         FROM obs_observed
        WHERE stream_id = $1 AND key = u.key
       OFFSET 0) AS o`

func (e *postgresEngine) lookUpSQL() string { return lookUpPostgresSQL }

// buriedSQL keeps the planner to the index as the lookup of keys does.
func (e *postgresEngine) buriedSQL() string {
	return `
		SELECT d.*
		  FROM unnest($2::text[]) AS u(digest)
		 CROSS JOIN LATERAL (
		       SELECT digest, refused, last_at > {ago $3::float8}
		         FROM obs_dead
		        WHERE stream = $1 AND digest = decode(u.digest, 'hex')
		       OFFSET 0) AS d`
}

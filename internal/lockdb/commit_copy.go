package lockdb

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
)

// advanceSQL is the compare-and-set of the cursor, the same on both databases.
const advanceSQL = `
UPDATE obs_cursor
   SET version = $3, commit_id = $4, last_seq = $5, row_count = $6, live_count = $7,
       low_ts = $8, newest_ts = $9, first_reading = $10,
       start_ts = CASE WHEN low_ts = '' AND query_fingerprint = '' THEN $8 ELSE start_ts END,
       query_fingerprint = $11, definition = $12,
       defined_at = CASE WHEN definition = $12 THEN defined_at ELSE {now} END,
       refusal = $13, accepted = $14, marks = $15
 WHERE stream_id = $1 AND version = $2 AND NOT paused`

// advanceArgs are those of advanceSQL, and of the cursor in commitSQL.
func advanceArgs(ch *observer.Chunk) []any {
	after := ch.After
	return []any{
		ch.Before.ID, ch.Before.Version,
		after.Version, ch.CommitID.String(), after.LastSeq, after.Rows, after.Live,
		after.Low, after.Newest, after.FirstReading,
		after.Fingerprint, after.Definition,
		after.Refusal, after.Accepted, after.Marks.Encode(),
	}
}

const renewOneSQL = `
UPDATE int_lock l
   SET {touch $4::float8}
 WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND {alive l $4::float8}`

// changeSQL names rows that are there. An UPDATE that joins them with some
// thousand keys would read the whole table; this looks each up in the index.
const changeSQL = `
INSERT INTO obs_observed (stream_id, key, row_hash, version, row_number, gone)
SELECT $1, u.*
  FROM unnest($2::text[], $3::bytea[], $4::integer[], $5::bigint[], $6::boolean[])
       AS u(key, row_hash, version, row_number, gone)
ON CONFLICT (stream_id, key) DO UPDATE
   SET row_hash = excluded.row_hash, version = excluded.version, gone = excluded.gone`

const buryPostgresSQL = `
INSERT INTO obs_dead AS d (stream, key, digest, reason, raw, first_at, last_at, refused)
SELECT $1, u.key, u.digest, u.reason, u.raw, {now}, {now}, $6
  FROM unnest($2::text[], $3::bytea[], $4::text[], $5::text[]) AS u(key, digest, reason, raw)
ON CONFLICT (stream, digest) DO UPDATE SET raw = excluded.raw, last_at = excluded.last_at, refused = excluded.refused`

// commitTransaction is the commit of large chunks, of steps of sweeps and of generations.
// The cursor's row is locked and compared first, then rows are copied, then the step or the
// generation is noted, and the lease is renewed by the last statement before COMMIT: its
// row is locked only for that moment, and a lease, or a sweep, that ended meanwhile
// undoes everything. A copy that stalls is ended by the
// next node whose commit it blocks.
func (e *postgresEngine) commitTransaction(ctx context.Context, g lock.Grant, ch *observer.Chunk) error {
	return e.db.Native(ctx, func(conn *pgx.Conn) error {
		return inNativeTx(ctx, conn, func(tx pgx.Tx) error { return e.writeChunk(ctx, tx, g, ch) })
	})
}

// inNativeTx runs f in a transaction. It is not pgx.BeginFunc, which answers a
// lost COMMIT with the error of the rollback that it tries then, and that one
// says "never sent".
func inNativeTx(ctx context.Context, conn *pgx.Conn, f func(pgx.Tx) error) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		// A connection that cannot roll back is closed, and the server rolls back.
		_ = tx.Rollback(ctx)
		return err
	}
	return tx.Commit(ctx)
}

func (e *postgresEngine) writeChunk(ctx context.Context, tx pgx.Tx, g lock.Grant, ch *observer.Chunk) error {
	failpoint.Hit("copy.begun")
	advanced, err := tx.Exec(ctx, e.db.SQL(advanceSQL), advanceArgs(ch)...)
	if err != nil {
		return err
	}
	failpoint.Hit("copy.fenced")
	if advanced.RowsAffected() == 1 {
		if err := e.copyRows(ctx, tx, ch); err != nil {
			return err
		}
	}
	failpoint.Hit("copy.copied")
	if err := e.noteProgress(ctx, tx, ch); err != nil {
		return err
	}
	renewed, err := tx.Exec(ctx, e.db.SQL(renewOneSQL), rowKey(g.Key), g.Region, g.Term, g.TTL.Seconds())
	if err != nil {
		return err
	}
	failpoint.Hit("copy.renewed")
	return verdict(renewed.RowsAffected() == 1, advanced.RowsAffected() == 1)
}

// noteProgress notes the chunk's step of a sweep, or its generation.
func (e *postgresEngine) noteProgress(ctx context.Context, tx pgx.Tx, ch *observer.Chunk) error {
	if ch.Generation != nil {
		if _, err := tx.Exec(ctx, e.db.SQL(generationSQL), generationArgs(e.db, ch)...); err != nil {
			return err
		}
	}
	if ch.Sweep == nil {
		return nil
	}
	stepped, err := tx.Exec(ctx, e.db.SQL(stepSQL), stepArgs(ch)...)
	if err != nil {
		return err
	}
	return verdict(true, stepped.RowsAffected() == 1)
}

func (e *postgresEngine) copyRows(ctx context.Context, tx pgx.Tx, ch *observer.Chunk) error {
	if len(ch.New) > 0 {
		if _, err := tx.CopyFrom(ctx, e.db.Table("obs_observed"),
			[]string{"stream_id", "version", "row_number", "key", "row_hash"}, copyObserved(ch)); err != nil {
			return err
		}
	}
	if len(ch.Changed) > 0 {
		args := append([]any{ch.Before.ID}, observedArgs(ch.Changed)...)
		if _, err := tx.Exec(ctx, e.db.SQL(changeSQL), args...); err != nil {
			return err
		}
	}
	if len(ch.Dead) > 0 {
		args := append(append([]any{ch.Before.Stream}, deadArgs(ch.Dead)...), ch.Refused)
		if _, err := tx.Exec(ctx, e.db.SQL(buryPostgresSQL), args...); err != nil {
			return err
		}
	}
	if len(ch.Events) == 0 {
		return nil
	}
	_, err := tx.CopyFrom(ctx, e.db.Table("obs_event"),
		[]string{"stream", "seq", "event_id", "type", "subject", "version", "change", "time", "data", "snapshot"}, copyEvents(ch))
	return err
}

func copyObserved(ch *observer.Chunk) pgx.CopyFromSource {
	row := make([]any, 5)
	return pgx.CopyFromSlice(len(ch.New), func(i int) ([]any, error) {
		o := &ch.New[i]
		row[0], row[1], row[2], row[3], row[4] = ch.Before.ID, o.Version, o.Number, o.Key, o.Hash
		return row, nil
	})
}

func copyEvents(ch *observer.Chunk) pgx.CopyFromSource {
	row := make([]any, 10)
	return pgx.CopyFromSlice(len(ch.Events), func(i int) ([]any, error) {
		ev := &ch.Events[i]
		row[0], row[1], row[2], row[3] = ch.Before.Stream, ch.Before.LastSeq+int64(i)+1, [16]byte(ev.ID), ev.Type
		row[4], row[5], row[6], row[7], row[8], row[9] = ev.Subject, ev.Version, string(ev.Change), ev.Time, []byte(ev.Data), ev.Snapshot
		return row, nil
	})
}

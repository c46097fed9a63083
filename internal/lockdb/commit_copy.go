package lockdb

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
)

// advanceArgs are the parameters of Advance, and of the cursor in Commit.
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
	advanced, err := tx.Exec(ctx, e.sql.SQL().Commit.Advance, advanceArgs(ch)...)
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
	renewed, err := tx.Exec(ctx, e.sql.SQL().Leases.Guard, rowKey(g.Key), g.Region, g.Term, g.TTL.Seconds())
	if err != nil {
		return err
	}
	failpoint.Hit("copy.renewed")
	return verdict(renewed.RowsAffected() == 1, advanced.RowsAffected() == 1)
}

// noteProgress notes the chunk's step of a sweep, or its generation.
func (e *postgresEngine) noteProgress(ctx context.Context, tx pgx.Tx, ch *observer.Chunk) error {
	if ch.Generation != nil {
		if _, err := tx.Exec(ctx, e.sql.SQL().Commit.Remember, generationArgs(e.db, ch)...); err != nil {
			return err
		}
	}
	if ch.Sweep == nil {
		return nil
	}
	stepped, err := tx.Exec(ctx, e.sql.SQL().Commit.Step, stepArgs(ch)...)
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
		if _, err := tx.Exec(ctx, e.sql.SQL().Commit.Change, args...); err != nil {
			return err
		}
	}
	if len(ch.Dead) > 0 {
		args := append(append([]any{ch.Before.Stream}, deadArgs(ch.Dead)...), ch.Refused)
		if _, err := tx.Exec(ctx, e.sql.SQL().Commit.Bury, args...); err != nil {
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

package lockdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
)

// commitArgs are the parameters of Commit: the lease $1, the cursor $5, the rows $20,
// the poison rows $26 and the events $31.
func commitArgs(g lock.Grant, ch *observer.Chunk) []any {
	return slices.Concat(
		[]any{RowKey(g.Key), g.Region, g.Term, g.TTL.Seconds()},
		advanceArgs(ch),
		observedArgs(slices.Concat(ch.New, ch.Changed)), []any{len(ch.New)},
		deadArgs(ch.Dead), []any{ch.Refused},
		eventArgs(ch.Events),
	)
}

// copyFrom is the number of new rows from which COPY in a transaction is
// faster than one statement with arrays. That needs the events in memory several
// times over, so from copyBytes on they are copied row by row as well.
const (
	copyFrom  = 2000
	copyBytes = 1 << 20
)

func (e *postgresEngine) commit(ctx context.Context, g lock.Grant, ch *observer.Chunk) error {
	how := e.commitStatement
	if ch.Sweep != nil || ch.Generation != nil || len(ch.New) >= copyFrom || isLarge(ch) {
		how = e.commitTransaction
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
	if err := e.db.Main.QueryRowContext(ctx, e.sql.SQL().Commit.Commit, e.db.Prepared(commitArgs(g, ch)...)...).Scan(&leases, &cursors); err != nil {
		return err
	}
	return verdict(leases == 1, cursors == 1)
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

func eventArgs(all []events.Event) []any {
	n := len(all)
	ids, types, subjects, versions := make([][16]byte, n), make([]string, n), make([]string, n), make([]int32, n)
	changes, times, data, snapshots := make([]string, n), make([]time.Time, n), make([]string, n), make([]bool, n)
	for i := range all {
		ev := &all[i]
		ids[i], types[i], subjects[i], versions[i] = ev.ID, ev.Type, ev.Subject, int32(ev.Version) //nolint:gosec // As above.
		changes[i], times[i], data[i], snapshots[i] = string(ev.Change), ev.Time, string(ev.Data), ev.Snapshot
	}
	return []any{ids, types, subjects, versions, changes, times, data, snapshots}
}

// unblocked runs f, and once more if it met a lock that a stalled session held and no longer
// holds: one of ours whose client has stopped in the middle of a COPY. The server never ends
// it: while it waits for the rest of the rows it heeds neither statement_timeout nor
// idle_in_transaction_session_timeout, and the kernel of a host whose process is stopped keeps
// the connection alive. What the ended session had written is undone, and its client, should
// it wake, finds its commit not done.
func (e *postgresEngine) unblocked(ctx context.Context, f func() error) error {
	err := f()
	if !sqldb.LockTimedOut(err) {
		return err
	}
	var ended int
	failed := e.db.Lease.QueryRowContext(ctx, e.sql.SQL().Commit.EndStalled, e.stalled.Seconds(), e.db.TablePrefix()).Scan(&ended)
	if failed != nil {
		return errors.Join(err, fmt.Errorf("look for stalled sessions: %w", failed))
	}
	if ended == 0 {
		return err
	}
	e.metrics.endedSessions.Add(float64(ended))
	e.log.Warn("Ended sessions of a node that has stopped in the middle of a commit", "sessions", ended)
	return f()
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
	advanced, err := tx.Exec(ctx, e.sql.SQL().Commit.Advance, e.db.Prepared(advanceArgs(ch)...)...)
	if err != nil {
		return err
	}
	failpoint.Hit("copy.fenced")
	if advanced.RowsAffected() == 1 {
		if err := e.addRows(ctx, tx, ch); err != nil {
			return err
		}
	}
	failpoint.Hit("copy.copied")
	if err := e.noteProgress(ctx, tx, ch); err != nil {
		return err
	}
	renewed, err := tx.Exec(ctx, e.sql.SQL().Lease.Guard, e.db.Prepared(RowKey(g.Key), g.Region, g.Term, g.TTL.Seconds())...)
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

func (e *postgresEngine) addRows(ctx context.Context, tx pgx.Tx, ch *observer.Chunk) error {
	if len(ch.New) > 0 {
		if err := e.copyObserved(ctx, tx, ch); err != nil {
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
	return e.copyEvents(ctx, tx, ch)
}

func (e *postgresEngine) copyObserved(ctx context.Context, tx pgx.Tx, ch *observer.Chunk) error {
	statement := "copy " + e.db.Table("obs_observed").Sanitize() + " (stream_id, version, row_number, key, row_hash) from stdin binary"
	return copyRows(ctx, tx, statement, len(ch.New), func(c *copied, row int) {
		o := &ch.New[row]
		c.columns(5)
		c.integer(ch.Before.ID)
		c.integer(o.Version)
		c.bigint(o.Number)
		text(c, o.Key)
		text(c, o.Hash)
	})
}

func (e *postgresEngine) copyEvents(ctx context.Context, tx pgx.Tx, ch *observer.Chunk) error {
	statement := "copy " + e.db.Table("obs_event").Sanitize() + " (stream, seq, event_id, type, subject, version, change, time, data, snapshot) from stdin binary"
	return copyRows(ctx, tx, statement, len(ch.Events), func(c *copied, row int) {
		ev := &ch.Events[row]
		c.columns(10)
		text(c, ch.Before.Stream)
		c.bigint(ch.Before.LastSeq + int64(row) + 1)
		text(c, ev.ID[:])
		text(c, ev.Type)
		text(c, ev.Subject)
		c.integer(ev.Version)
		text(c, ev.Change)
		c.timestamp(ev.Time)
		text(c, ev.Data)
		c.boolean(ev.Snapshot)
	})
}

package lockdb

import (
	"context"
	"database/sql"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
)

// commit on SQLite is a transaction that holds the write lock from its first
// statement: no other process writes between the lease, the cursor and the rows. A
// process that is stopped in it stops all others, so the values are prepared before.
// Prepared statements in a loop are the fastest that the driver offers.
func (e *sqliteEngine) commit(ctx context.Context, g lock.Grant, ch *observer.Chunk) (err error) {
	advance, writes := advanceArgs(ch), e.writes(ch)
	tx, err := e.db.Main.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = sqldb.EndTx(tx, err) }()
	leased, err := e.touch(ctx, tx, g)
	if err != nil {
		return err
	}
	if !leased {
		return lock.ErrFenced
	}
	if err := current(tx.ExecContext(ctx, e.sql.SQL().Commit.Advance, advance...)); err != nil {
		return err
	}
	if err := e.step(ctx, tx, ch); err != nil {
		return err
	}
	for _, w := range writes {
		if err := e.write(ctx, tx, w); err != nil {
			return err
		}
	}
	return nil
}

// step notes the chunk's step of a sweep, if it is one.
func (e *sqliteEngine) step(ctx context.Context, tx *sql.Tx, ch *observer.Chunk) error {
	if ch.Sweep == nil {
		return nil
	}
	return current(tx.ExecContext(ctx, e.sql.SQL().Commit.Step, stepArgs(ch)...))
}

// current makes a compare-and-set that met another state a conflict.
func current(result sql.Result, err error) error {
	n, err := sqldb.Affected(result, err)
	if err != nil {
		return err
	}
	return verdict(true, n == 1)
}

// writing is a statement, and its parameters for each time that it runs.
type writing struct {
	text string
	args [][]any
}

// write prepares a statement and runs it for each row.
func (e *sqliteEngine) write(ctx context.Context, tx *sql.Tx, w writing) error {
	if len(w.args) == 0 {
		return nil
	}
	statement, err := tx.PrepareContext(ctx, w.text)
	if err != nil {
		return err
	}
	defer statement.Close()
	for _, args := range w.args {
		if _, err := statement.ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// writes are what the chunk adds to the tables beside its cursor.
func (e *sqliteEngine) writes(ch *observer.Chunk) []writing {
	text := e.sql.SQL().Commit
	added := writing{text: text.Add}
	for _, o := range ch.New {
		added.args = append(added.args, []any{ch.Before.ID, o.Key, o.Hash, o.Version, o.Number, o.Gone})
	}
	changed := writing{text: text.Change}
	for _, o := range ch.Changed {
		changed.args = append(changed.args, []any{ch.Before.ID, o.Key, o.Hash, o.Version, o.Gone})
	}
	buried := writing{text: text.Bury}
	for _, d := range ch.Dead {
		buried.args = append(buried.args, []any{ch.Before.Stream, d.Key, deadDigest(d), d.Reason, string(d.Raw), ch.Refused})
	}
	logged := writing{text: text.Log}
	for i := range ch.Events {
		ev := &ch.Events[i]
		logged.args = append(logged.args, []any{
			ch.Before.Stream, ch.Before.LastSeq + int64(i) + 1, ev.ID.String(), ev.Type, ev.Subject,
			ev.Version, string(ev.Change), e.db.TimeArg(ev.Time), string(ev.Data), ev.Snapshot,
		})
	}
	read := writing{text: text.Remember}
	if ch.Generation != nil {
		read.args = append(read.args, generationArgs(e.db, ch))
	}
	return []writing{added, changed, buried, logged, read}
}

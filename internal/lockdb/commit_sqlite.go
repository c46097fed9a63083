package lockdb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
)

// commit on SQLite is a transaction that holds the write lock from its first
// statement: nobody comes between the lease, the cursor and the rows. Prepared
// inserts in a loop are the fastest that the driver offers.
func (e *sqliteEngine) commit(ctx context.Context, g lock.Grant, ch *observer.Chunk) (err error) {
	tx, err := e.db.main.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = endTx(tx, err) }()
	leased, err := e.touch(ctx, tx, g)
	if err != nil {
		return err
	}
	if !leased {
		return lock.ErrFenced
	}
	if err := e.advance(ctx, tx, ch); err != nil {
		return err
	}
	if err := e.step(ctx, tx, ch); err != nil {
		return err
	}
	if err := e.note(ctx, tx, ch); err != nil {
		return err
	}
	if err := e.bury(ctx, tx, ch); err != nil {
		return err
	}
	return e.append(ctx, tx, ch)
}

func (e *sqliteEngine) advance(ctx context.Context, tx *sql.Tx, ch *observer.Chunk) error {
	return current(tx.ExecContext(ctx, e.db.d.sql(advanceSQL), e.db.advanceArgs(ch)...))
}

// step notes the chunk's step of a sweep, if it is one.
func (e *sqliteEngine) step(ctx context.Context, tx *sql.Tx, ch *observer.Chunk) error {
	if ch.Sweep == nil {
		return nil
	}
	return current(tx.ExecContext(ctx, e.db.d.sql(stepSQL), append(stepArgs(ch.Sweep), ch.Cursor.Stream)...))
}

// current makes a compare-and-set that met another state a conflict.
func current(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err != nil {
		return err
	}
	return verdict(true, n == 1)
}

// each prepares a statement and runs it n times.
func (e *sqliteEngine) each(ctx context.Context, tx *sql.Tx, text string, n int, args func(i int) []any) error {
	if n == 0 {
		return nil
	}
	statement, err := tx.PrepareContext(ctx, e.db.d.sql(text))
	if err != nil {
		return err
	}
	defer statement.Close()
	for i := range n {
		if _, err := statement.ExecContext(ctx, args(i)...); err != nil {
			return err
		}
	}
	return nil
}

func (e *sqliteEngine) note(ctx context.Context, tx *sql.Tx, ch *observer.Chunk) error {
	err := e.each(ctx, tx, `
		INSERT INTO obs_observed (stream_id, key, row_hash, version, row_number, gone)
		VALUES ($1, $2, $3, $4, $5, $6)`,
		len(ch.New), func(i int) []any {
			o := &ch.New[i]
			return []any{ch.Cursor.ID, o.Key, o.Hash, o.Version, o.Number, o.Gone}
		})
	if err != nil {
		return err
	}
	return e.each(ctx, tx, `
		UPDATE obs_observed SET row_hash = $3, version = $4, gone = $5 WHERE stream_id = $1 AND key = $2`,
		len(ch.Changed), func(i int) []any {
			o := &ch.Changed[i]
			return []any{ch.Cursor.ID, o.Key, o.Hash, o.Version, o.Gone}
		})
}

func (e *sqliteEngine) bury(ctx context.Context, tx *sql.Tx, ch *observer.Chunk) error {
	return e.each(ctx, tx, `
		INSERT INTO obs_dead (stream, key, digest, reason, raw, first_at, last_at, refused)
		VALUES ($1, $2, $3, $4, $5, {now}, {now}, $6)
		ON CONFLICT (stream, digest) DO UPDATE SET last_at = excluded.last_at, refused = excluded.refused`,
		len(ch.Dead), func(i int) []any {
			d := ch.Dead[i]
			return []any{ch.Cursor.Stream, d.Key, deadDigest(d), d.Reason, string(d.Raw), ch.Refused}
		})
}

func (e *sqliteEngine) append(ctx context.Context, tx *sql.Tx, ch *observer.Chunk) error {
	return e.each(ctx, tx, `
		INSERT INTO obs_event (stream, seq, event_id, type, subject, version, change, time, data)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		len(ch.Events), func(i int) []any {
			ev := &ch.Events[i]
			return []any{
				ch.Cursor.Stream, ch.Cursor.LastSeq + int64(i) + 1, ev.ID.String(), ev.Type, ev.Subject,
				ev.Version, string(ev.Change), e.db.d.bindTime(ev.Time), string(ev.Data),
			}
		})
}

func (e *sqliteEngine) lookUpSQL() string {
	return `
		SELECT ` + observedColumns + `
		  FROM obs_observed
		 WHERE stream_id = $1 AND key IN (SELECT value FROM json_each($2))`
}

// keyList is one JSON array: SQLite has no array type and limits the number of
// parameters.
func (e *sqliteEngine) keyList(keys []string) (any, error) {
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, fmt.Errorf("encode keys: %w", err)
	}
	return string(list), nil
}

func (e *sqliteEngine) buriedSQL() string {
	return `
		SELECT digest, refused, last_at > {ago $3}
		  FROM obs_dead
		 WHERE stream = $1 AND digest IN (SELECT unhex(value) FROM json_each($2))`
}

package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	sqlite3 "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// ErrKeysMeet reports that two keys of a stream would become one.
var ErrKeysMeet = errors.New("two rows that were observed would have one key")

// Renaming is another way to write the keys of a stream, which a person lets take the
// place of the present one.
type Renaming struct {
	// Refusal is what [Streams.Refused] returned.
	Refusal string
	// Rename returns the key that a row has from now on; it does not change such a key.
	// Form is the form of these keys, and Fingerprint that of the query with them.
	Rename            func(key string) string
	Form, Fingerprint string
}

// CountRenamed returns how many rows of a stream were observed, and how many of them
// get another key.
func (t *Operations) CountRenamed(ctx context.Context, stream string, rename func(key string) string) (rows, renamed int64, err error) {
	err = eachKeys(ctx, t.db.Read, t.db, stream, func(_ string, keys []string) error {
		rows += int64(len(keys))
		from, _ := changed(keys, rename)
		renamed += int64(len(from))
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("count the keys of %s: %w", stream, err)
	}
	return rows, renamed, nil
}

// RenameKeys is [Operations.Accept] for a refusal that means that known rows have other keys
// now: it renames those that are remembered, all or none, under the lease of the
// stream's type. The error is lock.ErrFenced when the lease has ended,
// [ErrRefusalMoved] as that of Accept, [ErrKeysMeet], and the cause of the end of ctx.
func (t *Operations) RenameKeys(ctx context.Context, g lock.Grant, act Act, n Renaming) error {
	what := "rename the keys of " + act.Subject
	err := sqldb.Redacted(t.db.InTx(ctx, what, func(tx *sql.Tx) error {
		renamed := 0
		err := eachKeys(ctx, tx, t.db, act.Subject, func(after string, keys []string) error {
			from, to := changed(keys, n.Rename)
			renamed += len(from)
			err := t.engine.rename(ctx, tx, act.Subject, page{after, keys[len(keys)-1]}, from, to)
			if isDuplicate(err) {
				err = ErrKeysMeet
			}
			return err
		})
		if err != nil {
			return err
		}
		// Only now, as polls of others of the type and the heartbeat need these rows.
		if err := t.accept(ctx, tx, act.Subject, n.Refusal, ", key_form = $3, query_fingerprint = $4", n.Form, n.Fingerprint); err != nil {
			return err
		}
		err = tx.QueryRowContext(ctx, fencedSQL(t.db, `SELECT 1 WHERE {lease}`), fencedArgs(g)...).Scan(new(int))
		if errors.Is(err, sql.ErrNoRows) {
			err = lock.ErrFenced
		}
		if err != nil {
			return err
		}
		act.Detail += fmt.Sprintf("; %d keys renamed", renamed)
		return audit(ctx, t.db, tx, act)
	}))
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
	return err
}

// page are the keys behind one, up to another.
type page struct{ after, last string }

// renameSQL has the bounds of a page, which keep the planner from reading all that was
// observed for each of them.
const renameSQL = `
UPDATE obs_observed AS o
   SET key = renamed.new
  FROM unnest($4::text[], $5::text[]) AS renamed (old, new)
 WHERE o.stream_id = (SELECT stream_id FROM obs_cursor WHERE stream = $1)
   AND o.key > $2 AND o.key <= $3 AND o.key = renamed.old`

func (e *postgresEngine) rename(ctx context.Context, tx *sql.Tx, stream string, p page, from, to []string) error {
	_, err := tx.ExecContext(ctx, e.db.SQL(renameSQL), stream, p.after, p.last, from, to)
	return err
}

func (e *sqliteEngine) rename(ctx context.Context, tx *sql.Tx, stream string, _ page, from, to []string) error {
	w := writing{text: `
		UPDATE obs_observed SET key = $3
		 WHERE stream_id = (SELECT stream_id FROM obs_cursor WHERE stream = $1) AND key = $2`}
	for i, key := range from {
		w.args = append(w.args, []any{stream, key, to[i]})
	}
	return e.write(ctx, tx, w)
}

func isDuplicate(err error) bool {
	const uniqueViolation = "23505"
	var pg *pgconn.PgError
	var lite *sqlite3.Error
	return errors.As(err, &pg) && pg.Code == uniqueViolation ||
		errors.As(err, &lite) && lite.Code() == sqlitelib.SQLITE_CONSTRAINT_PRIMARYKEY
}

// changed are the renamed keys and their new names.
func changed(keys []string, rename func(string) string) (from, to []string) {
	for _, key := range keys {
		if other := rename(key); other != key {
			from, to = append(from, key), append(to, other)
		}
	}
	return from, to
}

type queryer interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// keyPage is how many keys are read at once.
const keyPage = 10_000

// eachKeys visits the keys of a stream page by page, each with the key behind which it
// begins. A page may hold keys that the visit of one before has written.
func eachKeys(ctx context.Context, from queryer, db *sqldb.DB, stream string, visit func(after string, keys []string) error) error {
	after := ""
	for {
		keys, err := readKeys(ctx, from, db, stream, after)
		if err != nil || len(keys) == 0 {
			return err
		}
		if err := visit(after, keys); err != nil {
			return err
		}
		after = keys[len(keys)-1]
	}
}

func readKeys(ctx context.Context, from queryer, db *sqldb.DB, stream, after string) (keys []string, err error) {
	rows, err := from.QueryContext(ctx, db.SQL(`
		SELECT key FROM obs_observed
		 WHERE stream_id = (SELECT stream_id FROM obs_cursor WHERE stream = $1) AND key > $2
		 ORDER BY key
		 LIMIT $3`), stream, after, keyPage)
	if err != nil {
		return nil, err
	}
	for rows.Next() && err == nil {
		var key string
		err = rows.Scan(&key)
		keys = append(keys, key)
	}
	return keys, errors.Join(err, rows.Err(), rows.Close())
}

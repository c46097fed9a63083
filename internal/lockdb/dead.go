package lockdb

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
)

// deadDigest recognises a poison row that is met again in the next poll, so
// that it is kept once.
func deadDigest(d observer.Dead) []byte {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(d.Key), []byte(d.Reason), d.Raw} {
		h.Write(part)
		h.Write([]byte{0})
	}
	return h.Sum(nil)[:16]
}

// deadFresh is for how long, in seconds, a poison row need not be noted again.
// The janitor forgets what was not noted for much longer.
const deadFresh = 24 * 60 * 60

// Buried implements [observer.Store].
func (s *Store) Buried(ctx context.Context, c observer.Cursor, dead []observer.Dead) ([]observer.Burial, error) {
	keys := make([]string, len(dead))
	for i, d := range dead {
		keys[i] = hex.EncodeToString(deadDigest(d))
	}
	list, err := s.db.List(keys)
	if err != nil {
		return nil, err
	}
	found := make(map[string]observer.Burial, len(dead))
	err = s.db.Query(ctx, "look up poison rows of "+c.Stream, s.engine.buriedSQL(), func(scan func(...any) error) error {
		var digest []byte
		var refused, fresh bool
		err := scan(&digest, &refused, &fresh)
		switch {
		case refused:
			found[hex.EncodeToString(digest)] = observer.BuriedRefused
		case !fresh:
			found[hex.EncodeToString(digest)] = observer.BuriedLong
		default:
			found[hex.EncodeToString(digest)] = observer.Buried
		}
		return err
	}, c.Stream, list, deadFresh)
	if err != nil {
		return nil, err
	}
	known := make([]observer.Burial, len(dead))
	for i, key := range keys {
		known[i] = found[key]
	}
	return known, nil
}

// DeadRow is the record of a poison row.
type DeadRow struct {
	ID     int64
	Stream string
	observer.Dead
	// Refused says that a poll has refused the row, and reads it again.
	Refused         bool
	FirstAt, LastAt time.Time
}

// DeadFilter says which records of poison rows are meant. An empty field means any.
type DeadFilter struct {
	IDs     []int64
	Streams []string
	Key     string
	// Since is how long ago the row was last met, by the database's clock.
	Since time.Duration
	// Raw asks for what was kept of the rows, which may be much.
	Raw bool
	// Limit is the most that are returned; 0 means all.
	Limit int
}

// Dead returns the records of poison rows, those that were met last first.
func (t *Operations) Dead(ctx context.Context, f DeadFilter) ([]DeadRow, error) {
	w := where{db: t.db}
	if err := cmp.Or(w.ids(f.IDs), w.among("stream", f.Streams)); err != nil {
		return nil, err
	}
	if f.Key != "" {
		w.add("key = %s", f.Key)
	}
	if f.Since > 0 {
		w.add("last_at >= {past %s}", f.Since.Seconds())
	}
	raw := "''"
	if f.Raw {
		raw = "raw"
	}
	var found []DeadRow
	err := t.db.Query(ctx, "read the poison rows",
		`SELECT id, stream, key, reason, refused, first_at, last_at, `+raw+` FROM obs_dead`+w.text()+` ORDER BY last_at DESC, id DESC`+w.limit(f.Limit),
		func(scan func(...any) error) error {
			var d DeadRow
			err := scan(&d.ID, &d.Stream, &d.Key, &d.Reason, &d.Refused, sqldb.ScanTime(&d.FirstAt), sqldb.ScanTime(&d.LastAt), &d.Raw)
			found = append(found, d)
			return err
		}, w.args...)
	return found, err
}

// DropDead removes records of a stream for an operator, and returns how many there were.
func (t *Operations) DropDead(ctx context.Context, ids []int64, act Act) (dropped int64, err error) {
	err = t.db.InTx(ctx, "drop poison rows of "+act.Subject, func(tx *sql.Tx) error {
		if dropped, err = t.deleteDead(ctx, tx, act.Subject, ids); err != nil || dropped == 0 {
			return err
		}
		return Audit(ctx, t.db, tx, act)
	})
	return dropped, err
}

// SettleDead removes the records of rows that were observed, under the lease of the
// stream's type: a poll that met one again would have kept the record. The error is
// lock.ErrFenced when the lease has ended.
func (t *Operations) SettleDead(ctx context.Context, g lock.Grant, stream string, ids []int64) error {
	return t.db.InTx(ctx, "remove poison rows of "+stream, func(tx *sql.Tx) error {
		if _, err := t.deleteDead(ctx, tx, stream, ids); err != nil {
			return err
		}
		err := tx.QueryRowContext(ctx, fencedSQL(t.db, `SELECT 1 WHERE {lease}`), fencedArgs(g)...).Scan(new(int))
		if errors.Is(err, sql.ErrNoRows) {
			err = lock.ErrFenced
		}
		return err
	})
}

func (t *Operations) deleteDead(ctx context.Context, tx *sql.Tx, stream string, ids []int64) (int64, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	w, err := recordsOf(t.db, stream, ids)
	if err != nil {
		return 0, err
	}
	result, err := tx.ExecContext(ctx, t.db.SQL(`DELETE FROM obs_dead`+w.text()), w.args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// recordsOf says which records of a stream have these numbers. The stream is an expression
// because SQLite would look up all its records otherwise.
func recordsOf(db *sqldb.DB, stream string, ids []int64) (where, error) {
	w := where{db: db}
	w.add("stream || '' = %s", stream)
	return w, w.ids(ids)
}

// where is the WHERE of a statement that is put together, with its parameters.
type where struct {
	db         *sqldb.DB
	conditions []string
	args       []any
}

// add adds a condition on a value, which is written as %s.
func (w *where) add(condition string, value any) {
	w.args = append(w.args, value)
	w.conditions = append(w.conditions, fmt.Sprintf(condition, fmt.Sprint("$", len(w.args))))
}

// among adds that a text is one of the values; none means any.
func (w *where) among(text string, values []string) error {
	if len(values) == 0 {
		return nil
	}
	list, err := w.db.List(values)
	w.add(text+" {among %s}", list)
	return err
}

// ids adds that the number of a record is one of these; none means any. They are compared
// as numbers, by which the primary key finds them.
func (w *where) ids(ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	list, err := w.db.List(texts)
	w.add("id IN (SELECT CAST(value AS BIGINT) FROM {numbered %s} AS l)", list)
	return err
}

func (w *where) text() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conditions, " AND ")
}

// limit ends a statement after so many rows; 0 means all.
func (w *where) limit(rows int) string {
	if rows == 0 {
		return ""
	}
	return fmt.Sprint(" LIMIT ", rows)
}

package lockdb

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/observerd/observerd/internal/fn"
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
	keys := fn.Each(dead, func(d observer.Dead) string { return hex.EncodeToString(deadDigest(d)) })
	found := make(map[string]observer.Burial, len(dead))
	err := s.db.Query(ctx, "look up poison rows of "+c.Stream, s.sql.SQL().Store.Buried, func(scan func(...any) error) error {
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
	}, c.Stream, s.db.List(keys), deadFresh)
	if err != nil {
		return nil, err
	}
	return fn.Each(keys, func(key string) observer.Burial { return found[key] }), nil
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
	return sqldb.All(ctx, t.db, "read the poison rows", t.sql.SQL().Dead.Dead,
		func(scan sqldb.Scan, d *DeadRow) error {
			return scan(&d.ID, &d.Stream, &d.Key, &d.Reason, &d.Refused, sqldb.ScanTime(&d.FirstAt), sqldb.ScanTime(&d.LastAt), &d.Raw)
		}, len(f.IDs) == 0, t.db.List(numbers(f.IDs)), len(f.Streams) == 0, t.db.List(f.Streams), f.Key, f.Since.Seconds(), f.Raw, cmp.Or(f.Limit, math.MaxInt32))
}

// DropDead removes records of a stream for an operator, and returns how many there were.
func (t *Operations) DropDead(ctx context.Context, ids []int64, act Act) (dropped int64, err error) {
	return t.change(ctx, act, t.sql.SQL().Dead.DeleteDead, act.Subject, t.db.List(numbers(ids)))
}

// SettleDead removes the records of rows that were observed, under the lease of the
// stream's type: a poll that met one again would have kept the record. The error is
// lock.ErrFenced when the lease has ended.
func (t *Operations) SettleDead(ctx context.Context, g lock.Grant, stream string, ids []int64) error {
	return t.db.InTx(ctx, "remove poison rows of "+stream, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, t.sql.SQL().Dead.DeleteDead, stream, t.db.List(numbers(ids))); err != nil {
			return err
		}
		err := tx.QueryRowContext(ctx, t.sql.SQL().Dead.SettleDead, fencedArgs(g)...).Scan(new(int))
		if errors.Is(err, sql.ErrNoRows) {
			err = lock.ErrFenced
		}
		return err
	})
}

// numbers are ids as texts, for a list.
func numbers(ids []int64) []string {
	return fn.Each(ids, func(id int64) string { return strconv.FormatInt(id, 10) })
}

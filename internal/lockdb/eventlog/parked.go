package eventlog

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// parkedOf are the streams, sequences and reasons of the events that steps park.
func parkedOf(steps []events.Step) [][]string {
	columns := make([][]string, 3)
	for _, s := range steps {
		for _, p := range s.Parked {
			columns[0], columns[1] = append(columns[0], s.Stream()), append(columns[1], strconv.FormatInt(p.Seq, 10))
			columns[2] = append(columns[2], sqldb.Storable(p.Reason))
		}
	}
	return columns
}

// errNotMoved rolls back what would be parked of a log that has changed.
var errNotMoved = errors.New("not all offsets have moved")

// moveAndPark moves so many offsets past events that it parks in the same transaction, and
// returns how many have moved: all, or none.
func (l *Log) moveAndPark(ctx context.Context, sink string, offsets int, move []any, parked [][]string) (moved int64, err error) {
	err = l.db.InTx(ctx, "park events of sink "+sink, func(tx *sql.Tx) error {
		n, err := sqldb.Affected(tx.ExecContext(ctx, l.sql.SQL().Move, move...))
		if err == nil && n < int64(offsets) {
			err = errNotMoved
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, l.sql.SQL().Park, append([]any{sink}, l.lists(parked)...)...)
		}
		return err
	})
	if errors.Is(err, errNotMoved) {
		return 0, nil
	}
	return int64(offsets), err
}

// Parked implements [events.Log].
func (l *Log) Parked(ctx context.Context, sink string) ([]events.ParkedKey, error) {
	return sqldb.All(ctx, l.db, "read what sink "+sink+" has refused", l.sql.SQL().Parked,
		func(scan sqldb.Scan, k *events.ParkedKey) error {
			return scan(&k.Stream, &k.Subject, &k.Events, &k.First, &k.Last, sqldb.ScanTime(&k.Oldest), sqldb.ScanTime(&k.Now), &k.Retry, &k.Paused)
		}, sink)
}

// Retries implements [events.Log].
func (l *Log) Retries(ctx context.Context, sink string, limit, bytes int) ([]events.Event, error) {
	batch, _, err := l.events(ctx, "read parked events of sink "+sink, int64(limit), bytes, l.sql.SQL().Retries, sink, limit)
	return batch, err
}

// Unpark implements [events.Log].
func (l *Log) Unpark(ctx context.Context, sink string, delivered []events.Event, epoch int64) error {
	list := l.db.List(fn.Each(delivered, func(e events.Event) string { return e.ID.String() }))
	return l.endRetry(ctx, sink, epoch, l.sql.SQL().Unpark, sink, epoch, list)
}

// Repark implements [events.Log].
func (l *Log) Repark(ctx context.Context, sink string, refused events.Event, reason string, epoch int64) error {
	return l.endRetry(ctx, sink, epoch, l.sql.SQL().Repark, sink, epoch, refused.Stream, refused.Subject, refused.ID.String(), sqldb.Storable(reason))
}

// endRetry runs a statement of the sink's relay. An operator may have dropped the events.
func (l *Log) endRetry(ctx context.Context, sink string, epoch int64, text string, args ...any) error {
	n, err := l.db.Exec(ctx, "end the retry of sink "+sink, text, args...)
	if err == nil && n == 0 {
		err = l.whyNot(ctx, sink, epoch)
	}
	if errors.Is(err, events.ErrLogChanged) {
		return nil
	}
	return err
}

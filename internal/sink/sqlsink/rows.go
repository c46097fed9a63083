package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/observerd/observerd/internal/events"
)

// knownColumns are $5 and $6 of [storeSQL].
func (s *Sink) knownColumns(ends []events.Position) []any {
	var streams []string
	var digests [][16]byte
	for _, p := range ends {
		if at, known := s.at[p.Stream]; known {
			streams, digests = append(streams, p.Stream), append(digests, at.Digest)
		}
	}
	return []any{streams, digests}
}

// positionColumns are $7 to $10 of [storeSQL]. The driver is slow with slices of uuid.UUID.
func positionColumns(ends []events.Position) []any {
	n := len(ends)
	streams, seqs, ids, digests := make([]string, n), make([]int64, n), make([][16]byte, n), make([][16]byte, n)
	for i, p := range ends {
		streams[i], seqs[i], ids[i], digests[i] = p.Stream, p.Seq, p.ID, p.Digest
	}
	return []any{streams, seqs, ids, digests}
}

// eventColumns are $11 to $21 of [storeSQL]. The driver finds out of other slices by reflection
// what they are, element by element.
func eventColumns(batch []events.Event) []any {
	n := len(batch)
	ids, seqs, versions, snapshots := make(pgtype.FlatArray[pgtype.UUID], n), make([]int64, n), make([]int64, n), make([]bool, n)
	streams, types, subjects, changes := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	times, observed, data := make(pgtype.FlatArray[pgtype.Timestamptz], n), make(pgtype.FlatArray[pgtype.Timestamptz], n), make(pgtype.FlatArray[[]byte], n)
	for i := range batch {
		e := &batch[i]
		ids[i], seqs[i], versions[i], snapshots[i] = pgtype.UUID{Bytes: e.ID, Valid: true}, e.Seq, e.Version, e.Snapshot
		streams[i], types[i], subjects[i], changes[i] = e.Stream, e.Type, e.Subject, string(e.Change)
		times[i], observed[i] = instant(e.Time), instant(e.Observed)
		if len(e.Data) > 0 {
			data[i] = e.Data
		}
	}
	return []any{ids, streams, seqs, types, subjects, changes, versions, times, observed, snapshots, data}
}

// instant is NULL for a time that no event can carry.
func instant(t time.Time) pgtype.Timestamptz {
	t = events.Writable(t)
	return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
}

// transact runs a statement in a transaction of its own, in one round trip, and returns the
// number that it returns; 0 where it returns no row.
func (s *Sink) transact(ctx context.Context, statement string, args ...any) (n int64, err error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	if s.broken != nil {
		return 0, s.broken
	}
	var batch pgx.Batch
	batch.Queue(beginSQL)
	batch.Queue(settingsSQL)
	batch.Queue(statement, args...)
	batch.Queue(commitSQL)
	n, err = answer(s.conn.SendBatch(ctx, &batch))
	if err == nil {
		return n, nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if !s.conn.IsClosed() {
		_, _ = s.conn.Exec(ctx, "ROLLBACK") // What fails closes the connection.
	}
	if s.conn.IsClosed() {
		s.broken = fmt.Errorf("the connection has ended: %w", err)
	}
	return 0, err
}

// answer reads the answers to the statements of [Sink.transact].
func answer(results pgx.BatchResults) (n int64, err error) {
	defer func() { err = errors.Join(err, results.Close()) }()
	for range 2 {
		if _, err := results.Exec(); err != nil {
			return 0, err
		}
	}
	if err := results.QueryRow().Scan(&n); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, err
	}
	_, err = results.Exec()
	return n, err
}

// Close implements [sink.Sink]. It waits for the end of a statement that was given up.
func (s *Sink) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	err := s.conn.Close(ctx)
	<-s.conn.PgConn().CleanupDone()
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/sqlsink"
	"github.com/observerd/observerd/test/kit/testbed"
)

// feedBatch is how many events are inserted at once: what the sink takes by itself.
var feedBatch = sqlsink.Kind.Settings().Batch()

// bareEventsSQL stores a batch, in the columns of a feed.
const bareEventsSQL = `
	INSERT INTO %s (event_id, sink, stream, seq, type, subject, change, version, time, observed, snapshot, data)
	SELECT event_id, 'bare', stream, seq, type, subject, change, version, time, observed, snapshot, data::json
	  FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::timestamptz[], $9::timestamptz[], $10::boolean[], $11::text[])
	       AS e (event_id, stream, seq, type, subject, change, version, time, observed, snapshot, data)`

func measureSQL(ctx context.Context, f *feed) (_ []figure, err error) {
	target, err := f.cluster.database(ctx, "target")
	if err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, target)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	// Each delivery has tables of its own, so that none is larger than another.
	open := func(schema string) opener {
		return func(ctx context.Context, t sink.Term) (sink.Sink, error) {
			return sqlsink.Open(ctx, sqlsink.Options{Sink: schema, URL: target, Schema: schema, Create: true}, t)
		}
	}
	check := func(ctx context.Context, schema string) error {
		return errors.Join(stored(ctx, conn, schema+".obs_feed_event", len(f.events)), drop(ctx, conn, schema))
	}
	rates, err := f.inTurns(ctx, len(f.events), func(ctx context.Context, round int) (time.Duration, error) {
		id := fmt.Sprint("sql_", round)
		took, err := f.deliver(ctx, id, feedBatch, len(f.events), open(id))
		return took, errors.Join(err, check(ctx, id))
	}, func(ctx context.Context, round int) (time.Duration, error) {
		id := fmt.Sprint("alone_", round)
		took, err := f.deliverAlone(ctx, feedBatch, open(id))
		return took, errors.Join(err, check(ctx, id))
	}, func(ctx context.Context, round int) (time.Duration, error) {
		id := fmt.Sprint("bare_", round)
		if err := testbed.Execute(ctx, target, "CREATE SCHEMA "+id, sqlsink.DDL(id)); err != nil {
			return 0, err
		}
		took, err := insertBare(ctx, conn, id+".obs_feed_event", f.events)
		return took, errors.Join(err, check(ctx, id))
	})
	if err != nil {
		return nil, err
	}
	outbox, err := measureOutbox(ctx, f, rates[0])
	const bare = "one INSERT a transaction, through pgx,"
	return []figure{
		rateFigure("sql, batches of "+thousands(feedBatch), bare, rates[0], rates[2], goalSQL),
		rateFigure("sql without the log: its events are in memory", bare, rates[1], rates[2], 0),
		outbox,
	}, err
}

// insertBare inserts the events in batches, each in one statement that is a transaction.
func insertBare(ctx context.Context, conn *pgx.Conn, table string, all []events.Event) (time.Duration, error) {
	began := time.Now()
	for batch := range slices.Chunk(all, feedBatch) {
		if _, err := conn.Exec(ctx, fmt.Sprintf(bareEventsSQL, table), bareColumns(batch)...); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// bareColumns are the parameters of [bareEventsSQL].
func bareColumns(batch []events.Event) []any {
	n := len(batch)
	ids, seqs, versions, snapshots := make([][16]byte, n), make([]int64, n), make([]int64, n), make([]bool, n)
	streams, types, subjects, changes := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	times, observed, data := make([]time.Time, n), make([]time.Time, n), make([][]byte, n)
	for i := range batch {
		e := &batch[i]
		ids[i], seqs[i], versions[i], snapshots[i] = e.ID, e.Seq, e.Version, e.Snapshot
		streams[i], types[i], subjects[i], changes[i] = e.Stream, e.Type, e.Subject, string(e.Change)
		times[i], observed[i], data[i] = e.Time, e.Observed, e.Data
	}
	return []any{ids, streams, seqs, types, subjects, changes, versions, times, observed, snapshots, data}
}

// stored reports an error where the table has another number of rows.
func stored(ctx context.Context, conn *pgx.Conn, table string, want int) error {
	var n int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		return err
	}
	if n != want {
		return fmt.Errorf("%s has %d events, not %d", table, n, want)
	}
	return nil
}

func drop(ctx context.Context, conn *pgx.Conn, schema string) error {
	_, err := conn.Exec(ctx, "DROP SCHEMA "+schema+" CASCADE")
	return err
}

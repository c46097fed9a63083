package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	watermillsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink/sqlsink"
	"github.com/observerd/observerd/test/kit/testbed"
)

// outboxShare is which share of the events goes through the outbox, whose messages are
// handled one by one.
const outboxShare = 5

const outboxTopic = "outbox"

// measureOutbox has watermill-sql carry events from its table to that of a feed, in batches of
// the same size. Its handler stores them in the transaction that moves the offset, so that
// each is there once, too; target and outbox are in one database for that.
func measureOutbox(ctx context.Context, f *feed, ours []rate) (figure, error) {
	var rates []rate
	for range f.rounds {
		where, err := f.cluster.database(ctx, "outbox")
		if err != nil {
			return figure{}, err
		}
		all := f.events[:len(f.events)/outboxShare]
		took, err := forward(ctx, where, all)
		if err != nil {
			return figure{}, fmt.Errorf("watermill-sql: %w", err)
		}
		rates = append(rates, rateOf(len(all), took))
	}
	return figure{
		group: sinksGroup, what: fmt.Sprintf("watermill-sql 4.1.2 as an outbox, batches of %s", thousands(feedBatch)),
		value:  say("%s events/s", whole(float64(median(rates)))),
		beside: say("sql %s events/s, %s times as many", whole(float64(median(ours))), decimal(toBare(ours, rates), 1)),
	}, nil
}

// forward fills an outbox, and says how long it takes to be empty.
func forward(ctx context.Context, where string, all []events.Event) (_ time.Duration, err error) {
	if err := testbed.Execute(ctx, where, sqlsink.DDL("public")); err != nil {
		return 0, err
	}
	pool, err := pgxpool.New(ctx, where)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	db, schema := watermillsql.BeginnerFromPgx(pool), watermillsql.DefaultPostgreSQLSchema{SubscribeBatchSize: feedBatch}
	if err := fillOutbox(db, schema, all); err != nil {
		return 0, err
	}
	if err := testbed.Execute(ctx, where, "VACUUM ANALYZE", "CHECKPOINT"); err != nil {
		return 0, err
	}
	subscriber, err := watermillsql.NewSubscriber(db, watermillsql.SubscriberConfig{
		SchemaAdapter: schema, OffsetsAdapter: watermillsql.DefaultPostgreSQLOffsetsAdapter{}, InitializeSchema: true, PollInterval: 10 * time.Millisecond,
	}, watermill.NopLogger{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, subscriber.Close()) }()
	began := time.Now()
	messages, err := subscriber.Subscribe(ctx, outboxTopic)
	if err != nil {
		return 0, err
	}
	for range all {
		m := <-messages
		if m == nil {
			return 0, errors.New("the subscription has ended")
		}
		if err := storeMessage(m); err != nil {
			return 0, err
		}
		m.Ack()
	}
	return time.Since(began), waitStored(ctx, pool, len(all))
}

// fillOutbox publishes the events.
func fillOutbox(db watermillsql.ContextExecutor, schema watermillsql.SchemaAdapter, all []events.Event) (err error) {
	publisher, err := watermillsql.NewPublisher(db, watermillsql.PublisherConfig{SchemaAdapter: schema, AutoInitializeSchema: true}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, publisher.Close()) }()
	for batch := range slices.Chunk(all, feedBatch) {
		messages := make([]*message.Message, len(batch))
		for i := range batch {
			e := &batch[i]
			messages[i] = message.NewMessage(e.ID.String(), message.Payload(e.Data))
			messages[i].Metadata = message.Metadata{
				"stream": e.Stream, "seq": strconv.FormatInt(e.Seq, 10), "type": e.Type, "subject": e.Subject, "change": string(e.Change),
				"version": strconv.FormatInt(e.Version, 10), "time": e.Time.Format(time.RFC3339Nano), "observed": e.Observed.Format(time.RFC3339Nano),
			}
		}
		if err := publisher.Publish(outboxTopic, messages...); err != nil {
			return err
		}
	}
	return nil
}

const storeMessageSQL = `
	INSERT INTO obs_feed_event (event_id, sink, stream, seq, type, subject, change, version, time, observed, snapshot, data)
	VALUES ($1, 'outbox', $2, $3, $4, $5, $6, $7, $8, $9, false, $10) ON CONFLICT (event_id) DO NOTHING`

// storeMessage is the handler.
func storeMessage(m *message.Message) error {
	tx, ok := watermillsql.TxFromContext(m.Context())
	if !ok {
		return errors.New("a message without a transaction")
	}
	of := m.Metadata
	_, err := tx.ExecContext(m.Context(), storeMessageSQL, m.UUID, of["stream"], of["seq"], of["type"], of["subject"], of["change"],
		of["version"], of["time"], of["observed"], string(m.Payload))
	return err
}

// waitStored waits for the commit of the last messages.
func waitStored(ctx context.Context, pool *pgxpool.Pool, want int) error {
	return testbed.Until(ctx, time.Minute, func() error {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		return stored(ctx, conn.Conn(), "obs_feed_event", want)
	})
}

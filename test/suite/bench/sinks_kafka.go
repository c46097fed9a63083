package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/kafka"
	"github.com/observerd/observerd/test/kit/kafkatest"
)

// kafkaBatch is how many events are in a transaction: what the sink takes by itself.
var kafkaBatch = kafka.Kind.Settings().Batch()

// measureKafka publishes to a broker where one can be had, and to its fake, which is in this
// process, where none can.
func measureKafka(ctx context.Context, f *feed) (_ []figure, err error) {
	brokers, what, end, err := openBroker(ctx, f.suite)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	// Each delivery has a topic of its own.
	open := func(id string) opener {
		return func(ctx context.Context, t sink.Term) (sink.Sink, error) {
			o := kafka.Options{
				Sink: id, Brokers: brokers, Positions: "observerd-positions",
				Create: true, Partitions: 1, Replication: 1, Compression: "zstd",
			}
			if err := o.Topic.UnmarshalText([]byte(id)); err != nil {
				return nil, err
			}
			return kafka.Open(ctx, o, t)
		}
	}
	rates, err := f.inTurns(ctx, len(f.events), func(ctx context.Context, round int) (time.Duration, error) {
		id := fmt.Sprint("kafka-", round)
		return f.deliver(ctx, id, kafkaBatch, len(f.events), open(id))
	}, func(ctx context.Context, round int) (time.Duration, error) {
		return f.deliverAlone(ctx, kafkaBatch, open(fmt.Sprint("alone-", round)))
	}, func(ctx context.Context, round int) (time.Duration, error) {
		return produceBare(ctx, brokers, fmt.Sprint("bare-", round), f.events)
	})
	if err != nil {
		return nil, err
	}
	const bare = "a transaction a batch, through franz-go,"
	return []figure{
		rateFigure(fmt.Sprintf("kafka, %s, batches of %s", what, thousands(kafkaBatch)), bare, rates[0], rates[2], goalKafka),
		rateFigure("kafka without the log: its events are in memory", bare, rates[1], rates[2], 0),
	}, nil
}

// openBroker starts a broker. One that is real takes too long for a quick look.
func openBroker(ctx context.Context, s *suite) (brokers []string, what string, end func() error, err error) {
	if !s.quick {
		server, err := kafkatest.Open(ctx)
		if err == nil {
			return []string{server.Address()}, "one broker", server.Close, nil
		}
		s.progress("sinks: no broker of Kafka, so a fake is used: %v", err)
	}
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		return nil, "", nil, err
	}
	return fake.ListenAddrs(), "a fake broker in this process", func() error { fake.Close(); return nil }, nil
}

// produceBare produces the events in transactions, with the keys, values and headers that the
// sink gives them.
func produceBare(ctx context.Context, brokers []string, topic string, all []events.Event) (took time.Duration, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.TransactionalID(topic), kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.MaxBufferedRecords(2*kafkaBatch))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, nil, topic); err != nil {
		return 0, err
	}
	var failed atomic.Pointer[error]
	promise := func(_ *kgo.Record, err error) {
		if err != nil {
			failed.Store(&err)
		}
	}
	began := time.Now()
	for batch := range slices.Chunk(all, kafkaBatch) {
		if err := client.BeginTransaction(); err != nil {
			return 0, err
		}
		for i := range batch {
			client.Produce(ctx, &kgo.Record{Topic: topic, Key: []byte(batch[i].Subject), Value: batch[i].Data, Headers: bareHeaders(&batch[i])}, promise)
		}
		if err := client.Flush(ctx); err != nil {
			return 0, err
		}
		if err := failed.Load(); err != nil {
			return 0, *err
		}
		if err := client.EndTransaction(ctx, kgo.TryCommit); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// bareHeaders are the attributes of an event.
func bareHeaders(e *events.Event) []kgo.RecordHeader {
	const instant = "2006-01-02T15:04:05.000000Z"
	return []kgo.RecordHeader{
		{Key: "ce_specversion", Value: []byte("1.0")},
		{Key: "ce_id", Value: []byte(e.ID.String())},
		{Key: "ce_source", Value: []byte("/observerd/" + e.Stream)},
		{Key: "ce_type", Value: []byte(e.Type)},
		{Key: "ce_subject", Value: []byte(e.Subject)},
		{Key: "ce_time", Value: e.Time.UTC().AppendFormat(nil, instant)},
		{Key: "ce_observedtime", Value: e.Observed.UTC().AppendFormat(nil, instant)},
		{Key: "ce_sequence", Value: fmt.Appendf(nil, "%020d", e.Seq)},
		{Key: "ce_rowversion", Value: strconv.AppendInt(nil, e.Version, 10)},
		{Key: "ce_change", Value: []byte(e.Change)},
		{Key: "content-type", Value: []byte("application/json")},
	}
}

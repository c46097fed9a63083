// Package kafka stores events in topics of Kafka, each once for consumers that read
// committed.
//
// A batch is one transaction: the events, and for each of their streams a record
// SINK/STREAM → position in the topic of positions, which is compacted. The transactional
// id is observerd-SINK. A term begins with InitProducerID, which aborts what a former term
// has not committed and refuses what it sends from then on; with a transaction that writes
// a mark behind everything that was committed; and with a read of the positions up to that
// mark. So what the sink says of its positions is whole.
//
// After any error the sink aborts its transaction, and is of no more use: the next one that
// is opened reads what has become of it.
package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/wait"
)

const (
	// transactionTimeout is when a broker aborts what nobody ends. It is longer than a relay
	// waits for a batch, and readers of the topics wait as long.
	transactionTimeout = time.Minute
	// abortTimeout bounds the abort of a transaction whose context has ended.
	abortTimeout = 5 * time.Second
	// attempts are how often a broker may refuse a record for a reason that passes, such as
	// an election, or a topic that was just made: at leastPace for six seconds. Then the
	// reason is the error.
	attempts = 60
	// believed is less than the minute after which a relay asks again for all positions.
	believed = 50 * time.Second
	// leastPace is between looks for the leaders of topics, such as those that were just made.
	leastPace = 100 * time.Millisecond
)

// Options configure a sink.
type Options struct {
	// Sink is the id of the sink. Required.
	Sink string
	// Brokers are HOST:PORT of some brokers. Required.
	Brokers []string
	// Topic makes the topic of {{.Stream}}. Required.
	Topic field.Template
	// Positions is the topic of positions. Required.
	Positions string
	// Create makes topics that are missing, with so many partitions and replicas; -1 leaves
	// them to the broker.
	Create      bool
	Partitions  int32
	Replication int16
	// Compression is none, gzip, snappy, lz4 or zstd. Required.
	Compression string
	// Structured writes an event as one JSON object; else its attributes are headers.
	Structured bool
	// TLS is nil for plaintext.
	TLS *tls.Config
	// SASL is nil where brokers want no user.
	SASL sasl.Mechanism

	dial func(ctx context.Context, network, address string) (net.Conn, error) // nil: the system's
}

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// Sink is a [sink.Sink] and a [sink.Resumer] of one term.
type Sink struct {
	opts   Options
	term   sink.Term
	client *kgo.Client
	dials  dials
	topics topics
	// held are the positions, by stream, that this term has read, lastly at readAt, or written.
	held   map[string]events.Position
	readAt time.Time
	// odd are the errors of the positions that cannot be read, by stream.
	odd map[string]error
	// broken is the error after which nothing can be said of the transaction.
	broken error
}

// Open begins a term: it fences the producer of the one before.
func Open(ctx context.Context, o Options, t sink.Term) (_ *Sink, err error) {
	s := &Sink{opts: o, term: t, topics: topics{limits: make(map[string]int)}, held: make(map[string]events.Position)}
	s.client, err = o.client(
		kgo.TransactionalID(o.transactionalID()), kgo.TransactionTimeout(transactionTimeout), kgo.RecordRetries(attempts), kgo.UnknownTopicRetries(attempts),
		kgo.RecordPartitioner(partitioner(o.Positions)), kgo.ProducerBatchCompression(codecs[o.Compression]),
		kgo.MaxBufferedRecords(1<<30), kgo.ProducerBatchMaxBytesFn(s.topics.limit), kgo.WithHooks(&s.dials),
	)
	if err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		s.client.Close()
		return nil, s.explained(ctx, "begin a term", err)
	}
	return s, nil
}

// client returns a client of the brokers, which connects when it is used.
func (o Options) client(more ...kgo.Opt) (*kgo.Client, error) {
	// From this version on, of Kafka 2.5, the request can name a producer.
	var least kversion.Versions
	least.SetMaxKeyVersion(int16(kmsg.InitProducerID), 3)
	opts := append([]kgo.Opt{kgo.SeedBrokers(o.Brokers...), kgo.ClientID("observerd"), kgo.MinVersions(&least), kgo.DisableClientMetrics(), kgo.MetadataMinAge(leastPace)}, more...)
	if o.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(o.TLS))
	}
	if o.SASL != nil {
		opts = append(opts, kgo.SASL(o.SASL))
	}
	if o.dial != nil {
		opts = append(opts, kgo.Dialer(o.dial))
	}
	return kgo.NewClient(opts...)
}

func (o Options) transactionalID() string { return "observerd-" + o.Sink }

// partitioner has the positions in one partition, whose order is that of the commits, and
// events, which all have keys, where Java's producer has them.
func partitioner(positions string) kgo.Partitioner {
	java := kgo.StickyKeyPartitioner(nil)
	return kgo.BasicConsistentPartitioner(func(topic string) func(*kgo.Record, int) int {
		if topic == positions {
			return func(*kgo.Record, int) int { return 0 }
		}
		return java.ForTopic(topic).Partition
	})
}

// dials remembers why the last connection was not made: the client tries again for as long
// as it may, and then says no more than that. It is a [kgo.HookBrokerConnect].
type dials struct{ err atomic.Pointer[error] }

func (d *dials) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	d.err.Store(&err)
}

func (d *dials) last() error {
	if err := d.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *Sink) begin(ctx context.Context) error {
	if err := s.client.Ping(ctx); err != nil {
		return err
	}
	if err := s.ensure(ctx, s.opts.Positions); err != nil {
		return err
	}
	id, _, err := s.client.ProducerID(ctx)
	if err == nil && id < 0 {
		err = errors.New("the brokers are older than Kafka 2.5, and cannot keep a transaction of another producer apart; upgrade them")
	}
	return err
}

// Close implements [sink.Sink].
func (s *Sink) Close() error {
	s.client.Close()
	return nil
}

// Deliver implements [sink.Sink].
func (s *Sink) Deliver(ctx context.Context, batch []events.Event) (sink.Result, error) {
	return s.store(ctx, batch, true)
}

// Redeliver implements [sink.Resumer].
func (s *Sink) Redeliver(ctx context.Context, batch []events.Event) (sink.Result, error) {
	return s.store(ctx, batch, false)
}

func (s *Sink) store(ctx context.Context, batch []events.Event, moves bool) (sink.Result, error) {
	if ctx.Err() != nil {
		return sink.Result{}, context.Cause(ctx)
	}
	topic, err := s.topicsOf(ctx, batch)
	if err != nil {
		return sink.Result{}, s.explained(ctx, "look at the topics", err)
	}
	taken, records, rejected := s.fitting(batch, topic)
	if err := s.outgrown(ctx, rejected, topic); err != nil {
		return sink.Result{}, s.explained(ctx, "look at the topics", err)
	}
	result := sink.Result{Stored: events.Ends(taken, s.term.Log, s.held), Rejected: rejected}
	err = s.transact(ctx, func(produce func(*kgo.Record)) {
		for _, r := range records {
			produce(r)
		}
		for _, end := range result.Stored {
			if moves {
				produce(s.positionRecord(end))
			}
		}
	})
	if err != nil {
		return sink.Result{}, err
	}
	for _, end := range result.Stored {
		if moves {
			s.held[end.Stream] = end
		}
	}
	return result, nil
}

// transact stores all of the records that are produced, or none.
func (s *Sink) transact(ctx context.Context, records func(produce func(*kgo.Record))) error {
	if s.broken != nil {
		return s.broken
	}
	if s.broken = s.attempt(ctx, records); s.broken != nil {
		s.abort(ctx)
	}
	return s.broken
}

func (s *Sink) attempt(ctx context.Context, records func(produce func(*kgo.Record))) error {
	if err := s.client.BeginTransaction(); err != nil {
		return s.explained(ctx, "begin a transaction", err)
	}
	// The first failure ends the wait for the others.
	flush, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	promise := func(r *kgo.Record, err error) {
		if err != nil {
			fail(s.explained(ctx, "write to the topic "+r.Topic, err))
		}
	}
	last := make(map[string]*kgo.Record) // of each topic
	records(func(r *kgo.Record) {
		last[r.Topic] = r
		s.client.Produce(flush, r, promise)
	})
	_ = s.client.Flush(flush) // Its error is of flush, whose cause says more.
	switch err := context.Cause(flush); {
	case ctx.Err() != nil:
		return s.explained(ctx, "write a transaction", context.Cause(ctx))
	case err != nil:
		return err
	}
	if err := s.learn(ctx, last); err != nil {
		return s.explained(ctx, "learn the partitions of topics", err)
	}
	if err := s.client.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return s.explained(ctx, "commit a transaction", err)
	}
	return nil
}

// learn waits until the client knows the partitions of the topics of written records. Of a
// topic that it meets for the first time it sends records a moment before it stores the
// partitions. EndTransaction in that moment counts no record of the topic: if there are no
// others it aborts, without an error (kgo 1.22).
func (s *Sink) learn(ctx context.Context, written map[string]*kgo.Record) error {
	for _, r := range written {
		for {
			if leader, _, _ := s.client.PartitionLeader(r.Topic, r.Partition); leader >= 0 {
				break
			}
			if !wait.For(ctx, time.Millisecond) {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// abort has the broker abort what was sent, so that consumers need not wait for it, and
// refuse what is still under way. It asks for another epoch of the very producer: one that
// was fenced gets none, and the later one is left alone. What is said to it does not matter:
// the next term begins with the same.
func (s *Sink) abort(ctx context.Context) {
	if isFenced(s.broken) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	id, epoch, err := s.client.ProducerID(ctx)
	if id < 0 || err != nil && ctx.Err() != nil {
		return
	}
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = kmsg.StringPtr(s.opts.transactionalID()), int32(transactionTimeout.Milliseconds())
	req.ProducerID, req.ProducerEpoch = id, epoch
	_, _ = req.RequestWith(ctx, s.client)
}

// explained words an error of Kafka: what failed and where, why, and what to do.
func (s *Sink) explained(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = context.Cause(ctx)
	}
	if last := s.dials.last(); last != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w; the last connection to a broker failed: %w", err, last)
	}
	return explained(fmt.Sprintf("%s of Kafka at %s", what, strings.Join(s.opts.Brokers, ", ")), err)
}

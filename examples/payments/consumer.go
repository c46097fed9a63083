package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/observerd/observerd/guard"
)

const (
	// batch is how many records are delivered again, at most, after a process has died. Those
	// that it had processed are repeats, which the guard knows.
	batch = 100
	// pause is how long a record that was not processed waits for the next attempt.
	pause = time.Second
	// deadLetters ends the name of their topic.
	deadLetters = "-dead"
	// answer bounds a request to Kafka.
	answer = 10 * time.Second
	// attempt bounds one at a record, so that with its dead letter it is less than the minute
	// for which Kafka waits until it gives the partitions to others.
	attempt = 40 * time.Second
)

// consumer processes the records of its partitions, those of one partition in order. Its offsets
// are committed after the guard has committed.
type consumer struct {
	client *kgo.Client
	guard  *guard.Guard
	pay    func(ctx context.Context, tx guard.Tx, o order) error
	topic  string
	log    *slog.Logger
	// hurried says that another waits for one of the partitions.
	hurried atomic.Bool
}

func newConsumer(c config, once *guard.Guard, log *slog.Logger) (_ *consumer, err error) {
	k := &consumer{guard: once, pay: (&payer{node: c.node, gateway: c.gateway}).pay, topic: c.topic, log: log}
	k.client, err = kgo.NewClient(
		kgo.SeedBrokers(strings.Split(c.brokers, ",")...), kgo.ConsumerGroup(c.group), kgo.ConsumeTopics(c.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.SessionTimeout(c.session), kgo.HeartbeatInterval(c.session/10),
		kgo.AllowIdempotentProduceCancellation(), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.OnPartitionsCallbackBlocked(k.hurry),
	)
	return k, err
}

// hurry is called when Kafka wants to give a partition to another, which waits for the batch. So
// no record is begun any more.
func (c *consumer) hurry(context.Context, *kgo.Client) { c.hurried.Store(true) }

// leave leaves the group, so that others have the partitions at once. A join that has begun ends
// before that, which may take as long as others process their records: it is not waited for so long.
func (c *consumer) leave(ctx context.Context) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), answer)
	defer cancel()
	if err := c.client.LeaveGroupContext(limited); err != nil {
		c.log.Warn("Group not left; others have the partitions when the session ends", "err", err)
		return
	}
	c.client.Close()
}

// run processes records until ctx ends. What it has begun then is finished.
func (c *consumer) run(ctx context.Context) {
	for ctx.Err() == nil {
		fetches := c.client.PollRecords(ctx, batch)
		fetches.EachError(func(topic string, partition int32, err error) {
			if ctx.Err() == nil {
				c.log.Warn("Records not fetched", "topic", topic, "partition", partition, "err", err)
			}
		})
		all := c.process(ctx, fetches)
		c.hurried.Store(false)
		c.client.AllowRebalance()
		if !all || fetches.Err() != nil {
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
}

// process processes a batch, its partitions side by side. Records that are left are delivered
// again: they are fetched anew, by this process or the next owner of their partition.
func (c *consumer) process(ctx context.Context, fetches kgo.Fetches) (all bool) {
	var (
		wait sync.WaitGroup
		mu   sync.Mutex
		done []*kgo.Record
		left = make(map[string]map[int32]kgo.EpochOffset)
	)
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		wait.Go(func() {
			n := c.inOrder(ctx, p.Records)
			mu.Lock()
			defer mu.Unlock()
			if n > 0 {
				done = append(done, p.Records[n-1])
			}
			if n < len(p.Records) {
				if left[p.Topic] == nil {
					left[p.Topic] = make(map[int32]kgo.EpochOffset)
				}
				left[p.Topic][p.Partition] = kgo.EpochOffset{Epoch: p.Records[n].LeaderEpoch, Offset: p.Records[n].Offset}
			}
		})
	})
	wait.Wait()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), answer)
	defer cancel()
	if err := c.client.CommitRecords(limited, done...); err != nil {
		c.log.Warn("Offsets not committed; the records are delivered again, as repeats", "err", err)
	}
	if len(left) > 0 {
		c.client.SetOffsets(left)
	}
	return len(left) == 0
}

// inOrder processes records until one fails, or there is no time for more, and returns how many it has processed.
func (c *consumer) inOrder(ctx context.Context, records []*kgo.Record) int {
	for i, r := range records {
		if ctx.Err() != nil || c.hurried.Load() {
			return i
		}
		err := c.processOne(context.WithoutCancel(ctx), r)
		if isDead(err) {
			why := err
			if err = c.bury(ctx, r); err == nil {
				c.log.Error("Record moved to the dead letters", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "err", why)
			}
		}
		if err != nil {
			c.log.Warn("Record not processed; it is delivered again", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "err", err)
			return i
		}
	}
	return len(records)
}

func (c *consumer) processOne(ctx context.Context, r *kgo.Record) error {
	o, err := decode(r.Value)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	_, err = c.guard.Do(ctx, o.Subject, o.ID, func(ctx context.Context, tx guard.Tx) error { return c.pay(ctx, tx, o) })
	return err
}

// isDead reports whether no further attempt can help, or must be made.
func isDead(err error) bool {
	_, ofInput := errors.AsType[*guard.InputError](err)
	_, ofPanic := errors.AsType[*guard.PanicError](err)
	return ofInput || ofPanic || errors.Is(err, guard.ErrPermanent) || errors.Is(err, guard.ErrTxEnded)
}

// bury writes a record to the dead letters, from which a person may send it again.
func (c *consumer) bury(ctx context.Context, r *kgo.Record) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answer)
	defer cancel()
	return c.client.ProduceSync(ctx, &kgo.Record{Topic: c.topic + deadLetters, Key: r.Key, Value: r.Value, Headers: r.Headers}).FirstErr()
}

// Kafka-consumer reads the events that observerd has delivered to topics of Kafka, and writes a
// line for each. It is an example, to be copied; README.md says how to run it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	brokers := flag.String("brokers", "127.0.0.1:9092", "brokers of Kafka, separated by commas")
	topics := flag.String("topics", "orders", "topics, separated by commas")
	group := flag.String("group", "kafka-consumer", "consumer group, which shares the partitions and keeps the offsets")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := consume(ctx, strings.Split(*brokers, ","), strings.Split(*topics, ","), *group, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kafka-consumer:", err)
		os.Exit(1)
	}
}

// consume handles events until ctx ends.
func consume(ctx context.Context, brokers, topics []string, group string, out io.Writer) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topics...), kgo.ConsumerGroup(group),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), // Else it sees batches that were aborted.
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), // An offset is committed when its event was handled.
	)
	if err != nil {
		return err
	}
	defer leave(ctx, client)
	for {
		fetched := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetched.Err(); err != nil {
			return fmt.Errorf("read: %w", err)
		}
		for _, r := range fetched.Records() {
			if err := handle(r, out); err != nil {
				return fmt.Errorf("topic %s, partition %d, offset %d: %w", r.Topic, r.Partition, r.Offset, err)
			}
		}
		if err := commit(ctx, client); err != nil {
			return fmt.Errorf("commit offsets: %w", err)
		}
		client.AllowRebalance()
	}
}

// commit takes its time when ctx ends: what was handled is not to be read again.
func commit(ctx context.Context, client *kgo.Client) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return client.CommitUncommittedOffsets(ctx)
}

// leave leaves the group, so that others have the partitions at once. A join that has begun ends
// before that, which may take as long as others handle their records: it is not waited for so long.
func leave(ctx context.Context, client *kgo.Client) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	client.AllowRebalance()
	if client.LeaveGroupContext(ctx) == nil {
		client.Close()
	}
}

// handle does what there is to do for an event. A process that dies between this and the commit of
// the offset gets the event again: remember the id where the effect is stored.
func handle(r *kgo.Record, out io.Writer) error {
	attributes := make(map[string]string)
	for _, h := range r.Headers {
		attributes[h.Key] = string(h.Value)
	}
	if attributes["ce_specversion"] != "1.0" {
		return errors.New("this is no CloudEvent in the binary mode")
	}
	_, err := fmt.Fprintln(out, attributes["ce_id"], attributes["ce_type"], attributes["ce_change"], string(r.Key), string(r.Value))
	return err
}

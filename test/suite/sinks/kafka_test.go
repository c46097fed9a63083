package sinks_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/kafka"
	"github.com/observerd/observerd/internal/sink/sinktest"
	"github.com/observerd/observerd/test/kit/kafkatest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(m) }

const positions = "observerd-positions"

func fake(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func template(t *testing.T, text string) (topic field.Template) {
	t.Helper()
	if err := topic.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return topic
}

func options(t *testing.T, c *kfake.Cluster) kafka.Options {
	t.Helper()
	return kafka.Options{
		Sink: "bus", Brokers: c.ListenAddrs(), Topic: template(t, "events"), Positions: positions,
		Create: true, Partitions: 3, Replication: 1, Compression: "zstd",
	}
}

func stored(ctx context.Context, c *kfake.Cluster, topic string) (found []events.Event, err error) {
	records, err := kafkatest.Consume(ctx, c.ListenAddrs(), topic)
	for _, r := range records {
		e, err := kafkatest.Decode(r)
		if err != nil {
			return nil, err
		}
		if string(r.Key) != e.Subject {
			return nil, fmt.Errorf("the key of event %d is not its subject", e.Seq)
		}
		found = append(found, e)
	}
	return found, err
}

// TestContract tells the stories with faults of the broker: one that has stored a half of a
// batch, and one whose answer to a commit is lost.
func TestContract(t *testing.T) {
	t.Parallel()
	for name, tear := range map[string]kfake.Fault{
		"half of a batch is refused": {Keys: []kmsg.Key{kmsg.Produce}, Topic: positions, Err: kerr.InvalidRecord},
		"an answer is lost":          {Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.RequestTimedOut},
		"a commit is refused":        {Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.UnknownServerError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sinktest.Run(t, func(t *testing.T) sinktest.Harness {
				return harness(t, tear, strings.HasPrefix(name, "half"))
			})
		})
	}
}

func harness(t *testing.T, tear kfake.Fault, structured bool) sinktest.Harness {
	c := fake(t, kfake.NumBrokers(3)) // Leaders and coordinators are apart.
	if err := c.CreateTopic("events", 1, nil); err != nil {
		t.Fatal(err)
	}
	o := options(t, c)
	o.Structured = structured
	return sinktest.Harness{
		Open:   func(ctx context.Context, term sink.Term) (sink.Sink, error) { return kafka.Open(ctx, o, term) },
		Stored: func() ([]events.Event, error) { return stored(t.Context(), c, "events") },
		Tear:   func() { c.Fault(tear) },
		Refuse: func() (allow func()) {
			return c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.TopicAuthorizationFailed, Count: -1}).Remove
		},
		Stall:   func() (resume func()) { return stall(c) },
		Poison:  func(e *events.Event) { e.Data = make([]byte, 2<<20) },
		Resumes: true, Repeats: true,
	}
}

// stall has the broker answer no request of a producer.
func stall(c *kfake.Cluster) (resume func()) {
	done := make(chan struct{})
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		select {
		case <-done:
			c.DropControl()
		default:
			c.KeepControl()
			c.SleepControl(func() { <-done })
		}
		return nil, nil, false
	})
	return func() { close(done) }
}

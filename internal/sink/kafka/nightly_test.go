//go:build nightly

package kafka_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/kafka"
	"github.com/observerd/observerd/internal/sink/sinktest"
	"github.com/observerd/observerd/test/kit/kafkatest"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/waittest"
)

func options(t *testing.T, s *kafkatest.Server, id string) kafka.Options {
	t.Helper()
	var topic field.Template
	if err := topic.UnmarshalText([]byte(id)); err != nil {
		t.Fatal(err)
	}
	return kafka.Options{
		Sink: id, Brokers: []string{s.Address()}, Topic: topic, Positions: "observerd-positions",
		Create: true, Partitions: 1, Replication: -1, Compression: "zstd",
	}
}

// hasty gives the next batch a second and a half once the network is torn, as a relay gives it
// half a minute. Then the network heals.
type hasty struct {
	*kafka.Sink
	torn  *atomic.Bool
	proxy *netfault.Proxy
	heal  func()
}

func (h hasty) Deliver(ctx context.Context, batch []events.Event) (sink.Result, error) {
	if h.torn.Swap(false) {
		brief, cancel := context.WithTimeout(ctx, 1500*time.Millisecond)
		defer cancel()
		context.AfterFunc(brief, func() {
			h.proxy.Inspect(nil)
			h.proxy.Refuse(false)
		})
		ctx = brief
		defer h.heal()
	}
	return h.Sink.Deliver(ctx, batch)
}

// TestContractOnKafka has a network between the sink and a real broker that breaks off before
// a request arrives, or before its answer does, for longer than a batch may take.
func TestContractOnKafka(t *testing.T) {
	t.Parallel()
	s := kafkatest.Start(t)
	var n atomic.Int64
	for name, tt := range map[string]struct {
		key     kmsg.Key
		arrives bool
	}{
		"events do not arrive":          {kmsg.Produce, false},
		"an answer to events is lost":   {kmsg.Produce, true},
		"a commit does not arrive":      {kmsg.EndTxn, false},
		"an answer to a commit is lost": {kmsg.EndTxn, true},
	} {
		t.Run(name, func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T) sinktest.Harness {
				proxy := netfault.Start(t, s.Address())
				id := fmt.Sprintf("bus-%d", n.Add(1))
				o := options(t, s, id)
				var torn atomic.Bool
				o.Dial(func(ctx context.Context, network, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, network, proxy.Addr())
				})
				return sinktest.Harness{
					Open: func(ctx context.Context, term sink.Term) (sink.Sink, error) {
						opened, err := kafka.Open(ctx, o, term)
						if err != nil {
							return nil, err
						}
						return hasty{opened, &torn, proxy, func() {
							if tt.key == kmsg.EndTxn && !tt.arrives {
								abort(t, s, id) // The sink could not: it was cut off.
							}
						}}, nil
					},
					Stored: func() ([]events.Event, error) {
						return stored(kafkatest.Consume(t.Context(), []string{s.Address()}, id))
					},
					Tear: func() {
						torn.Store(true)
						cut(proxy, tt.key, tt.arrives)
					},
					Refuse: func() (allow func()) {
						torn.Store(true)
						cut(proxy, kmsg.Produce, false)
						return func() {}
					},
					Stall: func() (resume func()) {
						proxy.SetImpairment(netfault.Impairment{Up: netfault.Stalled, Down: netfault.Stalled})
						return func() { proxy.SetImpairment(netfault.Impairment{}) }
					},
					Poison:  func(e *events.Event) { e.Data = make([]byte, 2<<20) },
					Resumes: true, Repeats: true,
				}
			})
		})
	}
}

// TestKilledBroker kills a broker again and again while a relay delivers. Kafka's own client
// finds each event once, and those of a key in order.
func TestKilledBroker(t *testing.T) {
	t.Parallel()
	s := kafkatest.Start(t)
	o := options(t, s, "killed")
	o.Partitions = 3
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var reached atomic.Int64
	kills := make(chan error, 1)
	go func() { kills <- killAt(ctx, s, &reached, 5_000, 15_000, 25_000) }()
	batch := sinktest.Batch("orders", 1, 40_000)
	for i := range batch {
		batch[i].Subject = fmt.Sprint("key ", i%97)
	}
	var failures int
	for epoch := int64(1); reached.Load() < int64(len(batch)); epoch++ {
		if err := relay(ctx, o, epoch, batch, &reached); err != nil {
			failures++
			t.Log(err)
			time.Sleep(250 * time.Millisecond) // As a relay does.
		}
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
	}
	if err := <-kills; err != nil {
		t.Fatal(err)
	}
	found, err := stored(s.Read(ctx, "killed"))
	if err != nil {
		t.Fatal(err)
	}
	seen, last := make(map[int64]bool), make(map[string]int64)
	for _, e := range found {
		if seen[e.Seq] || e.Seq <= last[e.Subject] {
			t.Fatalf("event %d is there twice, or out of order", e.Seq)
		}
		seen[e.Seq], last[e.Subject] = true, e.Seq
	}
	if len(seen) != len(batch) || failures == 0 {
		t.Errorf("%d of %d events, after %d failures", len(seen), len(batch), failures)
	}
}

// relay delivers from where the sink is, as a relay does in a term.
func relay(ctx context.Context, o kafka.Options, epoch int64, batch []events.Event, reached *atomic.Int64) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	s, err := kafka.Open(ctx, o, sink.Term{Epoch: epoch})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	at, err := s.Positions(ctx, []string{"orders"})
	if err != nil {
		return err
	}
	var seq int64
	if len(at) == 1 {
		seq = at[0].Seq
	}
	for reached.Store(seq); seq < int64(len(batch)); reached.Store(seq) {
		next := min(seq+500, int64(len(batch)))
		if _, err := s.Deliver(ctx, batch[seq:next]); err != nil {
			return err
		}
		seq = next
	}
	return nil
}

func killAt(ctx context.Context, s *kafkatest.Server, reached *atomic.Int64, at ...int64) error {
	for _, n := range at {
		err := waittest.Within(ctx, time.Minute, func() error {
			if reached.Load() < n {
				return errors.New("too early")
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := errors.Join(s.Stop(ctx, syscall.SIGKILL), s.Restart(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// cut ends all connections when the next request of the kind is sent, and takes no new ones.
func cut(proxy *netfault.Proxy, key kmsg.Key, arrives bool) {
	var done atomic.Bool
	proxy.Inspect(func(request []byte) netfault.Fault {
		if !isRequest(request, key) || done.Swap(true) {
			return netfault.Fault{}
		}
		if !arrives {
			proxy.Refuse(true)
			return netfault.Fault{}
		}
		time.AfterFunc(200*time.Millisecond, func() { proxy.Refuse(true) })
		return netfault.Fault{LoseAnswer: true}
	})
}

// abort ends the transaction of a sink, as the next term does.
func abort(t *testing.T, s *kafkatest.Server, sink string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Address()), kgo.TransactionalID("observerd-"+sink))
	if err != nil {
		t.Error(err)
		return
	}
	defer client.Close()
	if _, _, err := client.ProducerID(t.Context()); err != nil {
		t.Error(err)
	}
}

// isRequest reports whether a piece begins with a request of the kind.
func isRequest(piece []byte, key kmsg.Key) bool {
	return len(piece) > 8 && binary.BigEndian.Uint16(piece[4:]) == uint16(key)
}

func stored(records []*kgo.Record, err error) (found []events.Event, _ error) {
	for _, r := range records {
		e, wrong := kafkatest.Decode(r)
		err = errors.Join(err, wrong)
		found = append(found, e)
	}
	return found, err
}

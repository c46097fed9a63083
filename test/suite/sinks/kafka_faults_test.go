package sinks_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/kafka"
	"github.com/observerd/observerd/internal/sink/sinktest"
	"github.com/observerd/observerd/internal/wiring"
	"github.com/observerd/observerd/test/kit/kafkatest"
)

var theTerm = sink.Term{Log: uuid.UUID{15: 1}, Epoch: 1}

func open(t *testing.T, o kafka.Options) *kafka.Sink {
	t.Helper()
	s, err := kafka.Open(t.Context(), o, theTerm)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func deliver(t *testing.T, s *kafka.Sink, batch []events.Event) {
	t.Helper()
	if n, err := sinktest.Deliver(t.Context(), s, batch); n != len(batch) || err != nil {
		t.Fatalf("stored %d of %d events: %v", n, len(batch), err)
	}
}

func want(t *testing.T, c *kfake.Cluster, topic string, batch []events.Event) {
	t.Helper()
	found, err := stored(t.Context(), c, topic)
	if err != nil || sinktest.Lines(found) != sinktest.Lines(batch) {
		t.Errorf("topic %s has %d events, want %d: %v", topic, len(found), len(batch), err)
	}
}

// wantError checks that an error names its cause and what to do.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %v, want %q in it", err, part)
		}
	}
}

func TestTopicsAreMadeForStreams(t *testing.T) {
	t.Parallel()
	c := fake(t)
	o := options(t, c)
	o.Topic = template(t, "wms.{{.Stream}}")
	orders, stock := sinktest.Batch("orders", 1, 3), sinktest.Batch("stock", 1, 2)
	deliver(t, open(t, o), append(orders[:3:3], stock...))
	want(t, c, "wms.orders", orders)
	want(t, c, "wms.stock", stock)
	for topic, policy := range map[string]string{"wms.orders": "delete", positions: "compact"} {
		info := c.TopicInfo(topic)
		if got := info.Configs["cleanup.policy"]; got == nil && policy == "compact" || got != nil && *got != policy {
			t.Errorf("the policy of %s is %v, want %s", topic, got, policy)
		}
	}
	if n := len(c.PartitionInfos("wms.orders")); n != 3 {
		t.Errorf("the topic has %d partitions", n)
	}
}

func TestMissingTopicIsNotMadeWhereItMayNotBe(t *testing.T) {
	t.Parallel()
	c := fake(t)
	o := options(t, c)
	o.Create = false
	_, err := kafka.Open(t.Context(), o, theTerm)
	wantError(t, err, "topic observerd-positions", "UNKNOWN_TOPIC_OR_PARTITION", "create: true")
	if err := c.CreateTopic(positions, 1, map[string]string{"cleanup.policy": "delete"}); err != nil {
		t.Fatal(err)
	}
	_, err = kafka.Open(t.Context(), o, theTerm)
	wantError(t, err, "loses positions (cleanup.policy delete)", "cleanup.policy=compact")
}

// Events of one key are in one partition, in the order of their stream.
func TestKeysKeepTheirOrder(t *testing.T) {
	t.Parallel()
	c := fake(t)
	batch := sinktest.Batch("orders", 1, 300)
	for i := range batch {
		batch[i].Subject = fmt.Sprint("key ", i%17)
	}
	s := open(t, options(t, c))
	deliver(t, s, batch[:150])
	deliver(t, s, batch[150:])
	records, err := kafkatest.Consume(t.Context(), c.ListenAddrs(), "events")
	if err != nil || len(records) != len(batch) {
		t.Fatalf("%d records: %v", len(records), err)
	}
	partition, last := make(map[string]int32), make(map[string]int64)
	for _, r := range records {
		e, err := kafkatest.Decode(r)
		if at, known := partition[e.Subject]; err != nil || known && at != r.Partition || e.Seq <= last[e.Subject] {
			t.Fatalf("event %d is in partition %d behind %d in %d: %v", e.Seq, r.Partition, last[e.Subject], at, err)
		}
		partition[e.Subject], last[e.Subject] = r.Partition, e.Seq
	}
}

// An event is rejected when the client would refuse it, and not a byte before.
func TestLimitIsThatOfTheTopic(t *testing.T) {
	t.Parallel()
	c := fake(t)
	if err := c.CreateTopic("events", 1, map[string]string{"max.message.bytes": "2000"}); err != nil {
		t.Fatal(err)
	}
	s := open(t, options(t, c))
	var n, rejected int64
	for size := 1400; size < 2000 && rejected < 2; size++ {
		n++
		batch := sinktest.Batch("orders", n, n)
		batch[0].Data = []byte(`"` + strings.Repeat("x", size) + `"`)
		result, err := s.Deliver(t.Context(), batch)
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if len(result.Rejected) > 0 {
			rejected++
			wantError(t, errors.New(result.Rejected[0].Reason), "topic events takes 2000", "max.message.bytes")
		}
	}
	if found, err := stored(t.Context(), c, "events"); err != nil || int64(len(found)) != n-2 || rejected != 2 {
		t.Errorf("%d events of %d, %d rejected: %v", len(found), n, rejected, err)
	}
	many := sinktest.Batch("stock", 1, 100) // Together far above the limit.
	deliver(t, s, many)
}

// A stream that was halted goes on by itself once the limit was raised, in the next term: the
// client remembers limits.
func TestRaisedLimitIsNoticed(t *testing.T) {
	t.Parallel()
	c := fake(t)
	if err := c.CreateTopic("events", 1, map[string]string{"max.message.bytes": "2000"}); err != nil {
		t.Fatal(err)
	}
	batch := sinktest.Batch("orders", 1, 2)
	batch[1].Data = []byte(`"` + strings.Repeat("x", 3000) + `"`)
	s := open(t, options(t, c))
	if result, err := s.Deliver(t.Context(), batch); err != nil || len(result.Stored) != 1 || len(result.Rejected) != 1 {
		t.Fatalf("the result is %v: %v", result, err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	raise := kadm.AlterConfig{Op: kadm.SetConfig, Name: "max.message.bytes", Value: kadm.StringPtr("5000")}
	if _, err := kadm.NewClient(client).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{raise}, "events"); err != nil {
		t.Fatal(err)
	}
	if result, err := s.Deliver(t.Context(), batch[1:]); !errors.Is(err, sink.ErrExpired) {
		t.Fatalf("the result is %v: %v, want that the sink is opened anew", result, err)
	}
	deliver(t, open(t, options(t, c)), batch[1:])
	want(t, c, "events", batch)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(nil) // For its certificate.
	defer server.Close()
	c := fake(t, kfake.TLS(&tls.Config{Certificates: server.TLS.Certificates, MinVersion: tls.VersionTLS12}))
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	place := `brokers: ["` + c.ListenAddrs()[0] + `"], topic: events, create: true, replication: 1`
	probed(t, settings(t, place+", security: tls, tls: {ca-file: "+file+"}"))
	probed(t, settings(t, place+", security: tls"), "certificate")
	probed(t, settings(t, place), "check security and sasl")
}

func TestSinksDoNotSeeTheirPositions(t *testing.T) {
	t.Parallel()
	c := fake(t)
	o, other := options(t, c), options(t, c)
	other.Sink, other.Topic = "bus-2", template(t, "others")
	a, b := open(t, o), open(t, other)
	deliver(t, a, sinktest.Batch("orders", 1, 3))
	deliver(t, b, sinktest.Batch("2/orders", 1, 7))
	for s, n := range map[*kafka.Sink]int64{a: 3, b: 0} {
		found, err := s.Positions(t.Context(), []string{"orders", "orders"}[:1])
		if err != nil || n == 0 && len(found) > 0 || n > 0 && (len(found) != 1 || found[0].Seq != n || found[0].Log != theTerm.Log) {
			t.Errorf("the positions are %v: %v", found, err)
		}
	}
}

func TestPositionOfALaterVersionIsNotTakenForNone(t *testing.T) {
	t.Parallel()
	c := fake(t)
	s := open(t, options(t, c))
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	write := func(value []byte) {
		t.Helper()
		r := &kgo.Record{Topic: positions, Key: []byte("bus/orders"), Value: value}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte(`{"format":2}`))
	_, err = s.Positions(t.Context(), []string{"orders"})
	wantError(t, err, "stream orders", "upgrade observerd")
	deliver(t, s, sinktest.Batch("stock", 1, 2)) // Which is asked for alone.
	if found, err := s.Positions(t.Context(), []string{"stock"}); err != nil || len(found) != 1 {
		t.Errorf("the position of another stream is %v: %v", found, err)
	}
	write(nil)
	if found, err := open(t, options(t, c)).Positions(t.Context(), []string{"orders", "stock"}); err != nil || len(found) != 1 {
		t.Errorf("without a value the positions are %v: %v", found, err)
	}
}

// What was sent when the context ended holds up no reader, and nothing of it is read.
func TestBatchIsAbortedWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	c := fake(t)
	s := open(t, options(t, c))
	deliver(t, s, sinktest.Batch("orders", 1, 2))
	cause := errors.New("the lease is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	ends := kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: positions, Err: kerr.NotEnoughReplicas, Count: -1, When: func(kmsg.Request) bool {
		cancel(cause)
		return true
	}}
	handle := c.Fault(ends)
	if result, err := s.Deliver(ctx, sinktest.Batch("orders", 3, 4)); !errors.Is(err, cause) || len(result.Stored) > 0 {
		t.Errorf("stored %v: %v", result.Stored, err)
	}
	handle.Remove()
	brief, stop := context.WithTimeout(t.Context(), 30*time.Second) // The broker itself would abort it after a minute.
	defer stop()
	if found, err := stored(brief, c, "events"); err != nil || len(found) != 2 {
		t.Errorf("%d events: %v", len(found), err)
	}
}

// TestBrokersSayWhyTheyRefuse has a broker refuse a batch in ways that pass, and that do not.
func TestBrokersSayWhyTheyRefuse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key  kmsg.Key
		err  *kerr.Error
		want []string
	}{
		{kmsg.Produce, kerr.NotEnoughReplicas, []string{"topic events", "NOT_ENOUGH_REPLICAS", "min.insync.replicas"}},
		{kmsg.Produce, kerr.TopicAuthorizationFailed, []string{"topic events", "TOPIC_AUTHORIZATION_FAILED", "WRITE"}},
		{kmsg.Produce, kerr.InvalidProducerIDMapping, []string{"INVALID_PRODUCER_ID_MAPPING", "has expired"}},
		{kmsg.EndTxn, kerr.ProducerFenced, []string{"PRODUCER_FENCED", "another producer"}},
	} {
		t.Run(tt.err.Message, func(t *testing.T) {
			t.Parallel()
			c := fake(t)
			s := open(t, options(t, c))
			deliver(t, s, sinktest.Batch("orders", 1, 1))
			fault := kfake.Fault{Keys: []kmsg.Key{tt.key}, Err: tt.err, Count: -1}
			if tt.key == kmsg.Produce {
				fault.Topic = "events"
			}
			handle := c.Fault(fault)
			_, err := s.Deliver(t.Context(), sinktest.Batch("orders", 2, 2))
			wantError(t, err, append(tt.want, "Kafka at 127.0.0.1:")...)
			handle.Remove()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			next := open(t, options(t, c)) // As a relay does.
			deliver(t, next, sinktest.Batch("orders", 2, 2))
			want(t, c, "events", sinktest.Batch("orders", 1, 2))
		})
	}
}

func TestBrokerThatIsDownIsAnError(t *testing.T) {
	t.Parallel()
	c := fake(t)
	o := options(t, c)
	c.Close()
	_, err := kafka.Open(t.Context(), o, theTerm)
	wantError(t, err, "Kafka at 127.0.0.1:", "connection refused")
}

// settings reads a sink as the program does.
func settings(t *testing.T, text string) sink.Settings {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("sources: {}\nsinks:\n  - {id: bus, type: kafka, "+text+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Options{Kinds: wiring.Kinds(), Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Sinks[0].Settings.(sink.Settings)
}

// probed checks that the probe finds only what has one of these texts, a warning with a ? first.
func probed(t *testing.T, s kind.Settings, want ...string) {
	t.Helper()
	var texts []string
	for _, f := range s.Probe(t.Context()) {
		text := f.Err.Error()
		if f.Warning {
			text = "?" + text
		}
		texts = append(texts, text)
	}
	fits := len(texts) == len(want)
	for i := range min(len(texts), len(want)) {
		fits = fits && strings.HasPrefix(texts[i], "?") == strings.HasPrefix(want[i], "?") && strings.Contains(texts[i], strings.TrimPrefix(want[i], "?"))
	}
	if !fits || slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "secret") }) {
		t.Errorf("found %q, want %q", texts, want)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	c := fake(t, kfake.NumBrokers(3))
	brokers := `brokers: ["` + c.ListenAddrs()[0] + `"], `
	probed(t, settings(t, brokers+"topic: events, create: true, replication: 3"))
	probed(t, settings(t, brokers+"topic: events, create: false"), "topic observerd-positions", "topic events")
	safe := map[string]string{"min.insync.replicas": "2", "cleanup.policy": "compact"}
	if err := c.CreateTopic(positions, 1, safe); err != nil {
		t.Fatal(err)
	}
	probed(t, settings(t, brokers+"topic: 'events.{{.Stream}}', create: false"))
	poor := map[string]string{"min.insync.replicas": "1", "max.message.bytes": "5000"}
	if err := c.CreateTopic("events", 1, poor); err != nil {
		t.Fatal(err)
	}
	probed(t, settings(t, brokers+"topic: events, create: true"), "?min.insync.replicas 1", "?no message above 5000")
	probed(t, settings(t, brokers+"topic: t, positions-topic: events, create: true"), "loses positions", "?min.insync.replicas 1")
	infos := c.TopicInfo(positions)
	if ends := c.PartitionInfo(positions, 0).HighWatermark; infos == nil || ends != 0 {
		t.Errorf("the probes have written %d records", ends)
	}
	c.Close()
	probed(t, settings(t, brokers+"topic: events, create: true"), "answers")
}

func TestUsersAndTheirRights(t *testing.T) {
	t.Parallel()
	allow := func(resource kmsg.ACLResourceType, name string, operation kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: resource, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: operation, Allow: true}
	}
	topic, transaction := kmsg.ACLResourceTypeTopic, kmsg.ACLResourceTypeTransactionalId
	rights := []kfake.ACL{
		allow(topic, "events", kmsg.ACLOperationWrite), allow(topic, "events", kmsg.ACLOperationDescribeConfigs),
		allow(topic, positions, kmsg.ACLOperationWrite), allow(topic, positions, kmsg.ACLOperationRead), allow(topic, positions, kmsg.ACLOperationDescribeConfigs),
		allow(transaction, "observerd-bus", kmsg.ACLOperationWrite),
	}
	c := fake(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(1, "events"),
		kfake.User("SCRAM-SHA-256", "all", "secret", rights...), kfake.User("PLAIN", "plain", "secret", rights...),
		kfake.User("SCRAM-SHA-512", "half", "secret", rights[:1]...), kfake.User("SCRAM-SHA-256", "other", "secret", rights[:5]...))
	if err := c.CreateTopic(positions, 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}
	as := func(mechanism, user, password string) sink.Settings {
		return settings(t, fmt.Sprintf(`brokers: [%q], topic: events, create: false, sasl: {mechanism: %s, user: %s, password: %s}`, c.ListenAddrs()[0], mechanism, user, password))
	}
	begin := func(s sink.Settings) error {
		opened, err := s.Opener(sink.Options{Sink: "bus", Logger: slog.New(slog.DiscardHandler)})(t.Context(), theTerm)
		if err != nil {
			return err
		}
		defer opened.Close()
		_, err = opened.(sink.Resumer).Positions(t.Context(), []string{"orders"})
		if err == nil {
			_, err = opened.Deliver(t.Context(), sinktest.Batch("orders", 1, 1))
		}
		return err
	}
	for _, s := range []sink.Settings{as("scram-sha-256", "all", "secret"), as("plain", "plain", "secret")} {
		if err := begin(s); err != nil {
			t.Error(err)
		}
	}
	probed(t, as("scram-sha-512", "half", "secret"), "topic observerd-positions: TOPIC_AUTHORIZATION_FAILED", "?one replica", "?settings of topic events cannot be seen")
	wantError(t, begin(as("scram-sha-512", "half", "secret")), "observerd-positions", "READ too")
	wantError(t, begin(as("scram-sha-256", "other", "secret")), "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "observerd-SINK")
	wantError(t, begin(as("scram-sha-256", "all", "wrong")), "check security and sasl")
	probed(t, as("scram-sha-256", "all", "wrong"), "check security and sasl")
}

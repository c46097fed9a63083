package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/sinktest"
)

// Keys have the partitions that Java's producer gives them: the hashes are those of
// UtilsTest.testMurmur2 of Kafka, made positive.
func TestKeysHaveThePartitionsOfJava(t *testing.T) {
	t.Parallel()
	const partitions = 1000
	of := partitioner("positions")
	for key, hash := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string": -1486304829, "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, "abc": 479470107,
	} {
		r := &kgo.Record{Key: []byte(key)}
		if got, want := of.ForTopic("orders").Partition(r, partitions), int(hash&0x7fffffff)%partitions; got != want {
			t.Errorf("%s is in partition %d, want %d", key, got, want)
		}
		if got := of.ForTopic("positions").Partition(r, partitions); got != 0 {
			t.Errorf("the position %s is in partition %d", key, got)
		}
	}
	if r := record(&events.Event{}, "orders", false); r.Key == nil || r.Value == nil {
		t.Error("an event without a subject has no order, or one without data is a tombstone")
	}
}

// The size that an event is measured by is never below that of the client, which would fail
// the whole batch.
func TestSizeIsThatOfTheClient(t *testing.T) {
	t.Parallel()
	e := sinktest.Batch("orders", 1, 1)[0]
	for _, n := range []int{0, 1, 63, 64, 8191, 8192, 1 << 20} {
		e.Data = make([]byte, n)
		for _, structured := range []bool{true, false} {
			r := record(&e, "orders", structured)
			if size, least := sizeOf(r), batchOverhead+len(r.Key)+len(r.Value); size < least || size > least+1000 {
				t.Errorf("%d bytes are %d", least, size)
			}
		}
	}
}

type report map[string]string

func (r report) Reject(key, text string) { r[key] = text }
func (r report) Warn(key, text string)   { r[key] = "?" + text }

func sound(t *testing.T) *settings {
	t.Helper()
	s := &settings{Brokers: []string{"b:9092", "a:9092"}, PositionsTopic: "positions", Replication: -1, Security: "plaintext"}
	setTopic(t, s, "orders.{{.Stream}}")
	return s
}

func setTopic(t *testing.T, s *settings, text string) {
	t.Helper()
	if err := s.Topic.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(s *settings)
		want   map[string]string
	}{
		"sound":                   {func(*settings) {}, nil},
		"a broker without port":   {func(s *settings) { s.Brokers[1] = "a" }, map[string]string{"brokers": `"a" is not HOST:PORT`}},
		"an illegal topic":        {func(s *settings) { setTopic(t, s, "orders/{{.Stream}}") }, map[string]string{"topic": "not a valid name of a topic"}},
		"a field that is unknown": {func(s *settings) { setTopic(t, s, "{{.Subject}}") }, map[string]string{"topic": "it knows {{.Stream}} alone"}},
		"the topic of positions":  {func(s *settings) { setTopic(t, s, "positions") }, map[string]string{"topic": "topic of positions"}},
		"illegal positions":       {func(s *settings) { s.PositionsTopic = ".." }, map[string]string{"positions-topic": "not a valid name of a topic"}},
		"no replica":              {func(s *settings) { s.Replication = 0 }, map[string]string{"replication": "at least one"}},
		"tls that is not used":    {func(s *settings) { s.TLS = field.TLS{CAFile: "x"} }, map[string]string{"tls": "security: tls"}},
		"a user of no mechanism":  {func(s *settings) { s.SASL.User = "u" }, map[string]string{"sasl.mechanism": "scram-sha-512"}},
		"a mechanism of no user":  {func(s *settings) { s.SASL.Mechanism = "plain" }, map[string]string{"sasl.user": "needs user"}},
		"a password in the clear": {func(s *settings) {
			s.SASL = saslSettings{Mechanism: "plain", User: "u", Password: field.NewSecret("p")}
		}, map[string]string{"security": "?plain sends the password in the clear"}},
	} {
		s, r := sound(t), report{}
		tt.change(s)
		s.Check(r)
		if !slices.Equal(slices.Sorted(maps.Keys(r)), slices.Sorted(maps.Keys(tt.want))) {
			t.Errorf("%s: %v, want %v", name, r, tt.want)
		}
		for key, text := range tt.want {
			if !strings.Contains(r[key], text) {
				t.Errorf("%s: %q, want %q", name, r[key], text)
			}
		}
	}
}

func TestSinksOfOneTopicHaveOnePlace(t *testing.T) {
	t.Parallel()
	a, b, c := sound(t), sound(t), sound(t)
	slices.Reverse(b.Brokers)
	setTopic(t, c, "stock")
	_, first := a.Target()
	if _, same := b.Target(); same != first {
		t.Errorf("%q and %q", first, same)
	}
	if _, other := c.Target(); other == first {
		t.Error("another topic is the same place")
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for err, advice := range advice {
		if got := explained("write", fmt.Errorf("attempt: %w", err)); !errors.Is(got, err) || !strings.HasSuffix(got.Error(), advice) {
			t.Errorf("%v", got)
		}
	}
	var stale *sink.StaleError
	for _, err := range []error{kerr.ProducerFenced, kerr.InvalidProducerEpoch} {
		if got := explained("write", err); !errors.As(got, &stale) || stale.Epoch != 0 || strings.Contains(got.Error(), "epoch 0") {
			t.Errorf("%v", got)
		}
	}
	if got := explained("write", context.Canceled); errors.As(got, &stale) {
		t.Error("a sink that gave up is called a stale one")
	}
}

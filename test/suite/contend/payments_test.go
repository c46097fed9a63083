package contend_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // The driver "pgx".
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/observerd/observerd/examples/payments/gateway"
	"github.com/observerd/observerd/guard"
	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/redistest"
	"github.com/observerd/observerd/test/kit/testbed"
	"github.com/observerd/observerd/test/kit/waittest"
)

const (
	consumerLease  = 2 * time.Second
	consumerWait   = time.Second
	someOrders     = 240
	somePartitions = 3
)

// shop is what consumers of examples/payments work with: orders in Kafka, Redis, a database and
// a gateway, whose requests may be held.
type shop struct {
	binary, brokers, database string
	redis                     *redistest.Server
	gateway                   *gateway.Gateway
	server                    *httptest.Server
	kafka                     *kadm.Client

	mu sync.Mutex
	// during is called once, in the next payment, with the name of the consumer.
	during func(consumer string)
	// said is what consumers have logged.
	said bytes.Buffer
}

// fakeBroker is Kafka without the JVM.
func fakeBroker(t *testing.T) (address string) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()[0]
}

func buildPayments(t *testing.T) (binary string) {
	binary = filepath.Join(t.TempDir(), "payments")
	if err := daemon.Build(t.Context(), daemon.BuildOptions{Package: "github.com/observerd/observerd/examples/payments", Out: binary}); err != nil {
		t.Fatal(err)
	}
	return binary
}

func openShop(t *testing.T, binary, broker string) *shop {
	s := &shop{binary: binary, brokers: broker, database: pgtest.New(t), redis: redistest.Start(t), gateway: &gateway.Gateway{}}
	s.server = httptest.NewServer(http.HandlerFunc(s.charge))
	t.Cleanup(s.server.Close)
	schema, err := exec.CommandContext(t.Context(), binary, "schema").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := pgtest.Execute(t.Context(), s.database, string(schema)); err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s.kafka = kadm.NewClient(client)
	return s
}

// topic makes a topic of orders, and one of its dead letters.
func (s *shop) topic(t *testing.T, name string, partitions int32) {
	t.Helper()
	if _, err := s.kafka.CreateTopics(t.Context(), partitions, 1, nil, name, name+"-dead"); err != nil {
		t.Fatal(err)
	}
}

// order orders. Each, or all but each third one, is there so many times, on partitions side by
// side, as after producers that tried again.
func (s *shop) order(t *testing.T, name string, partitions int32, orders, times int, all bool) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.brokers), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(name))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var failed kgo.FirstErrPromise
	for n := range orders {
		copies := times
		if !all && n%3 == 0 {
			copies = 1
		}
		for again := range copies {
			client.Produce(t.Context(), &kgo.Record{Partition: int32(n+again) % partitions, Value: event(n, "129.90")}, failed.Promise()) //nolint:gosec // It is small.
		}
	}
	for i, value := range [][]byte{[]byte("no JSON"), event(orders, "-1"), []byte(`{"id":"a","subject":""}`)} {
		client.Produce(t.Context(), &kgo.Record{Partition: int32(i), Value: value}, failed.Promise()) //nolint:gosec // It is small.
	}
	if err := errors.Join(client.Flush(t.Context()), failed.Err()); err != nil {
		t.Fatal(err)
	}
}

func event(order int, total string) []byte {
	return fmt.Appendf(nil, `{"specversion":"1.0","id":"event-%[1]d","subject":"%[1]d","change":"new","data":{"order_id":%[1]d,"total":%[2]s}}`, order, total)
}

// consumers lets consumers of the topic run until the test ends.
func (s *shop) consumers(t *testing.T, topic string, names ...string) *crew {
	return launch(t, func(name string) *exec.Cmd {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), s.binary, //nolint:gosec // The test has built it.
			"-node", name, "-brokers", s.brokers, "-topic", topic, "-gateway", s.server.URL, "-listen", "127.0.0.1:0",
			"-lease", consumerLease.String(), "-wait", consumerWait.String(), "-session", "3s", "consume")
		cmd.Env = append(os.Environ(), "DATABASE_URL="+s.database, "REDIS_URL="+s.redis.URL())
		cmd.Stderr = io.MultiWriter(t.Output(), s)
		return cmd
	}, names...)
}

// shared waits until each of the partitions has a consumer of its own.
func (s *shop) shared(t *testing.T) {
	t.Helper()
	waittest.Eventually(t, time.Minute, func() error {
		groups, err := s.kafka.DescribeGroups(t.Context(), "payments")
		if err != nil {
			return err
		}
		if g := groups["payments"]; g.State != "Stable" || len(g.Members) != somePartitions {
			return fmt.Errorf("the group is %s, of %d", g.State, len(g.Members))
		}
		return nil
	})
}

// Write takes what consumers log.
func (s *shop) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.Write(p)
}

// heard is how often consumers have logged the text.
func (s *shop) heard(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Count(s.said.Bytes(), []byte(text))
}

// await waits until consumers have logged the error more often than before.
func (s *shop) await(t *testing.T, is error, before int) {
	t.Helper()
	waittest.Eventually(t, time.Minute, func() error {
		if s.heard(is.Error()) == before {
			return fmt.Errorf("no order was returned because %w", is)
		}
		return nil
	})
}

func (s *shop) charge(w http.ResponseWriter, r *http.Request) {
	var p gateway.Payment
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &p)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError) // The client asks again.
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	order, _ := strconv.Atoi(p.Order)
	var during func(string)
	s.mu.Lock()
	if order%3 > 0 { // Others may have only one copy.
		during, s.during = s.during, nil
	}
	s.mu.Unlock()
	if during != nil {
		during(strings.TrimPrefix(r.UserAgent(), "payments/"))
	}
	s.gateway.ServeHTTP(w, r)
}

// inPayment runs do during the next payment of an order that is there more than once.
func (s *shop) inPayment(t *testing.T, do func(consumer string)) {
	t.Helper()
	entered, leave := make(chan string), make(chan struct{})
	s.mu.Lock()
	s.during = func(consumer string) {
		entered <- consumer
		<-leave
	}
	s.mu.Unlock()
	defer close(leave)
	select {
	case consumer := <-entered:
		do(consumer)
	case <-t.Context().Done():
		t.Fatal("there was no further payment")
	}
}

// consumed waits until all records of the topic are processed.
func (s *shop) consumed(t *testing.T, topic string, within time.Duration) error {
	return testbed.Until(t.Context(), within, func() error {
		lags, err := s.kafka.Lag(t.Context(), "payments")
		if err != nil {
			return err
		}
		if err := lags.Error(); err != nil {
			return err
		}
		if left := lags["payments"].Lag.Total(); left > 0 || len(lags["payments"].Lag[topic]) == 0 {
			return fmt.Errorf("%d records are not processed", left)
		}
		return nil
	})
}

// paid waits until all is consumed, and fails the test unless each order was paid once.
func (s *shop) paid(t *testing.T, topic string, orders int, within time.Duration) {
	t.Helper()
	if err := s.consumed(t, topic, within); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", s.database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var rows, paid, receipts, inbox int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*), count(DISTINCT order_id), count(DISTINCT receipt), (SELECT count(*) FROM obs_inbox) FROM payment").
		Scan(&rows, &paid, &receipts, &inbox); err != nil {
		t.Fatal(err)
	}
	charged, requests := s.gateway.Charged()
	if rows != orders || paid != orders || receipts != orders || inbox != orders || charged != orders {
		t.Errorf("%d payments of %d orders with %d receipts, %d in the inbox, %d charged, want %d", rows, paid, receipts, inbox, charged, orders)
	}
	dead, err := s.kafka.ListEndOffsets(t.Context(), topic+"-dead")
	if err != nil {
		t.Fatal(err)
	}
	buried := int64(0)
	dead.Each(func(o kadm.ListedOffset) { buried += o.Offset })
	if buried < 3 { // Whoever dies after it has buried one does it again.
		t.Errorf("%d dead letters, want 3", buried)
	}
	t.Logf("%d orders, %d requests to the gateway, %d dead letters", orders, requests, buried)
	for _, is := range []error{guard.ErrLockTimeout, guard.ErrUnavailable, guard.ErrLost} {
		t.Logf("returned %d times because %v", s.heard(is.Error()), is)
	}
}

// failures are what happens to consumers, or around them, during a payment.
func failures() map[string]func(t *testing.T, s *shop, c *crew) {
	return map[string]func(t *testing.T, s *shop, c *crew){
		"killed with the lock": func(t *testing.T, s *shop, c *crew) {
			var victim string
			s.inPayment(t, func(consumer string) {
				victim = consumer
				c.end(consumer, syscall.SIGKILL)
			})
			c.launch(victim)
		},
		"stopped while it joins": func(t *testing.T, s *shop, c *crew) {
			s.inPayment(t, func(string) {
				c.launch("d")
				time.Sleep(2 * time.Second) // Its join waits for the payment.
				c.end("d", syscall.SIGTERM)
			})
		},
		"the wait runs out": func(t *testing.T, s *shop, _ *crew) {
			s.inPayment(t, func(string) { s.await(t, guard.ErrLockTimeout, s.heard(guard.ErrLockTimeout.Error())) })
		},
		"the lock store is down": func(t *testing.T, s *shop, _ *crew) {
			s.inPayment(t, func(string) {
				s.redis.Kill(t)
				s.await(t, guard.ErrUnavailable, s.heard(guard.ErrUnavailable.Error()))
			})
			if err := s.redis.Restart(t.Context()); err != nil {
				t.Error(err)
			}
		},
		"the lease ends in a slow gateway": func(t *testing.T, s *shop, c *crew) {
			before := s.heard(guard.ErrLost.Error())
			s.inPayment(t, func(consumer string) {
				wake := c.suspend(consumer)
				time.Sleep(consumerLease + consumerWait)
				wake()
			})
			s.await(t, guard.ErrLost, before)
		},
		"partitions move": func(t *testing.T, s *shop, c *crew) {
			s.inPayment(t, func(string) {
				c.launch("d")
				time.Sleep(2 * time.Second) // It asks for a partition.
			})
			ended := make(chan struct{})
			s.inPayment(t, func(consumer string) {
				go func() {
					defer close(ended)
					c.end(consumer, syscall.SIGTERM)
				}()
				time.Sleep(time.Second)
			})
			<-ended
		},
	}
}

// fail lets each failure happen to three consumers, with a broker of its own.
func fail(t *testing.T, broker func(t *testing.T) string) {
	binary := buildPayments(t)
	for name, fail := range failures() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, binary, broker(t))
			s.topic(t, "orders", somePartitions)
			c := s.consumers(t, "orders", strings.Fields("a b c")...)
			s.shared(t)
			s.order(t, "orders", somePartitions, someOrders, 2, false)
			fail(t, s, c)
			s.paid(t, "orders", someOrders, 2*time.Minute)
		})
	}
}

// TestFailuresOfConsumers has three processes of examples/payments take payments.
func TestFailuresOfConsumers(t *testing.T) {
	t.Parallel()
	fail(t, fakeBroker)
}

package contend_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // The driver "pgx".
	goredis "github.com/redis/go-redis/v9"

	"github.com/observerd/observerd/guard"
	"github.com/observerd/observerd/guard/redisseen"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/redis"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/redistest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// The environment of a consumer, beside that of a writer.
const (
	envConsumer = "CONTEND_CONSUMER"
	envDatabase = "CONTEND_DATABASE"
)

const (
	consumerLease = 2 * time.Second
	consumerWait  = time.Second
	orders        = 40
)

// outside is what is outside of consumers: a bus that delivers each order until one has
// acknowledged it, to several at a time, and a gateway that takes payments.
type outside struct {
	*httptest.Server

	mu    sync.Mutex
	acked map[string]int
	next  int
	// kinds are how often consumers have returned an order, by their error.
	kinds map[string]int
	// charged are the idempotency keys of an order, and calls how often it was charged.
	charged map[string][]string
	// during is called once, in the next payment, with the name of the consumer.
	during func(consumer string)
}

func newOutside(t *testing.T) *outside {
	o := &outside{acked: make(map[string]int), kinds: make(map[string]int), charged: make(map[string][]string)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /order", o.deliver)
	mux.HandleFunc("POST /order/{id}", o.settle)
	mux.HandleFunc("POST /charge/{id}", o.charge)
	o.Server = httptest.NewServer(mux)
	t.Cleanup(o.Close)
	return o
}

// deliver hands out the next order that nobody has acknowledged. Each is there twice, under one
// key, as after a producer that tried again.
func (o *outside) deliver(w http.ResponseWriter, _ *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for range orders {
		o.next++
		if id := fmt.Sprint(o.next % orders); o.acked[id] < 2 {
			fmt.Fprint(w, id)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// settle takes an order as done, or back.
func (o *outside) settle(_ http.ResponseWriter, q *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if kind := q.FormValue("kind"); kind != "" {
		o.kinds[kind]++
		return
	}
	o.acked[q.PathValue("id")]++
}

func (o *outside) charge(_ http.ResponseWriter, q *http.Request) {
	o.mu.Lock()
	id := q.PathValue("id")
	o.charged[id] = append(o.charged[id], q.FormValue("key"))
	during := o.during
	o.during = nil
	o.mu.Unlock()
	if during != nil {
		during(q.FormValue("consumer"))
	}
}

// inPayment runs do during the next payment.
func (o *outside) inPayment(do func(consumer string)) {
	entered, leave := make(chan string), make(chan struct{})
	o.mu.Lock()
	o.during = func(consumer string) {
		entered <- consumer
		<-leave
	}
	o.mu.Unlock()
	do(<-entered)
	close(leave)
}

// returned is how often consumers have returned orders with an error of this kind.
func (o *outside) returned(kind string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kinds[kind]
}

// consume processes orders until SIGTERM.
func consume(name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	p, err := redis.Open(ctx, os.Getenv(envURL), redis.Options{})
	if err != nil {
		return err
	}
	m, err := locks.Open(ctx, locks.Options{Provider: p, Region: "payment-lock", Node: name, Subjects: []string{"order"}})
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, os.Getenv(envDatabase))
	if err != nil {
		return err
	}
	defer pool.Close()
	address, err := goredis.ParseURL(os.Getenv(envURL))
	if err != nil {
		return err
	}
	client := goredis.NewClient(address)
	defer client.Close()
	g, err := guard.New(ctx, guard.Options{
		Locks: m, Pgx: pool, Consumer: "payments", Lease: consumerLease, Wait: consumerWait, Seen: redisseen.New(client, "seen"),
	})
	if err != nil {
		return err
	}
	c := consumer{writer{name: name, resource: os.Getenv(envResource), client: http.Client{Timeout: 2 * time.Minute}}, g}
	for ctx.Err() == nil {
		c.consumeOne(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return m.Close(ctx)
}

type consumer struct {
	writer
	guard *guard.Guard
}

func (c *consumer) consumeOne(ctx context.Context) {
	id, code := c.send(http.MethodGet, "order", nil)
	if code != http.StatusOK {
		pause(ctx, 50*time.Millisecond)
		return
	}
	_, err := c.guard.Do(ctx, id, "order-"+id, func(ctx context.Context, tx guard.Tx) error {
		_, code := c.send(http.MethodPost, "charge/"+id, url.Values{"consumer": {c.name}, "key": {guard.IdempotencyKey(ctx)}})
		if code != http.StatusOK {
			return fmt.Errorf("the gateway says %d", code)
		}
		_, err := tx.Pgx.Exec(ctx, "INSERT INTO payment VALUES ($1, $2)", id, c.name)
		return err
	})
	form := url.Values{}
	switch {
	case errors.Is(err, guard.ErrLockTimeout):
		form.Set("kind", "lock_timeout")
	case errors.Is(err, guard.ErrUnavailable):
		form.Set("kind", "unavailable")
	case errors.Is(err, guard.ErrLost):
		form.Set("kind", "lost")
	case err != nil:
		form.Set("kind", "other")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, c.name, err)
		pause(ctx, 50*time.Millisecond)
	}
	c.send(http.MethodPost, "order/"+id, form)
}

// paid waits until all orders are processed, and fails the test unless each was paid once, with
// one idempotency key.
func (o *outside) paid(t *testing.T, database string) {
	t.Helper()
	waittest.Eventually(t, 2*time.Minute, func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		for n := range orders {
			if id := fmt.Sprint(n); o.acked[id] < 2 {
				return fmt.Errorf("order %s was acknowledged %d times", id, o.acked[id])
			}
		}
		return nil
	})
	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var payments, paid, inbox int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*), count(DISTINCT id), (SELECT count(*) FROM obs_inbox) FROM payment").Scan(&payments, &paid, &inbox); err != nil {
		t.Fatal(err)
	}
	if payments != orders || paid != orders || inbox != orders {
		t.Errorf("%d payments of %d orders, %d in the inbox, want %d", payments, paid, inbox, orders)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	calls := 0
	for id, keys := range o.charged {
		calls += len(keys)
		slices.Sort(keys)
		if len(slices.Compact(keys)) != 1 {
			t.Errorf("order %s was charged under the keys %q", id, keys)
		}
	}
	t.Logf("%d orders, %d calls of the gateway, returned %v", orders, calls, o.kinds)
}

// TestFailuresOfConsumers has three consumers process orders, of which one fails in a payment.
func TestFailuresOfConsumers(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(t *testing.T, o *outside, c *crew, s *redistest.Server){
		"killed with the lock": func(_ *testing.T, o *outside, c *crew, _ *redistest.Server) {
			var victim string
			o.inPayment(func(consumer string) {
				victim = consumer
				c.end(consumer, syscall.SIGKILL)
			})
			c.launch(victim)
		},
		"the wait runs out": func(t *testing.T, o *outside, _ *crew, _ *redistest.Server) {
			o.inPayment(func(string) { o.await(t, "lock_timeout", o.returned("lock_timeout")) })
		},
		"the lock store is down": func(t *testing.T, o *outside, _ *crew, s *redistest.Server) {
			o.inPayment(func(string) {
				s.Kill(t)
				o.await(t, "unavailable", o.returned("unavailable"))
			})
			if err := s.Restart(t.Context()); err != nil {
				t.Error(err)
			}
		},
		"the lease ends in a slow gateway": func(t *testing.T, o *outside, c *crew, _ *redistest.Server) {
			before := o.returned("lost")
			o.inPayment(func(consumer string) {
				wake := c.suspend(consumer)
				time.Sleep(consumerLease + consumerWait)
				wake()
			})
			o.await(t, "lost", before)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			if err := pgtest.Execute(t.Context(), database, guard.SQL(), "CREATE TABLE payment (id text, consumer text)"); err != nil {
				t.Fatal(err)
			}
			s := redistest.Start(t)
			o := newOutside(t)
			c := start(t, o.URL, []string{envConsumer + "=1", envURL + "=" + s.URL(), envDatabase + "=" + database}, strings.Fields("a b c")...)
			fail(t, o, c, s)
			o.paid(t, database)
		})
	}
}

// await waits until consumers have returned more orders with an error of this kind than before.
func (o *outside) await(t *testing.T, kind string, before int) {
	t.Helper()
	waittest.Eventually(t, time.Minute, func() error {
		if o.returned(kind) == before {
			return errors.New("no order was returned as " + kind)
		}
		return nil
	})
}

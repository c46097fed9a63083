// Payments consumes orders from Kafka and takes the payment of each once, however often an order
// is delivered. It is an example of package guard, to be copied; README.md says how to run it.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/observerd/observerd/examples/payments/gateway"
	"github.com/observerd/observerd/guard"
	"github.com/observerd/observerd/guard/redisseen"
	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/redis"
)

//go:embed schema.sql
var schema string

// config is what flags say. Addresses that may have a password come from the environment.
type config struct {
	node, brokers, topic, group, gateway, listen string
	lease, wait, session, delay                  time.Duration
}

func parse() (c config) {
	host, _ := os.Hostname()
	flag.StringVar(&c.node, "node", host, "name of this process, for the lock store and the gateway")
	flag.StringVar(&c.brokers, "brokers", "127.0.0.1:9092", "brokers of Kafka, separated by commas")
	flag.StringVar(&c.topic, "topic", "orders", "topic of orders; the dead letters go to TOPIC-dead")
	flag.StringVar(&c.group, "group", "payments", "consumer group, and the name under which events count as processed")
	flag.StringVar(&c.gateway, "gateway", "http://127.0.0.1:9400", "URL of the payment gateway")
	flag.StringVar(&c.listen, "listen", "127.0.0.1:9401", "address of /metrics, or of the gateway")
	flag.DurationVar(&c.lease, "lease", 30*time.Second, "TTL of the lock of an order")
	flag.DurationVar(&c.wait, "wait", 5*time.Second, "wait for the lock of an order")
	flag.DurationVar(&c.session, "session", 30*time.Second, "how long Kafka waits for a process that is gone")
	flag.DurationVar(&c.delay, "delay", 200*time.Millisecond, "how long the gateway takes for a payment")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "Usage: payments [flags] consume|gateway|schema\n\nDATABASE_URL and REDIS_URL are the addresses of PostgreSQL and Redis.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	return c
}

func main() {
	c := parse()
	if err := run(c, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "payments:", err)
		os.Exit(1)
	}
}

func run(c config, what string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // A second signal ends the process.
	switch what {
	case "consume":
		return consume(ctx, c)
	case "gateway":
		return serve(ctx, c.listen, &gateway.Gateway{Delay: c.delay})
	case "schema":
		_, err := fmt.Fprint(os.Stdout, guard.SQL(), schema)
		return err
	}
	flag.Usage()
	return fmt.Errorf("there is no command %q", what)
}

// serve answers requests until ctx ends.
func serve(ctx context.Context, address string, h http.Handler) error {
	s := &http.Server{Addr: address, Handler: h, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { stopped <- s.Shutdown(context.WithoutCancel(ctx)) })
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return err
	}
	return <-stopped
}

// consume opens what a consumer needs, and processes orders until ctx ends.
func consume(ctx context.Context, c config) (err error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	provider, err := redis.Open(ctx, os.Getenv("REDIS_URL"), redis.Options{})
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	manager, err := locks.Open(ctx, locks.Options{
		Provider: provider, Region: "payment-lock", Node: c.node, Subjects: []string{"order"}, Registerer: registry, Logger: log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, manager.Close(context.WithoutCancel(ctx))) }()
	address, err := goredis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	seen := goredis.NewClient(address)
	defer seen.Close()
	once, err := guard.New(ctx, guard.Options{
		Locks: manager, Pgx: pool, Consumer: c.group, Lease: c.lease, Wait: c.wait, Seen: redisseen.New(seen, c.group+"-seen"), Logger: log,
	})
	if err != nil {
		return err
	}
	registry.MustRegister(once.Collector())
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	k, err := newConsumer(c, once, log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	served := make(chan error, 1)
	go func() {
		served <- serve(ctx, c.listen, mux)
		cancel(nil)
	}()
	k.run(ctx)
	k.leave(ctx)
	cancel(nil)
	return <-served
}

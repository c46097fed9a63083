package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/testbed"
)

const (
	goalSinks  = 0.01
	goalGrowth = 16 << 20
	sinkStream = 10 // events of each stream that idle sinks have stored
)

// feedingNode is the configuration of a node that polls nothing, and feeds sinks from a log of
// its own.
func (s *suite) feedingNode(ctx context.Context, purpose, folder string, sinks ...string) (daemon.Config, error) {
	c, err := s.idleConfig(ctx, folder)
	if err != nil {
		return c, err
	}
	c.Database, err = s.cluster.coordination(ctx, purpose)
	c.Node, c.Sinks = purpose, sinks
	c.Observers = []string{"{id: orders, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at, enabled: false}"}
	return c, err
}

// measureIdleSinks runs a node whose sinks have stored all that is in the log, beside one that
// feeds a file alone and has an empty log.
func measureIdleSinks(ctx context.Context, s *suite) (_ []figure, err error) {
	bed, remove, err := newBed(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer receiver.Close()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		return nil, err
	}
	defer fake.Close()
	target, err := s.cluster.database(ctx, "idle_target")
	if err != nil {
		return nil, err
	}
	with, err := s.feedingNode(ctx, "with", bed.Folder,
		fmt.Sprintf("{id: inbox, type: sql, url: %q, schema: a, create: true}", target),
		fmt.Sprintf("{id: copy, type: sql, url: %q, schema: b, create: true}", target),
		fmt.Sprintf("{id: shop, type: webhook, url: %q, mode: batched}", receiver.URL),
		fmt.Sprintf("{id: bus, type: kafka, brokers: [%q], topic: events, create: true}", fake.ListenAddrs()[0]))
	if err != nil {
		return nil, err
	}
	without, err := s.feedingNode(ctx, "without", bed.Folder)
	if err != nil {
		return nil, err
	}
	without.Files = map[string]string{"file": filepath.Join(bed.Folder, "without.jsonl")}
	if err := fillLog(ctx, with.Database, s.streams/10, sinkStream); err != nil {
		return nil, err
	}
	node := make([]*daemon.Process, 2)
	for i, c := range []daemon.Config{without, with} {
		if node[i], err = bed.Start(ctx, "sinks", c); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, testbed.Stop(ctx, node[i])) }()
	}
	if err := s.waitDelivered(ctx, node[1], 5*sinkStream*(s.streams/10)); err != nil {
		return nil, err
	}
	part, server, err := s.measureNodes(ctx, node, s.idle, with.Database, target)
	if err != nil {
		return nil, err
	}
	return []figure{{
		group: "CPU of idle sinks", what: fmt.Sprintf("a node with a file, two sql, a webhook and a kafka, %s streams", thousands(s.streams/10)),
		value:  say("%s%% of a core, and %s%% of its PostgreSQL's", decimal(100*part[1], 2), decimal(100*server, 2)),
		beside: say("one file and an empty log %s%% of a core, in the same %s s", decimal(100*part[0], 2), whole(s.idle.Seconds())),
		goal:   "under 1% of a core", met: []bool{part[1] < goalSinks},
	}}, nil
}

// waitDelivered waits until the node's sinks have stored so many events.
func (s *suite) waitDelivered(ctx context.Context, p *daemon.Process, want int) error {
	return testbed.Until(ctx, 5*time.Minute, func() error {
		m, err := p.Metrics(ctx)
		if err != nil {
			return err
		}
		if n := int(m.Sum("observerd_relay_delivered_events_total")); n < want {
			return fmt.Errorf("%d of %d events were delivered", n, want)
		}
		return nil
	})
}

// measureSinkDown has a log grow whose sinks are down, and a receiver that then comes back.
func measureSinkDown(ctx context.Context, s *suite) (_ []figure, err error) {
	bed, remove, err := newBed(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	down, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // It ends with the measurement.
	if err != nil {
		return nil, err
	}
	address := down.Addr().String()
	if err := down.Close(); err != nil { // Nobody listens there until the receiver does.
		return nil, err
	}
	c, err := s.feedingNode(ctx, "down", bed.Folder,
		fmt.Sprintf("{id: inbox, type: sql, url: %q}", "postgres://nobody@"+address+"/none"),
		fmt.Sprintf("{id: shop, type: webhook, url: %q, mode: batched}", "http://"+address),
		fmt.Sprintf("{id: bus, type: kafka, brokers: [%q], topic: events}", address))
	if err != nil {
		return nil, err
	}
	c.Files = nil
	node, err := bed.Start(ctx, "down", c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, testbed.Stop(ctx, node)) }()
	before, err := s.settledMemory(ctx, node)
	if err != nil {
		return nil, err
	}
	if err := fillLog(ctx, c.Database, feedStreams, s.rows/feedStreams); err != nil {
		return nil, err
	}
	after, err := s.settledMemory(ctx, node)
	if err != nil {
		return nil, err
	}
	back, err := net.Listen("tcp", address) //nolint:noctx // It ends with the measurement.
	if err != nil {
		return nil, err
	}
	receiver := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })}
	defer func() { _ = receiver.Close() }()
	go func() { _ = receiver.Serve(back) }()
	if err := s.waitDelivered(ctx, node, s.rows); err != nil {
		return nil, err
	}
	peak, err := memoryOf(node.PID(), "VmHWM")
	if err != nil {
		return nil, err
	}
	group := fmt.Sprintf("Memory of a node whose sinks sql, webhook and kafka are down for %s events", thousands(s.rows))
	return []figure{
		{
			group: group, what: "resident, while they wait",
			value: say("%s MiB", mebibytes(after)), beside: say("before them %s MiB", mebibytes(before)),
			goal: "at most 16 MiB more", met: []bool{after-before <= goalGrowth},
		},
		{group: group, what: "peak, when the webhook has taken them all", value: say("%s MiB", mebibytes(peak))},
	}, nil
}

// settledMemory is the median of what is resident in some seconds.
func (s *suite) settledMemory(ctx context.Context, p *daemon.Process) (int64, error) {
	if err := live(ctx, p, s.warmup); err != nil {
		return 0, err
	}
	var seen []int64
	for range 20 {
		n, err := memoryOf(p.PID(), "VmRSS")
		if err != nil {
			return 0, err
		}
		seen = append(seen, n)
		if err := live(ctx, p, s.warmup/20); err != nil {
			return 0, err
		}
	}
	return median(seen), nil
}

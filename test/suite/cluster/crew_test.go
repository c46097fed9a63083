package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/turn"
)

// interval is the shortest that the scheduler allows.
const interval = time.Second

// node is a member of a cluster in this process. It has connections, a keeper
// of leases and a scheduler of its own, as a process has.
type node struct {
	name     string
	db       *lockdb.DB
	keeper   *lock.Keeper
	schedule *schedule.Scheduler
	metrics  *prometheus.Registry
	// reads counts the queries that the node sends to sources.
	reads atomic.Int64
}

// job is one type of a node: its observers are made for the node that polls.
type job struct {
	name      string
	interval  time.Duration // 0 means interval
	ttl       time.Duration // 0 means 15 s
	observers func(n *node) []schedule.Observer
}

// join starts a node that does these jobs, until the test ends.
func join(t *testing.T, m memory, name string, jobs ...job) *node {
	t.Helper()
	n := &node{name: name, metrics: prometheus.NewRegistry()}
	var err error
	n.db, err = lockdb.Open(lockdb.Options{URL: m.url, Logger: slog.New(slog.DiscardHandler), Registerer: n.metrics})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.keeper = lock.NewKeeper(lock.KeeperOptions{Provider: n.db.Leases()})
	n.schedule = schedule.New(schedule.Options{
		Node:   turn.Node{BootID: uuid.NewString(), Name: name, Backend: m.dialect},
		Types:  n.types(jobs),
		Keeper: n.keeper, Store: n.db.Schedule(), Enabled: true, Heartbeat: 300 * time.Millisecond, Registerer: n.metrics,
	})
	if err := n.schedule.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.close(t) })
	return n
}

func (n *node) types(jobs []job) []schedule.Type {
	types := make([]schedule.Type, len(jobs))
	for i, j := range jobs {
		if j.interval == 0 {
			j.interval = interval
		}
		types[i] = schedule.Type{
			Name: j.name, Interval: j.interval, Request: request(j.name, n.name, j.ttl), Observers: j.observers(n),
		}
	}
	return types
}

func request(typ, node string, ttl time.Duration) lock.Request {
	if ttl == 0 {
		ttl = 15 * time.Second
	}
	name := typ + "-observer-poll"
	return lock.Request{Key: name, Region: "DEFAULT", TTL: ttl, Name: name, Node: node}
}

// leave stops the node's scheduler, as a process does that is asked to end. A
// second call does nothing.
func (n *node) leave(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if err := n.schedule.Stop(ctx); err != nil {
		t.Errorf("stop %s: %v", n.name, err)
	}
}

func (n *node) close(t *testing.T) {
	t.Helper()
	n.leave(t)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if err := n.keeper.Close(ctx); err != nil {
		t.Errorf("close the keeper of %s: %v", n.name, err)
	}
	if err := n.db.Close(); err != nil {
		t.Errorf("close the database of %s: %v", n.name, err)
	}
}

// count is the value of a counter or a gauge of the node: for a type, or in all.
func (n *node) count(t *testing.T, name, typ string) (sum float64) {
	t.Helper()
	families, err := n.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			ofType := typ == ""
			for _, label := range metric.GetLabel() {
				ofType = ofType || label.GetName() == "type" && label.GetValue() == typ
			}
			if ofType {
				sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// does is an observer whose poll is a function; it counts as a query to the
// source.
type does struct {
	node *node
	id   string
	poll func(ctx context.Context, g lock.Grant) error
}

// ID implements schedule.Observer.
func (d does) ID() string { return d.id }

// Poll implements schedule.Observer.
func (d does) Poll(ctx context.Context, g lock.Grant) (observer.Stats, error) {
	d.node.reads.Add(1)
	if d.poll == nil {
		return observer.Stats{}, nil
	}
	return observer.Stats{}, d.poll(ctx, g)
}

// idle is a type with one observer that finds nothing.
func idle(name string) job { return acts(name, nil) }

// acts is a type with one observer that does something.
func acts(name string, poll func(ctx context.Context, g lock.Grant) error) job {
	return job{name: name, observers: func(n *node) []schedule.Observer {
		return []schedule.Observer{does{node: n, id: name + "-1", poll: poll}}
	}}
}

// idlers are the three types that ship.
func idlers() []job { return []job{idle("inventory"), idle("order"), idle("wes")} }

// noLockOfATypeIsLeft complains of locks that outlive their polls.
func noLockOfATypeIsLeft(t *testing.T, m memory) error {
	t.Helper()
	n, err := m.polling(t, "")
	if err == nil && n != 0 {
		err = fmt.Errorf("%d locks are left", n)
	}
	return err
}

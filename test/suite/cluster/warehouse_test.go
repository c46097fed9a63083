package cluster_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/observerd/observerd/internal/admin/sample"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/source/sqlite"
)

// warehouse is a source on SQLite that moves while the test lasts.
type warehouse struct{ url string }

func openWarehouse(t *testing.T) warehouse {
	t.Helper()
	path := filepath.Join(t.TempDir(), "warehouse.db")
	w, err := sample.Open(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		if err := w.Run(ctx, interval/4); err != nil {
			t.Errorf("move the warehouse: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		work.Wait()
		_ = w.Close()
	})
	return warehouse{url: "sqlite:" + path}
}

// jobs are the observers of the warehouse, with the real poll.
func (w warehouse) jobs(t *testing.T) []job {
	t.Helper()
	return []job{
		w.job(t, "inventory", observer.Spec{
			EventType: events.TypeInventory, Detect: observer.DetectSnapshot,
			Query: observer.Query{Table: "inventory", Key: []string{"warehouse", "sku"}},
		}),
		w.job(t, "order", observer.Spec{
			EventType: events.TypeNewOrder, Detect: observer.DetectNew,
			Query: observer.Query{Table: "orders", Key: []string{"order_id"}, Timestamp: "updated_at"},
		}),
		w.job(t, "wes", observer.Spec{
			EventType: events.TypeWesTask, Detect: observer.DetectChange,
			Query: observer.Query{Table: "wes_tasks", Key: []string{"task_id"}, Timestamp: "updated_at"},
		}),
	}
}

func (w warehouse) job(t *testing.T, name string, spec observer.Spec) job {
	t.Helper()
	spec.Stream = name + "-1"
	return job{name: name, observers: func(n *node) []schedule.Observer {
		src, err := sqlite.Open(sqlite.Options{URL: w.url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = src.Close() })
		o, err := observer.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		return []schedule.Observer{polls{node: n, id: spec.Stream, observer: o, source: counting{src, n}}}
	}}
}

// polls is an observer with the real poll, from the source into the
// coordination database.
type polls struct {
	node     *node
	id       string
	observer *observer.Observer
	source   observer.Source
}

// ID implements schedule.Observer.
func (p polls) ID() string { return p.id }

// Poll implements schedule.Observer.
func (p polls) Poll(ctx context.Context, g lock.Grant) (observer.Stats, error) {
	return p.observer.Poll(ctx, p.source, p.node.db.Store(g))
}

// counting counts the queries that reach a source.
type counting struct {
	observer.Source
	node *node
}

// Read implements observer.Source.
func (c counting) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	c.node.reads.Add(1)
	return c.Source.Read(ctx, q, in)
}

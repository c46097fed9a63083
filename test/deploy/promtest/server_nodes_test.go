//go:build nightly

package promtest_test

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/sample"
	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/servertest"
)

// watched is a cluster of two nodes as processes, on a PostgreSQL of its own,
// with a source that moves.
type watched struct {
	binary string
	nodes  [2]*watchedNode
}

// watchedNode is a node that comes back at the same address.
type watchedNode struct {
	name, folder, address string
	process               *daemon.Process
}

// startWatched starts both nodes, with that interval for all types.
func startWatched(t *testing.T, interval time.Duration) *watched {
	t.Helper()
	server := pgtest.Start(t, pgtest.Options{})
	c := &watched{binary: filepath.Join(t.TempDir(), "observerd")}
	if err := daemon.Build(t.Context(), daemon.BuildOptions{Out: c.binary, Version: "nightly", Folder: root}); err != nil {
		t.Fatal(err)
	}
	source := moving(t)
	events := filepath.Join(t.TempDir(), "events.jsonl")
	for i, name := range []string{"a", "b"} {
		node := &watchedNode{name: name, folder: filepath.Join(t.TempDir(), name)}
		config := daemon.Config{
			Node: name, Database: server.URL("postgres"), Sources: map[string]string{"warehouse": "sqlite:" + source},
			Observers: []string{
				"{id: orders, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at}",
				"{id: stock, type: inventory, source: warehouse, table: inventory, key: [warehouse, sku]}",
				"{id: tasks, type: wes, source: warehouse, table: wes_tasks, key: task_id, timestamp: updated_at}",
			},
			Files: map[string]string{"file": events}, Interval: interval,
		}
		if err := config.Write(node.folder); err != nil {
			t.Fatal(err)
		}
		c.nodes[i] = node
		err := servertest.StartOnFreePort(t.Context(), func(port int) error {
			node.address = "127.0.0.1:" + strconv.Itoa(port)
			return c.start(t, node)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// start starts a node, for the first time or again, and waits until it is ready.
func (c *watched) start(t *testing.T, node *watchedNode) (err error) {
	t.Helper()
	node.process, err = daemon.Start(context.WithoutCancel(t.Context()), daemon.Options{
		Binary: c.binary, Name: node.name, Folder: node.folder, Env: []string{"OBSERVERD_HTTP_LISTEN=" + node.address},
	})
	if err != nil {
		return err
	}
	process := node.process
	t.Cleanup(func() {
		process.Kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", node.name, process.Log.Tail(4000))
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return process.Ready(ctx)
}

// again starts a node that has ended.
func (c *watched) again(t *testing.T, nodes ...*watchedNode) {
	t.Helper()
	for _, node := range nodes {
		if err := c.start(t, node); err != nil {
			t.Fatal(err)
		}
	}
}

// stop stops a node as a service manager does.
func (c *watched) stop(t *testing.T, node *watchedNode) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if code, err := node.process.Stop(ctx); err != nil || code != 0 {
		t.Fatalf("stop %s: exit code %d: %v", node.name, code, err)
	}
}

// moving is the file of a sample warehouse that moves until the test ends.
func moving(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "warehouse.db")
	warehouse, err := sample.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var work sync.WaitGroup
	work.Go(func() {
		if err := warehouse.Run(ctx, 250*time.Millisecond); err != nil {
			t.Errorf("move the warehouse: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		work.Wait()
		if err := warehouse.Close(); err != nil {
			t.Error(err)
		}
	})
	return path
}

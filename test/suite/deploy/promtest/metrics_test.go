package promtest_test

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/admin/sample"
	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// root is the repository, whose module is another one than that of these tests.
var root = filepath.Join("..", "..", "..", "..")

// deployed lists files that ship, of which there are some.
func deployed(t *testing.T, folder, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "deploy", folder, pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatalf("no file %s in deploy/%s", pattern, folder)
	}
	return paths
}

// shownByTemplate finds the labels that an annotation of an alert shows.
var shownByTemplate = regexp.MustCompile(`\$labels\.(\w+)`)

// TestRulesAndDashboardsFindTheirMetrics compares the metrics and labels in every
// expression that ships, and those that legends and annotations show, with a
// running node that has delivered something: some metrics exist from then on; and with a
// program that uses package locks.
func TestRulesAndDashboardsFindTheirMetrics(t *testing.T) {
	t.Parallel()
	n := newNode(t, build(t), moving(t), daemon.Config{Node: "a", Database: "sqlite:" + filepath.Join(t.TempDir(), "observerd.db")})
	if err := servertest.StartOnFreePort(t.Context(), n.start); err != nil {
		t.Fatal(err)
	}
	waittest.Eventually(t, 3*time.Minute, func() error {
		metrics, err := n.process.Metrics(t.Context())
		if err == nil && (metrics.Sum("observerd_relay_delivered_events_total") == 0 || metrics.Sum("observerd_observer_freshness_seconds") == 0) {
			err = errors.New("nothing was delivered, or no observer is complete")
		}
		return err
	})
	_, text, err := n.process.Get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	schema := readSchema(t, append(append(text, libraryMetrics(t)...), githubMetrics(t)...))
	records, alerts := shippedRules(t)
	schema.record(t, records)
	var all []query
	for _, r := range append(records, alerts...) {
		q := query{where: r.Record + r.Alert, text: r.Expr}
		for _, text := range r.Annotations {
			q.shown = append(q.shown, found(shownByTemplate, text)...)
		}
		all = append(all, q)
	}
	for _, d := range dashboards(t) {
		all = append(all, d.queries(anyValues())...)
	}
	for _, q := range all {
		if err := schema.check(q); err != nil {
			t.Error(err)
		}
	}
}

// node is a node as a process, which may come back at the same port.
type node struct {
	t       *testing.T
	options daemon.Options
	port    int
	process *daemon.Process
}

// newNode configures a node that observes three types of a sample warehouse.
func newNode(t *testing.T, binary, source string, config daemon.Config) *node {
	t.Helper()
	n := &node{t: t, options: daemon.Options{Binary: binary, Name: config.Node, Folder: t.TempDir()}}
	config.Sources = map[string]string{"warehouse": "sqlite:" + source}
	config.Observers = []string{
		"{id: orders, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at}",
		"{id: stock, type: inventory, source: warehouse, table: inventory, key: [warehouse, sku]}",
		"{id: tasks, type: wes, source: warehouse, table: wes_tasks, key: task_id, timestamp: updated_at}",
	}
	config.Files = map[string]string{"file": filepath.Join(filepath.Dir(source), "events.jsonl")}
	if err := config.Write(n.options.Folder); err != nil {
		t.Fatal(err)
	}
	return n
}

// start starts the node, for the first time or again, and waits until it is ready.
func (n *node) start(port int) (err error) {
	n.port = port
	o := n.options
	o.Env = []string{"OBSERVERD_HTTP_LISTEN=" + n.address()}
	if n.process, err = daemon.Start(context.WithoutCancel(n.t.Context()), o); err != nil {
		return err
	}
	process := n.process
	n.t.Cleanup(func() {
		process.Kill()
		if n.t.Failed() {
			n.t.Logf("log of %s:\n%s", o.Name, process.Log.Tail(4000))
		}
	})
	ctx, cancel := context.WithTimeout(n.t.Context(), 2*time.Minute)
	defer cancel()
	return process.Ready(ctx)
}

func (n *node) address() string { return "127.0.0.1:" + strconv.Itoa(n.port) }

func build(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "observerd")
	if err := daemon.Build(t.Context(), daemon.BuildOptions{Out: binary, Version: "nightly"}); err != nil {
		t.Fatal(err)
	}
	return binary
}

// moving is the file of a sample warehouse that moves until the test ends.
func moving(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "warehouse.db")
	warehouse, err := sample.Open(t.Context(), path, 0)
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

package promtest_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/sample"
	"github.com/observerd/observerd/test/deploy/promtest"
	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/waittest"
)

// root is the repository, whose module is another one than that of these tests.
var root = filepath.Join("..", "..", "..")

// TestRulesAndDashboardsFindTheirMetrics reads every expression that ships with
// the parser of Prometheus, and compares the metrics and labels in it, and those
// that legends and annotations show, with a running node. It holds as well that
// docs/metrics.md has them: see TestMetricsAreDocumented.
func TestRulesAndDashboardsFindTheirMetrics(t *testing.T) {
	t.Parallel()
	schema, err := promtest.ReadSchema(bytes.NewReader(metricsOfABusyNode(t)))
	if err != nil {
		t.Fatal(err)
	}
	var files []promtest.RuleFile
	for _, path := range deployed(t, "prometheus", "*.yaml") {
		file, err := promtest.ReadRules(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if err := schema.Record(files...); err != nil {
		t.Error(err)
	}
	for _, file := range files {
		for _, rule := range file.Rules() {
			if _, err := rule.Expr().Check(schema); err != nil {
				t.Error(err)
			}
		}
	}
	for _, path := range deployed(t, "grafana", "*.json") {
		for _, e := range expressions(t, path) {
			if _, err := e.Check(schema); err != nil {
				t.Error(err)
			}
		}
	}
}

// metricsOfABusyNode runs a node until it has delivered something: some metrics
// exist from then on.
func metricsOfABusyNode(t *testing.T) (text []byte) {
	t.Helper()
	folder := t.TempDir()
	warehouse, err := sample.Open(t.Context(), filepath.Join(folder, "warehouse.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := warehouse.Close(); err != nil {
		t.Fatal(err)
	}
	config := daemon.Config{
		Node: "a", Database: "sqlite:" + filepath.Join(folder, "observerd.db"),
		Sources:   map[string]string{"warehouse": "sqlite:" + filepath.Join(folder, "warehouse.db")},
		Observers: []string{"{id: orders, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at}"},
		Files:     map[string]string{"file": filepath.Join(folder, "events.jsonl")},
	}
	if err := config.Write(folder); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(folder, "observerd")
	if err := daemon.Build(t.Context(), daemon.BuildOptions{Out: binary, Folder: root}); err != nil {
		t.Fatal(err)
	}
	node, err := daemon.Start(context.WithoutCancel(t.Context()), daemon.Options{Binary: binary, Name: "a", Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Kill)
	waittest.Eventually(t, 3*time.Minute, func() error {
		metrics, err := node.Metrics(t.Context())
		if err == nil && metrics.Sum("observerd_relay_delivered_events_total") == 0 {
			err = errors.New("nothing was delivered")
		}
		return err
	})
	if _, text, err = node.Get(t.Context(), "/metrics"); err != nil {
		t.Fatal(err)
	}
	return text
}

func expressions(t *testing.T, path string) []promtest.DashboardExpr {
	t.Helper()
	dashboard, err := promtest.ReadDashboard(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := dashboard.Exprs(promtest.AnyValues())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

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

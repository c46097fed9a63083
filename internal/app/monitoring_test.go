package app_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/test/kit/promtest"
)

// TestRulesAndDashboardsFindTheirMetrics reads every expression that ships with
// the parser of Prometheus, and compares the metrics and labels in it, and those
// that legends and annotations show, with a running node. It holds as well that
// docs/metrics.md has them: see TestMetricsAreDocumented.
func TestRulesAndDashboardsFindTheirMetrics(t *testing.T) {
	t.Parallel()
	schema, err := promtest.ReadSchema(strings.NewReader(metricsOfABusyNode(t)))
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
	paths, err := filepath.Glob(filepath.Join("..", "..", "deploy", folder, pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatalf("no file %s in deploy/%s", pattern, folder)
	}
	return paths
}

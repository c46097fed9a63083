package app_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// TestMetricsAreDocumented compares the names of a running node's metrics with
// docs/metrics.md, both ways, and with the rules of Prometheus.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := names("(?m)^\\| `((?:observerd|scheduler)_[a-z_]+)`", string(manual))
	text := metricsOfABusyNode(t)
	lint(t, text)
	exposed := names(`(?m)^# TYPE ((?:observerd|scheduler)_[a-z_]+) `, text)
	for name := range exposed {
		if !documented[name] {
			t.Errorf("%s is not in docs/metrics.md", name)
		}
	}
	for name := range documented {
		if !exposed[name] {
			t.Errorf("docs/metrics.md has %s, a running node has not", name)
		}
	}
}

// lint holds the metrics against the rules of Prometheus, but for two names that Java nodes
// had.
func lint(t *testing.T, text string) {
	t.Helper()
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if p.Metric != "scheduler_observer_cycle_locked_count" && p.Metric != "scheduler_observer_cycle_skipped_count" {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func names(pattern, text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	return found
}

// metricsOfABusyNode runs a node until it has delivered something, and an observer has come
// to the end of its source: some metrics exist from then on.
func metricsOfABusyNode(t *testing.T) (text string) {
	t.Helper()
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	node := setup(t, "").feeding(t, `{id: shop, type: webhook, url: "`+receiver.URL+`"}`).start(t)
	delivered := regexp.MustCompile(`(?m)^observerd_relay_delivered_events_total\{.*\} [1-9]`)
	complete := regexp.MustCompile(`(?m)^observerd_observer_freshness_seconds\{`)
	eventually(t, func() error {
		if _, text = get(t, node, "/metrics"); !delivered.MatchString(text) || !complete.MatchString(text) {
			return errors.New("nothing was delivered, or no observer is complete")
		}
		return nil
	})
	return text
}

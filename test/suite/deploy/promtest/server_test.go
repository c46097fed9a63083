//go:build nightly

package promtest_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/suite/deploy/promtest"
)

const (
	// patience is how long a test waits for what must happen soon, on a machine
	// that has much else to do.
	patience = 2 * time.Minute
	// faster is what lengths of time in the rules are divided by: 30 minutes
	// become one.
	faster = 30
)

// TestPrometheusSeesWhatHappens lets a real Prometheus watch a cluster that works,
// loses a node, gets it back, stops and works again.
func TestPrometheusSeesWhatHappens(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	binary, source := build(t), moving(t)
	var nodes [2]*node
	for i, name := range []string{"a", "b"} {
		nodes[i] = newNode(t, binary, source, daemon.Config{Node: name, Database: server.URL("postgres")})
		must(t, servertest.StartOnFreePort(t.Context(), nodes[i].start))
	}
	p := startPrometheus(t, nodes[0].address(), nodes[1].address())

	t.Log("both nodes work: nothing fires")
	p.watch(t, 40*time.Minute/faster, anyAlert, nil)
	p.checkDashboards(t)

	t.Log("one node is killed: a warning, and nothing critical")
	nodes[1].process.Kill()
	p.watch(t, patience+time.Hour/faster, critical, fires("ObserverdSingleNodeAcquiring"))

	t.Log("it is back: the warning ends")
	must(t, nodes[1].start(nodes[1].port))
	p.watch(t, patience+time.Hour/faster, critical, calm)

	t.Log("both are stopped: no node polls")
	for _, n := range nodes {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if code, err := n.process.Stop(ctx); err != nil || code != 0 {
			t.Fatalf("stop: exit code %d: %v", code, err)
		}
	}
	p.watch(t, patience+time.Hour/faster, none, fires("ObserverdNoLockAcquired"))

	t.Log("both are back: all is quiet again")
	for _, n := range nodes {
		must(t, n.start(n.port))
	}
	p.watch(t, patience+2*time.Hour/faster, none, calm)
	p.checkDashboards(t)
	p.checkRules(t)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// prometheus is a real Prometheus with our rules.
type prometheus struct{ prometheusv1.API }

// prometheusYAML is its configuration. One job is one cluster.
const prometheusYAML = `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [recording.yaml, alerts.yaml]
scrape_configs:
  - job_name: observerd
    static_configs: [{targets: [%q, %q]}]
`

// startPrometheus starts the server with the rules that ship, whose lengths of time
// are shorter.
func startPrometheus(t *testing.T, targets ...any) prometheus {
	t.Helper()
	binary, err := promtest.Prometheus(t.Context())
	must(t, err)
	folder := t.TempDir()
	for _, path := range deployed(t, "prometheus", "*.yaml") {
		groups := readRules(t, path)
		shorten(t, groups)
		text, err := yaml.Marshal(groups)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(folder, filepath.Base(path)), text, 0o600))
	}
	must(t, os.WriteFile(filepath.Join(folder, "prometheus.yml"), fmt.Appendf(nil, prometheusYAML, targets...), 0o600))
	var p prometheus
	must(t, servertest.StartOnFreePort(t.Context(), func(port int) error {
		address := "127.0.0.1:" + strconv.Itoa(port)
		// The server looks back for series as far as the shortened rules do.
		process, err := daemon.Start(context.WithoutCancel(t.Context()), daemon.Options{
			Binary: binary, Name: "prometheus", Folder: folder,
			Args: []string{
				"--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address=" + address,
				"--query.lookback-delta=" + (5 * time.Minute / faster).String(),
			},
		})
		if err != nil {
			return err
		}
		t.Cleanup(process.Kill)
		client, err := api.NewClient(api.Config{Address: "http://" + address})
		must(t, err)
		p.API = prometheusv1.NewAPI(client)
		for end := time.Now().Add(patience); ; time.Sleep(time.Second / 4) {
			if _, err = p.Config(t.Context()); err == nil {
				return nil
			}
			if !process.Running() || time.Now().After(end) {
				return fmt.Errorf("%w\n%s", err, process.Log.Tail(4000))
			}
		}
	}))
	return p
}

// seconds are the numbers in our rules that are lengths of time.
var seconds = []float64{150, 180, 200, 300, 600, 900, 3600}

// shorten divides the lengths of time in rules. A rate needs some scrapes, so no
// window is shorter than 5 seconds.
func shorten(t *testing.T, groups *rulefmt.RuleGroups) {
	t.Helper()
	for _, g := range groups.Groups {
		for i := range g.Rules {
			r := &g.Rules[i]
			r.For /= faster
			parsed, err := query{where: r.Record + r.Alert, text: r.Expr}.parse()
			must(t, err)
			parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
				switch n := node.(type) {
				case *parser.MatrixSelector:
					n.Range = max(n.Range/faster, 5*time.Second)
				case *parser.VectorSelector:
					n.OriginalOffset /= faster
				case *parser.NumberLiteral:
					if slices.Contains(seconds, n.Val) {
						n.Val /= faster
					}
				}
				return nil
			})
			r.Expr = parsed.String()
		}
	}
}

// watch looks at the alerts until enough is satisfied, or, with none, for as long
// as the limit. A forbidden alert must not fire meanwhile.
func (p prometheus) watch(t *testing.T, limit time.Duration, forbidden func(prometheusv1.Alert) bool, enough func([]prometheusv1.Alert) bool) {
	t.Helper()
	began := time.Now()
	for ; ; time.Sleep(time.Second / 4) {
		now, err := p.Alerts(t.Context())
		must(t, err)
		for _, a := range now.Alerts {
			if a.State == prometheusv1.AlertStateFiring && forbidden(a) {
				t.Fatalf("after %s %v fires", time.Since(began), a.Labels)
			}
		}
		late := time.Since(began) > limit
		switch {
		case enough == nil && late:
			return
		case enough != nil && enough(now.Alerts):
			t.Logf("after %s", time.Since(began).Round(time.Second))
			return
		case late:
			t.Fatalf("not within %s; the alerts are %v", limit, now.Alerts)
		}
	}
}

func anyAlert(prometheusv1.Alert) bool   { return true }
func none(prometheusv1.Alert) bool       { return false }
func critical(a prometheusv1.Alert) bool { return a.Labels["severity"] == "critical" }

// calm wants no alert, not even a pending one.
func calm(now []prometheusv1.Alert) bool { return len(now) == 0 }

func fires(name model.LabelValue) func([]prometheusv1.Alert) bool {
	return func(now []prometheusv1.Alert) bool {
		return slices.ContainsFunc(now, func(a prometheusv1.Alert) bool {
			return a.Labels["alertname"] == name && a.State == prometheusv1.AlertStateFiring
		})
	}
}

// checkRules complains of rules that Prometheus could not evaluate, such as a match
// of many to many, which no parser finds.
func (p prometheus) checkRules(t *testing.T) {
	t.Helper()
	result, err := p.Rules(t.Context(), nil)
	must(t, err)
	rules := 0
	for _, group := range result.Groups {
		for _, rule := range group.Rules {
			rules++
			switch r := rule.(type) {
			case prometheusv1.AlertingRule:
				if r.Health != prometheusv1.RuleHealthGood {
					t.Errorf("%s: %s", r.Name, r.LastError)
				}
			case prometheusv1.RecordingRule:
				if r.Health != prometheusv1.RuleHealthGood {
					t.Errorf("%s: %s", r.Name, r.LastError)
				}
			}
		}
	}
	if records, alerts := shippedRules(t); rules != len(records)+len(alerts) {
		t.Errorf("prometheus has %d rules, want %d", rules, len(records)+len(alerts))
	}
}

// mayBeEmpty are queries without a result in health, by panel: what they show has
// no series before it has happened.
var mayBeEmpty = map[string]string{
	"":                  "ALERTS",
	"What went wrong":   "observerd_source_failures_total",
	"Takeovers":         "observerd_takeovers_total",
	"The fence at work": "observerd_lease_renewals_total",
}

// checkDashboards asks Prometheus what the dashboards ask it: each query has to
// show a value.
func (p prometheus) checkDashboards(t *testing.T) {
	t.Helper()
	values := anyValues()
	maps.Copy(values, map[string]string{"__rate_interval": "15s", "__interval": "5s", "__range": "1m"})
	for file, d := range dashboards(t) {
		if file == "general-locks.json" { // It is of programs that use package locks; here are none.
			continue
		}
		for _, q := range d.queries(values) {
			var result model.Value
			var err error
			if now := time.Now(); q.instant {
				result, _, _, err = p.Query(t.Context(), q.text, now)
			} else {
				last := prometheusv1.Range{Start: now.Add(-30 * time.Minute / faster), End: now, Step: 5 * time.Second}
				result, _, _, err = p.QueryRange(t.Context(), q.text, last)
			}
			must(t, err)
			empty := mayBeEmpty[q.panel]
			if !shows(result) && (empty == "" || !strings.Contains(q.text, empty)) {
				t.Errorf("%s shows nothing: %s", q.where, q.text)
			}
		}
	}
}

// shows reports whether a result has a value that can be drawn.
func shows(result model.Value) bool {
	switch r := result.(type) {
	case model.Vector:
		return slices.ContainsFunc(r, func(s *model.Sample) bool { return !math.IsNaN(float64(s.Value)) })
	case model.Matrix:
		return slices.ContainsFunc(r, func(s *model.SampleStream) bool {
			return slices.ContainsFunc(s.Values, func(v model.SamplePair) bool { return !math.IsNaN(float64(v.Value)) })
		})
	}
	return false
}

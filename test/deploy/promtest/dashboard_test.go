package promtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const grafana = "../../../deploy/grafana"

// shipped reads our dashboards, by file.
func shipped(t *testing.T) map[string]Dashboard {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(grafana, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]Dashboard)
	for _, path := range paths {
		d, err := ReadDashboard(path)
		if err != nil {
			t.Fatal(err)
		}
		all[d.File] = d
	}
	return all
}

func TestShippedDashboards(t *testing.T) {
	t.Parallel()
	all := shipped(t)
	if len(all) != 4 {
		t.Errorf("%d dashboards, want 4", len(all))
	}
	for _, d := range all {
		if err := d.Check(); err != nil {
			t.Error(err)
		}
	}
}

// TestPanelsThatWereAskedFor holds what each dashboard must show, whatever it is
// called: a type of panel, and what stands in its queries, transformations and
// settings.
func TestPanelsThatWereAskedFor(t *testing.T) {
	t.Parallel()
	const byNode = "scheduler_observer_lock_acquired_by_node_total"
	for file, panels := range map[string][]struct {
		what, kind string
		exprs      []string
		with       func(p Panel) bool
	}{
		"load-distribution.json": {
			{"acquisitions per node over time, stacked", "timeseries", []string{byNode, "by (node)"}, stacked},
			{"heat map type × node", "table", []string{byNode, "by (node, type)"}, heatMap},
			{"table of acquisitions by node and type in the last hour", "table", []string{byNode, "by (node, type)", "[1h]"}, sorted},
		},
		"observer-health.json": {
			{"poll success rate", "timeseries", []string{`scheduler_observer_polls_total{job="$job", type=~"$type", outcome="ok"}`}, nil},
			{"duration p50", "timeseries", []string{"histogram_quantile(0.5,", "scheduler_observer_polling_duration_seconds_bucket"}, nil},
			{"duration p95", "timeseries", []string{"histogram_quantile(0.95,", "scheduler_observer_polling_duration_seconds_bucket"}, nil},
			{"duration p99", "timeseries", []string{"histogram_quantile(0.99,", "scheduler_observer_polling_duration_seconds_bucket"}, nil},
			{"contention, with the goal of 5 %", "timeseries", []string{"observerd:lock_contention:ratio"}, goal(0.05)},
			{"acquisition success, with the goal of 99.9 %", "stat", []string{"observerd:lock_acquisition_success:ratio"}, goal(0.999)},
			{"acquisition latency, with the goal of 20 ms", "timeseries", []string{"observerd_lock_acquire_duration_seconds_bucket", "0.95"}, goal(0.02)},
			{"age of the last good poll", "timeseries", []string{"observerd_poll_last_success_age_seconds", "by (type, observer)"}, nil},
			{"horizon lag", "timeseries", []string{"observerd_horizon_lag_seconds"}, nil},
		},
		"active-active.json": {
			{"distinct nodes acquiring", "stat", []string{"observerd:nodes_acquiring:count"}, nil},
			{"distinct nodes acquiring, over time", "timeseries", []string{"observerd:nodes_acquiring:count"}, nil},
			{"attempts", "timeseries", []string{"sum(rate(observerd_lock_acquire_duration_seconds_count"}, nil},
			{"acquisitions over all nodes", "timeseries", []string{"sum(rate(scheduler_observer_lock_acquired_total"}, nil},
			{"load-balance score 0-100", "gauge", []string{"observerd:balance:score"}, hundred},
		},
		"delivery.json": {
			{"lag per sink", "timeseries", []string{"observerd_relay_lag_events", "by (sink)"}, nil},
			{"rate per sink", "timeseries", []string{"rate(observerd_relay_delivered_events_total", "by (sink)"}, nil},
		},
	} {
		d := shipped(t)[file]
		for _, want := range panels {
			if !slices.ContainsFunc(d.Panels, func(p Panel) bool {
				return p.Type == want.kind && p.asks(want.exprs) && (want.with == nil || want.with(p))
			}) {
				t.Errorf("%s has no panel of the type %s that shows: %s", file, want.kind, want.what)
			}
		}
	}
}

// asks reports whether one query of the panel has all of these parts.
func (p Panel) asks(parts []string) bool {
	return slices.ContainsFunc(p.Targets, func(t Target) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(t.Expr, part) })
	})
}

func stacked(p Panel) bool {
	mode, ok := p.FieldConfig.Defaults.Custom["stacking"].(map[string]any)
	return ok && mode["mode"] == "normal"
}

func heatMap(p Panel) bool {
	cell, ok := p.FieldConfig.Defaults.Custom["cellOptions"].(map[string]any)
	return ok && cell["type"] == "color-background" && strings.HasPrefix(p.FieldConfig.Defaults.Color.Mode, "continuous-") &&
		slices.ContainsFunc(p.Transformations, func(x Transformation) bool {
			return x.ID == "groupingToMatrix" && x.Options["rowField"] == "type" && x.Options["columnField"] == "node"
		})
}

func sorted(p Panel) bool {
	by, ok := p.Options["sortBy"].([]any)
	return ok && len(by) == 1
}

func hundred(p Panel) bool {
	d := p.FieldConfig.Defaults
	return d.Min != nil && d.Max != nil && *d.Min == 0 && *d.Max == 100
}

// goal finds a threshold.
func goal(value float64) func(p Panel) bool {
	return func(p Panel) bool {
		if p.FieldConfig.Defaults.Thresholds == nil {
			return false
		}
		for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
			if step.Value != nil && *step.Value == value {
				return true
			}
		}
		return false
	}
}

// TestChecksFindMistakes makes one mistake at a time in a dashboard that is
// right, and wants to be told of it.
func TestChecksFindMistakes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(grafana, "delivery.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]struct{ old, text, complaint string }{
		"unknown field":          {`"editorMode"`, `"editormood"`, "unknown field"},
		"bad form":               {"  \"uid\"", "\"uid\"", "jq"},
		"two":                    {"\n}\n", "\n}\n{}\n", "follows"},
		"uid":                    {`"uid": "observerd-delivery"`, `"uid": "x"`, "uid"},
		"tags":                   {`    "observerd"`, `    "other"`, "tags"},
		"old schema":             {`"schemaVersion": 41`, `"schemaVersion": 16`, "schemaVersion"},
		"links lose variables":   {`"includeVars": true`, `"includeVars": false`, "link"},
		"a data source by name":  {`"uid": "${datasource}"`, `"uid": "prometheus"`, "not the data source"},
		"undefined variable":     {`job=\"$job\", sink=~\"$sink\"`, `job=\"$job\", sink=~\"$drain\"`, "$drain is used and not defined"},
		"unused variable":        {`"name": "sink"`, `"name": "drain"`, "$drain is defined and not used"},
		"variable and its query": {`"definition": "label_values(observerd_build_info, job)"`, `"definition": "label_values(up, job)"`, "not one label_values"},
		"id twice":               {`"id": 2,`, `"id": 1,`, "share an id"},
		"place twice":            {`"x": 6,`, `"x": 5,`, "share an id, a title or a place"},
		"too wide":               {`"x": 18,`, `"x": 19,`, "place"},
		"no health":              {"Healthy: it returns to 0", "It returns to 0", "Healthy"},
		"unknown type":           {`"type": "timeseries"`, `"type": "graph"`, "none of"},
		"unknown unit":           {`"unit": "short"`, `"unit": "furlong"`, "furlong"},
		"unknown colour":         {`"color": "orange"`, `"color": "mauve"`, "mauve"},
		"thresholds":             {`"value": 100000`, `"value": 10`, "not above"},
		"no query":               {"sum by (sink) (max by (sink, stream) (observerd_relay_lag_events{job=\\\"$job\\\", sink=~\\\"$sink\\\"}))", "", "no expression"},
		"no legend":              {`"legendFormat": "{{sink}}"`, `"legendFormat": ""`, "legend"},
		"moment in a graph":      {`"range": true`, `"instant": true`, "does not suit"},
		"a window of its own":    {"rate(observerd_relay_delivered_events_total{job=\\\"$job\\\", sink=~\\\"$sink\\\"}[$__rate_interval])", "rate(observerd_relay_delivered_events_total{job=\\\"$job\\\", sink=~\\\"$sink\\\"}[5m])", "is not over [$__rate_interval]"},
		"an interval of its own": {`"interval": "15s"`, `"interval": "now"`, "interval"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrong := strings.ReplaceAll(string(text), m.old, m.text)
			if wrong == string(text) {
				t.Fatalf("%q does not stand there", m.old)
			}
			d, err := parseDashboard([]byte(wrong))
			if d.File = "delivery.json"; err == nil {
				err = d.Check()
			}
			if err == nil || !strings.Contains(err.Error(), m.complaint) {
				t.Errorf("told %v, want something about %q", err, m.complaint)
			}
		})
	}
}

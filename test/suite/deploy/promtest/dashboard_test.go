package promtest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// dashboard is a dashboard of Grafana, as far as it is tested.
type dashboard struct {
	file, text  string
	UID         string
	Tags        []string
	Links       []struct{ Tags []string }
	Annotations struct {
		List []struct {
			Name       string
			Datasource datasource
			Target     struct{ Expr string }
		}
	}
	Templating struct{ List []variable }
	Panels     []panel
}

type datasource struct{ Type, UID string }

type variable struct {
	Name, Type, Definition string
	Datasource             datasource
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               datasource
	Targets                  []struct {
		RefID, Expr, LegendFormat string
		Instant                   bool
	}
}

func parseDashboard(file, text string) (dashboard, error) {
	d := dashboard{file: file, text: text}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return d, fmt.Errorf("%s: %w", file, err)
	}
	return d, nil
}

// dashboards are those that ship, by file.
func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	all := make(map[string]dashboard)
	for _, path := range deployed(t, "grafana", "*.json") {
		file := filepath.Base(path)
		d, err := parseDashboard(file, read(t, path))
		if err != nil {
			t.Fatal(err)
		}
		all[file] = d
	}
	return all
}

// rateInterval stands for $__rate_interval: no expression has such a window.
const rateInterval = "13m37s"

// anyValues are values for all variables that a dashboard may use.
func anyValues() map[string]string {
	return map[string]string{
		"datasource": "prometheus", "job": "observerd", "type": ".+", "observer": ".+", "sink": ".+", "subject": ".+", "predicate": ".+",
		"__rate_interval": rateInterval, "__range": "6h", "__interval": "1m",
	}
}

var (
	variableUse   = regexp.MustCompile(`\$\{?(\w+)\}?`)
	labelValues   = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	shownByLegend = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)
)

// queries are all expressions of the dashboard, with values for its variables.
func (d dashboard) queries(values map[string]string) (all []query) {
	add := func(q query, where, text string) {
		q.where = d.file + ": " + where
		q.text = variableUse.ReplaceAllStringFunc(text, func(use string) string { return values[strings.Trim(use, "${}")] })
		all = append(all, q)
	}
	for _, v := range d.Templating.List {
		if m := labelValues.FindStringSubmatch(v.Definition); m != nil {
			add(query{shown: m[2:], instant: true}, "variable "+v.Name, m[1])
		}
	}
	for _, a := range d.Annotations.List {
		add(query{}, "annotation "+a.Name, a.Target.Expr)
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			q := query{shown: found(shownByLegend, target.LegendFormat), panel: p.Title, instant: target.Instant}
			add(q, fmt.Sprintf("panel %q, query %s", p.Title, target.RefID), target.Expr)
		}
	}
	return all
}

// check complains of what makes a dashboard show nothing, or something else than
// was meant.
func (d dashboard) check() error {
	var errs []error
	complain := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(d.file+": "+format, args...))
		}
	}
	chosen := datasource{Type: "prometheus", UID: "${datasource}"}
	complain(d.UID != "observerd-"+strings.TrimSuffix(d.file, ".json"), "its uid is %q", d.UID)
	complain(!slices.Equal(d.Tags, []string{"observerd"}) || len(d.Links) != 1 || !slices.Equal(d.Links[0].Tags, d.Tags),
		"its tags %q and links %v do not join the dashboards", d.Tags, d.Links)
	for _, a := range d.Annotations.List {
		complain(a.Datasource != chosen, "the annotation %s is not of the data source that was chosen", a.Name)
	}
	defined := []string{"__rate_interval", "__range", "__interval", "__all"}
	for _, v := range d.Templating.List {
		defined = append(defined, v.Name)
		if v.Type == "query" {
			complain(!labelValues.MatchString(v.Definition), "variable %s: %q is not label_values(series, label)", v.Name, v.Definition)
			complain(strings.Count(d.text, fmt.Sprintf(`": %q`, v.Definition)) != 2, "variable %s: its query is not its definition", v.Name)
			complain(v.Datasource != chosen, "variable %s is not of the data source that was chosen", v.Name)
		}
	}
	for _, name := range found(variableUse, d.text) {
		// $1 and the like belong to label_replace.
		complain(!slices.Contains(defined, name) && name[0] > '9', "$%s is used and not defined", name)
	}
	for i, p := range d.Panels {
		same := func(o panel) bool { return o.ID == p.ID || o.Title == p.Title }
		complain(slices.ContainsFunc(d.Panels[:i], same), "panel %d %q shares its id or its title", p.ID, p.Title)
		complain(p.Datasource != chosen, "panel %q is not of the data source that was chosen", p.Title)
		complain(!strings.Contains(p.Description, "Healthy: "), `the description of panel %q does not say "Healthy: …"`, p.Title)
		complain(len(p.Targets) == 0, "panel %q has no query", p.Title)
	}
	for _, q := range d.queries(anyValues()) {
		if !q.instant {
			errs = append(errs, q.checkRates())
		}
	}
	return errors.Join(errs...)
}

// checkRates complains of a rate in a graph over a window that does not follow the
// graph's step: rates are lost between two points.
func (q query) checkRates() error {
	parsed, err := q.parse()
	if err != nil {
		return err
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		call, ok := node.(*parser.Call)
		if ok && strings.HasSuffix(call.Func.Name, "rate") && !strings.Contains(call.String(), "["+rateInterval+"]") {
			err = fmt.Errorf("%s: %s is not over [$__rate_interval]", q.where, call)
		}
		return nil
	})
	return err
}

func TestShippedDashboards(t *testing.T) {
	t.Parallel()
	for _, d := range dashboards(t) {
		if err := d.check(); err != nil {
			t.Error(err)
		}
	}
}

// TestDashboardsShow holds what docs/monitoring.md says that each dashboard shows:
// a query of a panel with all of these parts.
func TestDashboardsShow(t *testing.T) {
	t.Parallel()
	const byNode = "scheduler_observer_lock_acquired_by_node_total"
	for file, wanted := range map[string][][]string{
		"overview.json": {
			{"stat", "ALERTS", "firing"},
			{"stat", "observerd:nodes_acquiring:count"},
			{"stat", "observerd_poll_last_success_age_seconds"},
			{"stat", "observerd_relay_lag_events"},
			{"stat", "observerd_poison_rows_total"},
		},
		"load-distribution.json": {
			{"timeseries", byNode, "by (node)"},
			{"table", byNode, "by (node, type)"},
			{"table", byNode, "by (node, type)", "[1h]"},
		},
		"observer-health.json": {
			{"timeseries", `scheduler_observer_polls_total{job="$job", type=~"$type", outcome="ok"}`},
			{"timeseries", "histogram_quantile(0.5,", "scheduler_observer_polling_duration_seconds_bucket"},
			{"timeseries", "histogram_quantile(0.95,", "scheduler_observer_polling_duration_seconds_bucket"},
			{"timeseries", "histogram_quantile(0.99,", "scheduler_observer_polling_duration_seconds_bucket"},
			{"timeseries", "observerd:lock_contention:ratio"},
			{"stat", "observerd:lock_acquisition_success:ratio"},
			{"timeseries", "observerd_lock_acquire_duration_seconds_bucket", "0.95"},
			{"timeseries", "observerd_poll_last_success_age_seconds", "by (type, observer)"},
			{"timeseries", "observerd_horizon_lag_seconds"},
		},
		"active-active.json": {
			{"stat", "observerd:nodes_acquiring:count"},
			{"timeseries", "observerd:nodes_acquiring:count"},
			{"timeseries", "sum(rate(observerd_lock_acquire_duration_seconds_count"},
			{"timeseries", "sum(rate(scheduler_observer_lock_acquired_total"},
			{"gauge", "observerd:balance:score"},
		},
		"delivery.json": {
			{"timeseries", "observerd_relay_lag_events", "by (sink)"},
			{"timeseries", "rate(observerd_relay_delivered_events_total", "by (sink)"},
		},
		"general-locks.json": {
			{"timeseries", "rate(observerd_locks_acquisition_attempts_total", "by (subject, predicate)"},
			{"timeseries", "rate(observerd_locks_acquisition_failures_total", "by (reason)"},
			{"timeseries", `observerd_locks_acquisition_failures_total{job="$job", subject=~"$subject", predicate=~"$predicate", reason="contention"}`, "by (subject, predicate)"},
			{"timeseries", "histogram_quantile(0.95,", "observerd_locks_acquisition_duration_seconds_bucket"},
			{"timeseries", "histogram_quantile(0.95,", "observerd_locks_hold_duration_seconds_bucket"},
			{"timeseries", "observerd_locks_active_count", "by (instance)"},
			{"timeseries", "observerd_locks_stale_recovered_total"},
			{"timeseries", "observerd_locks_overstayed_total"},
			{"timeseries", "observerd_locks_acquisition_successes_total", "by (provider)"},
			{"timeseries", "histogram_quantile(0.95,", "observerd_locks_acquisition_duration_seconds_bucket", "by (provider, le)"},
			{"timeseries", "histogram_quantile(0.95,", "observerd_locks_hold_duration_seconds_bucket", "by (provider, le)"},
			{"timeseries", "observerd_locks_active_count", "by (provider)"},
			{"timeseries", "observerd_locks_stale_recovered_total", "by (provider)"},
			{"timeseries", "observerd_locks_overstayed_total", "by (provider)"},
			{"timeseries", "observerd_locks_github_budget_remaining"},
		},
	} {
		for _, parts := range wanted {
			if !slices.ContainsFunc(dashboards(t)[file].Panels, func(p panel) bool { return p.Type == parts[0] && p.asks(parts[1:]) }) {
				t.Errorf("%s has no panel %q", file, parts)
			}
		}
	}
}

// TestOverviewOpensTheOthers follows the links of the overview's panels.
func TestOverviewOpensTheOthers(t *testing.T) {
	t.Parallel()
	all := dashboards(t)
	overview := all["overview.json"].text
	for file, d := range all {
		if file != "overview.json" && !strings.Contains(overview, `"/d/`+d.UID+`?`) {
			t.Errorf("no panel of the overview opens %s", file)
		}
	}
}

// asks reports whether one query of the panel has all of these parts.
func (p panel) asks(parts []string) bool {
	for _, target := range p.Targets {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(target.Expr, part) }) {
			return true
		}
	}
	return false
}

// TestChecksFindMistakes makes one mistake at a time in a dashboard that is right.
func TestChecksFindMistakes(t *testing.T) {
	t.Parallel()
	text := read(t, deployed(t, "grafana", "delivery.json")[0])
	for _, m := range []struct{ old, new, complaint string }{
		{`"uid": "observerd-delivery"`, `"uid": "x"`, "uid"},
		{`    "observerd"`, `    "other"`, "tags"},
		{`"uid": "${datasource}"`, `"uid": "prometheus"`, "not of the data source"},
		{`sink=~\"$sink\"`, `sink=~\"$drain\"`, "$drain is used and not defined"},
		{`"definition": "label_values(observerd_build_info, job)"`, `"definition": "label_values(up, job)"`, "its query is not its definition"},
		{`"id": 2,`, `"id": 1,`, "shares its id"},
		{"Healthy: it returns to 0", "It returns to 0", "Healthy"},
		{`[$__rate_interval]`, "[5m]", "is not over [$__rate_interval]"},
		{`sum by (sink) (max by`, `sum by (sink (max by`, "parse error"},
	} {
		wrong := strings.ReplaceAll(text, m.old, m.new)
		if wrong == text {
			t.Fatalf("%q does not stand there", m.old)
		}
		d, err := parseDashboard("delivery.json", wrong)
		if err == nil {
			err = d.check()
		}
		if err == nil || !strings.Contains(err.Error(), m.complaint) {
			t.Errorf("%s: told %v, want something about %q", m.new, err, m.complaint)
		}
	}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

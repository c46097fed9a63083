package promtest_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/observerd/observerd/test/suite/deploy/promtest"
)

var (
	rulesDir = filepath.Join(root, "deploy", "prometheus")
	testsDir = filepath.Join(rulesDir, "tests")
	docs     = filepath.Join(root, "docs")
	runbooks = filepath.Join(docs, "runbooks")
)

// published is where the runbooks stand for the operator whom an alert wakes.
const published = "https://github.com/observerd/observerd/blob/main/docs/runbooks/"

// readRules reads a file of rules as Prometheus does.
func readRules(t *testing.T, path string) *rulefmt.RuleGroups {
	t.Helper()
	groups, errs := rulefmt.ParseFile(path, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Fatal(err)
	}
	return groups
}

// shippedRules are the recording rules and the alerts that ship.
func shippedRules(t *testing.T) (records, alerts []rulefmt.Rule) {
	t.Helper()
	for _, path := range deployed(t, "prometheus", "*.yaml") {
		for _, group := range readRules(t, path).Groups {
			for _, r := range group.Rules {
				if r.Record != "" {
					records = append(records, r)
				} else {
					alerts = append(alerts, r)
				}
			}
		}
	}
	return records, alerts
}

// promtool runs it in a folder.
func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	path, err := promtest.Promtool(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, path, args...)
	// A quarter of its work would be to collect garbage, of 128 MB at most.
	command.Dir, command.Env = dir, append(os.Environ(), "GOGC=400")
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}

func TestRulesAreWellFormed(t *testing.T) {
	t.Parallel()
	promtool(t, rulesDir, "check", "rules", "recording.yaml", "alerts.yaml")
}

// TestRules runs the unit tests of the rules.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, path := range deployed(t, "prometheus", filepath.Join("tests", "*.yaml")) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			promtool(t, testsDir, "test", "rules", filepath.Base(path))
		})
	}
}

// TestEveryAlertHasTests holds that each alert fires in its unit tests, which stand
// in files named after it, and does not fire in others.
func TestEveryAlertHasTests(t *testing.T) {
	t.Parallel()
	var cases struct {
		RuleFiles []string `yaml:"rule_files"`
		Tests     []struct {
			Alerts []struct {
				Alertname string `yaml:"alertname"`
				Expected  []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		} `yaml:"tests"`
	}
	fires, quiet := make(map[string]int), make(map[string]int)
	for _, path := range deployed(t, "prometheus", filepath.Join("tests", "*.yaml")) {
		cases.RuleFiles, cases.Tests = nil, nil
		if err := yaml.Unmarshal([]byte(read(t, path)), &cases); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if want := []string{"../recording.yaml", "../alerts.yaml"}; !slices.Equal(cases.RuleFiles, want) {
			t.Errorf("%s tests the rules of %q, want %q", path, cases.RuleFiles, want)
		}
		name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".yaml"), "-")
		for _, c := range cases.Tests {
			for _, a := range c.Alerts {
				// The name must be that of the file: a misspelt alert never fires.
				if a.Alertname != name {
					t.Errorf("%s looks at %s", path, a.Alertname)
				} else if len(a.Expected) > 0 {
					fires[a.Alertname]++
				} else {
					quiet[a.Alertname]++
				}
			}
		}
	}
	_, alerts := shippedRules(t)
	for _, a := range alerts {
		if fires[a.Alert] == 0 || quiet[a.Alert] == 0 {
			t.Errorf("%s fires in %d cases of its tests and is quiet in %d; it needs one of each", a.Alert, fires[a.Alert], quiet[a.Alert])
		}
	}
	if len(fires) != len(alerts) {
		t.Errorf("there are tests of %d alerts, and %d alerts", len(fires), len(alerts))
	}
}

func TestRecordedNames(t *testing.T) {
	t.Parallel()
	records, _ := shippedRules(t)
	for _, r := range records {
		if !strings.HasPrefix(r.Record, "observerd:") || strings.Count(r.Record, ":") != 2 {
			t.Errorf("%s is not named observerd:what:how", r.Record)
		}
	}
}

func TestEveryAlertHasItsRunbook(t *testing.T) {
	t.Parallel()
	_, alerts := shippedRules(t)
	list, monitoring := read(t, runbooks, "README.md"), read(t, docs, "monitoring.md")
	want := []string{"README.md"}
	for _, a := range alerts {
		severity := a.Labels["severity"]
		if severity != "critical" && severity != "warning" {
			t.Errorf("%s is %q", a.Alert, severity)
		}
		if want := published + a.Alert + ".md"; a.Annotations["runbook_url"] != want {
			t.Errorf("%s leads to %q, want %s", a.Alert, a.Annotations["runbook_url"], want)
		}
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", a.Alert)
		}
		if page, want := read(t, runbooks, a.Alert+".md"), fmt.Sprintf("# %s\n\n**%s** · ", a.Alert, severity); !strings.HasPrefix(page, want) {
			t.Errorf("the page of %s does not begin with %q", a.Alert, want)
		}
		if row := fmt.Sprintf("| [%s](%[1]s.md) | %s |", a.Alert, severity); !strings.Contains(list, row) {
			t.Errorf("docs/runbooks/README.md has no row %q", row)
		}
		if row := fmt.Sprintf("| [%s](runbooks/%[1]s.md) | %s |", a.Alert, severity); !strings.Contains(monitoring, row) {
			t.Errorf("docs/monitoring.md has no row %q", row)
		}
		want = append(want, a.Alert+".md")
	}
	slices.Sort(want)
	if got := pages(t); !slices.Equal(got, want) {
		t.Errorf("docs/runbooks has the pages %q, want %q", got, want)
	}
}

var (
	// fenced finds the queries of a page, quoted what is no name in one.
	fenced = regexp.MustCompile("(?s)```promql\n(.*?)```")
	quoted = regexp.MustCompile(`"[^"]*"`)
	// metricName finds the names of metrics in a query.
	metricName = regexp.MustCompile(`\b((?:observerd|scheduler)[a-z0-9_:]*)`)
)

// ofLibrary finds the metrics of package locks in docs/locks.md, without their prefix.
var ofLibrary = regexp.MustCompile("`(_[a-z_]+)`")

// TestQueriesOfRunbooks parses them, and looks for their metrics in
// docs/metrics.md, which another test compares with a running node, and in docs/locks.md.
func TestQueriesOfRunbooks(t *testing.T) {
	t.Parallel()
	library := read(t, docs, "locks.md")
	known := read(t, docs, "metrics.md") + library
	for _, m := range ofLibrary.FindAllStringSubmatch(library, -1) {
		known += "`observerd_locks" + m[1] + "``observerd_locks" + m[1] + "_bucket`"
	}
	records, _ := shippedRules(t)
	for _, r := range records {
		known += "`" + r.Record + "`"
	}
	for _, page := range pages(t) {
		for _, block := range found(fenced, read(t, runbooks, page)) {
			for line := range strings.Lines(block) {
				if _, err := (query{where: page, text: line}).parse(); err != nil {
					t.Error(err)
				}
				for _, name := range found(metricName, quoted.ReplaceAllString(line, "")) {
					if !strings.Contains(known, "`"+name+"`") {
						t.Errorf("%s: there is no metric %s", page, name)
					}
				}
			}
		}
	}
}

// pages are the runbooks, in order.
func pages(t *testing.T) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no runbooks: %v", err)
	}
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	slices.Sort(names)
	return names
}

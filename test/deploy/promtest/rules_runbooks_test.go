package promtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	docs     = "../../../docs"
	runbooks = docs + "/runbooks"
	// published is where the pages stand for who is woken by an alert.
	published = "https://github.com/observerd/observerd/blob/main/docs/runbooks/"
)

// severities are who is to be woken, and who is not.
var severities = map[string]string{
	"ObserverdNoLockAcquired":       "critical",
	"ObserverdTypeNotPolled":        "critical",
	"ObserverdTypeNotSucceeding":    "critical",
	"ObserverdLeaseWithoutProgress": "critical",
	"ObserverdLogWentBack":          "critical",
	"ObserverdLockFailureRateHigh":  "warning",
	"ObserverdSingleNodeAcquiring":  "warning",
	"ObserverdPollingSlower":        "warning",
	"ObserverdSinkLag":              "warning",
	"ObserverdDeadEvents":           "warning",
	"ObserverdStaleCommitsRefused":  "warning",
	"ObserverdVersionsDiffer":       "warning",
	"ObserverdReloadFailed":         "warning",
	"ObserverdDefinitionsDiffer":    "warning",
	"ObserverdObserverBehind":       "warning",
	"ObserverdNodePassedOver":       "warning",
}

func TestEveryAlertHasItsRunbook(t *testing.T) {
	t.Parallel()
	alerts := alertsOf(t)
	list, monitoring := read(t, runbooks, "README.md"), read(t, docs, "monitoring.md")
	for _, a := range alerts {
		severity := severities[a.Alert]
		if severity == "" || a.Labels["severity"] != severity {
			t.Errorf("%s is %q, want %q", a.Alert, a.Labels["severity"], severity)
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
	}
	if len(alerts) != len(severities) {
		t.Errorf("%d alerts, want %d", len(alerts), len(severities))
	}
	for _, page := range pages(t) {
		name := strings.TrimSuffix(page, ".md")
		if name != "README" && !slices.ContainsFunc(alerts, func(r Rule) bool { return r.Alert == name }) {
			t.Errorf("docs/runbooks/%s is the page of no alert", page)
		}
	}
}

// fenced finds the queries of a page.
var fenced = regexp.MustCompile("(?s)```promql\n(.*?)```")

// metricNames finds the names of metrics in a query.
var metricNames = regexp.MustCompile(`\b(?:observerd|scheduler)[a-z0-9_:]*`)

// TestQueriesOfRunbooks reads them as Prometheus does, and looks for their metrics
// in docs/metrics.md, which another test compares with a running node.
func TestQueriesOfRunbooks(t *testing.T) {
	t.Parallel()
	known := read(t, docs, "metrics.md")
	for _, r := range recorded(shippedRules(t)) {
		known += "`" + r.Record + "`"
	}
	inText := regexp.MustCompile(`"[^"]*"`)
	for _, page := range pages(t) {
		for _, block := range fenced.FindAllStringSubmatch(read(t, runbooks, page), -1) {
			for query := range strings.Lines(block[1]) {
				if _, err := (Expr{Where: page, Text: query}).Parse(); err != nil {
					t.Error(err)
				}
				for _, name := range metricNames.FindAllString(inText.ReplaceAllString(query, ""), -1) {
					if !strings.Contains(known, "`"+name+"`") {
						t.Errorf("%s: there is no metric %s", page, name)
					}
				}
			}
		}
	}
}

func pages(t *testing.T) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no runbooks: %v", err)
	}
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

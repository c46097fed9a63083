package promtest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// rulesDir is what ships for Prometheus.
const rulesDir = "../../../deploy/prometheus"

// suite is a file of unit tests, as promtool reads it.
type suite struct {
	RuleFiles          []string `yaml:"rule_files"`
	EvaluationInterval string   `yaml:"evaluation_interval"`
	GroupEvalOrder     []string `yaml:"group_eval_order,omitempty"`
	Stories            []story  `yaml:"tests"`

	name string
}

// story is what happens to a cluster, and which alerts fire meanwhile.
type story struct {
	Name        string       `yaml:"name"`
	Interval    string       `yaml:"interval"`
	InputSeries []any        `yaml:"input_series"`
	Alerts      []alertCase  `yaml:"alert_rule_test,omitempty"`
	Results     []resultCase `yaml:"promql_expr_test,omitempty"`
}

type alertCase struct {
	EvalTime  string `yaml:"eval_time"`
	Alertname string `yaml:"alertname"`
	ExpAlerts []any  `yaml:"exp_alerts,omitempty"`
}

type resultCase struct {
	Expr       string `yaml:"expr"`
	EvalTime   string `yaml:"eval_time"`
	ExpSamples []any  `yaml:"exp_samples"`
}

// readSuites reads all files of unit tests. A key that is not known is an error.
func readSuites(t *testing.T) []suite {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(rulesDir, "tests", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no unit tests of rules: %v", err)
	}
	suites := make([]suite, len(paths))
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		decoder := yaml.NewDecoder(bytes.NewReader(text))
		decoder.KnownFields(true)
		if err := decoder.Decode(&suites[i]); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		suites[i].name = strings.TrimSuffix(filepath.Base(path), ".yaml")
	}
	return suites
}

// about reports whether the suite is one of the alert's: its file is named for it,
// with or without an addition such as "-slow".
func (s suite) about(alert string) bool {
	name, _, _ := strings.Cut(s.name, "-")
	return name == alert
}

// only returns the suite with nothing but the cases that keep approves of.
func (s suite) only(alert func(alertCase) bool, result func(resultCase) bool) suite {
	stories := s.Stories
	s.Stories = nil
	for _, st := range stories {
		st.Alerts = slices.DeleteFunc(slices.Clone(st.Alerts), func(c alertCase) bool { return !alert(c) })
		st.Results = slices.DeleteFunc(slices.Clone(st.Results), func(c resultCase) bool { return !result(c) })
		if len(st.Alerts)+len(st.Results) > 0 {
			s.Stories = append(s.Stories, st)
		}
	}
	return s
}

// firing keeps the cases in which the alert fires, quiet those in which it does not.
func (s suite) firing(alert string) suite {
	return s.only(func(c alertCase) bool { return c.Alertname == alert && len(c.ExpAlerts) > 0 },
		func(resultCase) bool { return false })
}

func (s suite) quiet(alert string) suite {
	return s.only(func(c alertCase) bool { return c.Alertname == alert && len(c.ExpAlerts) == 0 },
		func(resultCase) bool { return false })
}

// shippedRules are the rules that ship.
func shippedRules(t *testing.T) []RuleFile {
	t.Helper()
	files := make([]RuleFile, 2)
	for i, name := range []string{"recording.yaml", "alerts.yaml"} {
		file, err := ReadRules(filepath.Join(rulesDir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[i] = file
	}
	return files
}

// alertsOf are the alerts that ship.
func alertsOf(t *testing.T) (all []Rule) {
	t.Helper()
	for _, file := range shippedRules(t) {
		all = append(all, slices.DeleteFunc(file.Rules(), func(r Rule) bool { return r.Alert == "" })...)
	}
	return all
}

// promtool runs it in a folder and returns what it says. A failure that is not
// one of the tests in the files ends the test.
func promtool(t *testing.T, dir string, args ...string) (says string, ok bool) {
	t.Helper()
	path, err := Promtool(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, path, args...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	if err != nil && (ctx.Err() != nil || !strings.Contains(string(out), "FAILED")) {
		t.Fatalf("promtool %v: %v\n%s", args, err, out)
	}
	return string(out), err == nil
}

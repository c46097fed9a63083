package promtest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRulesAreWellFormed(t *testing.T) {
	t.Parallel()
	if says, ok := promtool(t, rulesDir, "check", "rules", "recording.yaml", "alerts.yaml"); !ok {
		t.Error(says)
	}
}

// TestRules runs the stories of deploy/prometheus/tests, each with the rules that
// it is about. A person runs them with `promtool test rules *.yaml`.
func TestRules(t *testing.T) {
	t.Parallel()
	files := shippedRules(t)
	for _, s := range readSuites(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if says, ok := s.passes(t, files); !ok {
				t.Error(says)
			}
		})
	}
}

// TestSuitesAsTheyShip runs a suite in its place.
func TestSuitesAsTheyShip(t *testing.T) {
	t.Parallel()
	if says, ok := promtool(t, filepath.Join(rulesDir, "tests"), "test", "rules", "recording.yaml"); !ok {
		t.Error(says)
	}
}

func TestEveryAlertHasStoriesOfBothKinds(t *testing.T) {
	t.Parallel()
	alerts, suites := alertsOf(t), readSuites(t)
	for _, alert := range alerts {
		fires, quiet := 0, 0
		for _, s := range suites {
			if s.about(alert.Alert) {
				fires += len(s.firing(alert.Alert).Stories)
				quiet += len(s.quiet(alert.Alert).Stories)
			}
		}
		if fires == 0 || quiet == 0 {
			t.Errorf("%s fires in %d stories and is quiet in %d of tests/%[1]s.yaml; it needs one of each", alert.Alert, fires, quiet)
		}
	}
	for _, s := range suites {
		if s.name != "recording" && !slices.ContainsFunc(alerts, func(r Rule) bool { return s.about(r.Alert) }) {
			t.Errorf("tests/%s.yaml is about no alert", s.name)
		}
		if want := []string{"../recording.yaml", "../alerts.yaml"}; !slices.Equal(s.RuleFiles, want) {
			t.Errorf("tests/%s.yaml tests the rules of %q, want %q", s.name, s.RuleFiles, want)
		}
		for _, st := range s.Stories {
			for _, c := range st.Alerts {
				if s.name != "recording" && !s.about(c.Alertname) {
					t.Errorf("tests/%s.yaml, %q: it looks at %s, which may be a mistake in writing", s.name, st.Name, c.Alertname)
				}
			}
		}
	}
}

// TestRecordedNames holds the names that dashboards and people rely on.
func TestRecordedNames(t *testing.T) {
	t.Parallel()
	records := recorded(shippedRules(t))
	for _, want := range []string{
		"observerd:lock_acquisition_success:ratio", "observerd:lock_contention:ratio",
		"observerd:lock_acquire_duration_seconds:p95", "observerd:balance:score",
		"observerd:nodes_acquiring:count", "observerd:nodes_expected:count",
	} {
		if !slices.ContainsFunc(records, func(r Rule) bool { return r.Record == want }) {
			t.Errorf("%s is not recorded", want)
		}
	}
	for _, r := range records {
		if !strings.HasPrefix(r.Record, "observerd:") || strings.Count(r.Record, ":") != 2 {
			t.Errorf("%s is not named observerd:what:how", r.Record)
		}
	}
}

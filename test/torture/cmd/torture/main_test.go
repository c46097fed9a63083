package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/torture/check"
	"github.com/observerd/observerd/test/torture/history"
)

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		code int
		says string
	}{
		"-help":                {exitOK, "how long faults strike"},
		"run -faults flood":    {exitFailed, `there is no fault "flood"`},
		"run -minutes much":    {exitUsage, "invalid value"},
		"dance":                {exitUsage, `no command "dance"`},
		"check":                {exitUsage, "wants the folders"},
		"check /no/such/run":   {exitFailed, "/no/such/run"},
		"report":               {exitUsage, "wants the folders"},
		"report /no/such/run":  {exitFailed, "torture check"},
		"mutants -only nobody": {exitUsage, `no mutant "nobody"`},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(line)
			if args[0] == "run" {
				args = append(args, "-binary", "/no/such/binary", "-folder", filepath.Join(t.TempDir(), "run"))
			}
			var stdout, stderr strings.Builder
			if code := run(args, &stdout, &stderr); code != want.code {
				t.Errorf("exit code %d, want %d", code, want.code)
			}
			if !strings.Contains(stderr.String(), want.says) {
				t.Errorf("stderr is %q, want %q in it", &stderr, want.says)
			}
		})
	}
}

// made is the result of a run, in a folder of its own.
func made(t *testing.T, seed int64, lost int) string {
	t.Helper()
	r := result{
		Report: check.Report{
			Meta: history.Meta{
				Seed: seed, Duration: 5 * time.Minute, Nodes: []string{"a", "b", "c"}, TTL: 6 * time.Second,
				Command: "make torture SEED=7", Versions: map[string]string{"Go": "go1.26"},
				Settings: map[string]string{"fsync": "on", "drained": "2.5s"},
			},
			Counts: map[check.Count]int{check.Owed: 100}, LongestOverlap: time.Second, Found: map[check.Kind]int{},
			Faults:   map[string]check.FaultCount{"kill": {Injected: 3, Bit: 2}},
			Required: map[string]float64{"observerd_takeovers_total": 5},
		},
		Counters: map[string]float64{`observerd_takeovers_total{rule="ttl"}`: 4, "go_goroutines": 12},
	}
	if lost > 0 {
		r.Report.Found[check.Lost] = lost
	}
	dir := t.TempDir()
	if err := r.keep(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReportAddsRunsUp(t *testing.T) {
	t.Parallel()
	document := filepath.Join(t.TempDir(), "reliability.md")
	words := "# Before\n\n<!-- torture:begin -->\nold figures\n<!-- torture:end -->\n\n# After\n"
	if err := os.WriteFile(document, []byte(words), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	if code := run([]string{"report", "-write", document, made(t, 7, 0), made(t, 8, 1)}, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	written, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{stdout.String(), string(written)} {
		for _, part := range []string{
			"2 of 10 minutes under faults together: 1 failed, 1 passed", "seeds: 7, 8", "| lost | 1 of 200 |",
			"| fault kill | 6 injected, 4 bit |", "longest 1s |", "| observerd_takeovers_total | 10 |", "| `observerd_takeovers_total{rule=\"ttl\"}` | 8 |",
			"2.5s at most", "fsync = on", "make torture SEED=7",
		} {
			if !strings.Contains(text, part) {
				t.Errorf("%q is missing in:\n%s", part, text)
			}
		}
		if strings.Contains(text, "go_goroutines") || strings.Contains(text, "old figures") {
			t.Errorf("too much in:\n%s", text)
		}
	}
	if text := string(written); !strings.HasPrefix(text, "# Before") || !strings.HasSuffix(text, "# After\n") {
		t.Errorf("the words around the figures were not kept:\n%s", text)
	}
}

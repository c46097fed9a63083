package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/test/suite/torture/history"
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
		"mutants -only nobody": {exitUsage, `no mutant "nobody"`},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(line)
			if args[0] == "run" {
				args = append(args, "-binary", "/no/such/binary", "-holder", "/no/such/holder", "-folder", filepath.Join(t.TempDir(), "run"))
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

// TestCheckJudgesWhatARunHasLeft judges a run that lacks everything.
func TestCheckJudgesWhatARunHasLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := history.Save(dir, history.Run{Meta: history.Meta{Seed: 7, Planned: []string{"kill"}}}); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	if code := run([]string{"check", dir}, &stdout, &stderr); code != exitFailed || !strings.Contains(stderr.String(), "has not passed") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
	report, err := os.ReadFile(filepath.Join(dir, "report.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{stdout.String(), string(report)} {
		if !strings.HasPrefix(text, "void: seed 7") || !strings.Contains(text, "the fault kill was planned and never injected") {
			t.Errorf("the report is\n%s", text)
		}
	}
}

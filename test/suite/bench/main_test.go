package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// TestMain lets the test binary be the worker of the backlog, as the command
// is its own.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	waittest.VerifyNoLeaks(mariatest.Wrap(pgtest.Wrap(m)))
}

// daily are the measurements that take seconds. Their figures are in figuresOfADay.
func daily() []string { return []string{"locks", "guard", "backlog", "quiet", "sources", "sinks"} }

var figuresOfADay = []string{
	"p50, 1 connection", "p50, 8 connections", "8 contenders", "poll, default chunk", "poll, chunks of 2,500",
	"hand-written loop", "hand-written loop, chunks of 1,000", "bare COPY", "peak memory", "fsync = on",
	"Source PostgreSQL", "Source MariaDB", "Source Oracle, through the emulator", "poll that keeps nothing",
	"poll into the event log", "bare driver loop", "peak memory of polls of 2,000", "round trips of a poll", "bytes per key",
	"round trips to the source", "CPU of the source", "sql without the log", "kafka without the log", "webhook, batched", "watermill-sql",
	"other work on it", "1; a range is from the lowest to the highest",
}

// TestQuickRunMeasures runs the command on small sizes. It fails unless loop and poll
// store the same rows, and every row.
func TestQuickRunMeasures(t *testing.T) {
	t.Parallel()
	measureQuickly(t, daily(), figuresOfADay)
}

func measureQuickly(t *testing.T, only, figures []string) {
	t.Helper()
	document := filepath.Join(t.TempDir(), "performance.md")
	words := "# Before\n\n" + beginMark + "\nold figures\n" + endMark + "\n\n# After\n"
	if err := os.WriteFile(document, []byte(words), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options{admin: pgtest.New(t), maria: mariatest.New(t), write: document, only: only, runs: 1, chunks: []int{2_500}, loops: []int{1_000}, sizes: quickSizes()}
	var stdout, stderr bytes.Buffer
	if err := bench(t.Context(), o, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	written, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{stdout.String(), string(written)} {
		for _, figure := range figures {
			if !strings.Contains(text, figure) {
				t.Errorf("%q is missing in:\n%s", figure, text)
			}
		}
	}
	if text := string(written); !strings.HasPrefix(text, "# Before") || !strings.HasSuffix(text, "# After\n") || strings.Contains(text, "old figures") {
		t.Errorf("the words around the figures were not kept:\n%s", text)
	}
}

func TestOptions(t *testing.T) {
	t.Setenv(pgtest.EnvURL, "postgres://nobody@127.0.0.1:1/postgres")
	t.Setenv(mariatest.EnvURL, "mysql://nobody@127.0.0.1:1/")
	for name, test := range map[string]struct {
		args  []string
		fault string
	}{
		"all":                 {args: nil},
		"some":                {args: []string{"-quick", "-only", "locks,turn", "-chunks", "", "-loops", "1000,2000", "-rounds", "2"}},
		"unknown measurement": {args: []string{"-only", "sleep"}, fault: `no measurement is named "sleep"`},
		"not a flag":          {args: []string{"quick"}, fault: `"quick" is not a flag`},
		"several runs":        {args: []string{"-runs", "5"}},
		"no run":              {args: []string{"-runs", "0"}, fault: "-runs 0 measures nothing"},
		"chunk of nothing":    {args: []string{"-chunks", "5000,0"}, fault: `"0" is not a number of rows`},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			_, err := parseOptions(test.args, &stderr)
			if (err != nil) != (test.fault != "") || !strings.Contains(stderr.String(), test.fault) {
				t.Errorf("error %v, and on stderr %q; want %q", err, stderr.String(), test.fault)
			}
		})
	}
}

func TestMissedGoalIsSaid(t *testing.T) {
	t.Parallel()
	m := measured{figures: []figure{
		{group: "g", what: "slow", value: say("2 s"), goal: "under 1 s", met: []bool{false, false}},
		{group: "g", what: "at times", value: say("0.5 to 2 s"), goal: "under 1 s", met: []bool{true, false, true}},
		{group: "g", what: "fast", value: say("0.5 s"), goal: "under 1 s", met: []bool{true}},
		{group: "g", what: "not applicable", value: say("4 s"), goal: "under 1 s"},
		{group: "g", what: "only told", value: say("3 s")},
	}}
	text := m.tables()
	for _, line := range []string{
		"| slow | 2 s |  | under 1 s | **MISSED** |", "| at times | 0.5 to 2 s |  | under 1 s | **MISSED in 1 of 3 runs** |",
		"| fast | 0.5 s |  | under 1 s | **met** |", "| not applicable | 4 s |  | under 1 s |  |", "| only told | 3 s |  |  |  |",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is missing in:\n%s", line, text)
		}
	}
}

func TestDocumentWithoutMarksIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "performance.md")
	if err := os.WriteFile(path, []byte("words"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (report{}).update(path); err == nil {
		t.Error("figures were written to a document that has no place for them")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "words" {
		t.Errorf("the document now says %q (%v)", text, err)
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	values := []int{5, 1, 4, 2, 3}
	before := slices.Clone(values)
	for q, want := range map[float64]int{0: 1, 0.5: 3, 0.95: 5, 1: 5} {
		if got := quantile(values, q); got != want {
			t.Errorf("quantile %v is %d, want %d", q, got, want)
		}
	}
	if !slices.Equal(values, before) {
		t.Error("the values were sorted in place")
	}
	if got := quantile([]int(nil), 0.5); got != 0 {
		t.Errorf("the quantile of nothing is %d", got)
	}
}

func TestWorkerRefusesAnUnknownJob(t *testing.T) {
	t.Parallel()
	var stdout bytes.Buffer
	err := work(context.Background(), strings.NewReader(`{"Kind":"sleep"}`), &stdout)
	if err == nil || stdout.Len() > 0 {
		t.Errorf("error %v, answer %q", err, &stdout)
	}
}

package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// The figures of a document stand between these lines.
const (
	beginMark = "<!-- bench:begin -->"
	endMark   = "<!-- bench:end -->"
)

// measuredOf is a measurement with one figure.
func measuredOf(name, value string) measured {
	return measured{name, []figure{{group: "About " + name, what: "what " + name + " takes", value: say("%s", words{value})}}}
}

// everythingMeasured is the report of a run of everything.
func everythingMeasured(value string) report {
	r := report{circumstances: []circumstance{{"date", say("2026-01-01")}, {"machine", say("slow")}}}
	for _, name := range names() {
		r.measured = append(r.measured, measuredOf(name, value))
	}
	return r
}

// TestSomeFiguresAreReplacedAlone writes a run of everything, and one of a part
// of it on another day.
func TestSomeFiguresAreReplacedAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "performance.md")
	if err := os.WriteFile(path, []byte("before\n"+beginMark+"\nnone yet\n"+endMark+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(r report) string {
		t.Helper()
		if err := r.update(path); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	all := write(everythingMeasured("1 s"))
	later := report{
		circumstances: []circumstance{{"date", say("2026-02-02")}, {"machine", say("slow")}},
		measured:      []measured{measuredOf("turn", "2 s")},
	}
	some := write(later)
	for _, want := range []string{
		"before\n", "\nafter\n", "- date: 2026-01-01\n- machine: slow\n", "Measured in a run of its own:\n\n- date: 2026-02-02\n\n### About turn",
		"| what turn takes | 2 s |", "| what locks takes | 1 s |", "| what idle takes | 1 s |",
	} {
		if !strings.Contains(some, want) {
			t.Errorf("%q is missing in:\n%s", want, some)
		}
	}
	if strings.Contains(some, "| what turn takes | 1 s |") || strings.Contains(some, "none yet") {
		t.Errorf("old figures were kept:\n%s", some)
	}
	if strings.Index(some, "About turn") > strings.Index(some, "About idle") {
		t.Errorf("the order has changed:\n%s", some)
	}
	if again := write(later); again != some {
		t.Errorf("the same figures make another document:\n%s", again)
	}
	if whole := write(everythingMeasured("1 s")); whole != all {
		t.Errorf("a run of everything left something behind:\n%s", whole)
	}
}

// TestPerformanceIsWhatIsMeasured compares docs/performance.md with the command: its
// measurements, its flags, and the chunks of the loop.
func TestPerformanceIsWhatIsMeasured(t *testing.T) {
	t.Setenv(pgtest.EnvURL, "postgres://nobody@127.0.0.1:1/postgres")
	t.Setenv(mariatest.EnvURL, "mysql://nobody@127.0.0.1:1/")
	file, err := os.ReadFile("../../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(file)
	_, figures, begun := strings.Cut(text, beginMark)
	figures, _, ended := strings.Cut(figures, endMark)
	if !begun || !ended {
		t.Fatal("the document has no place for figures")
	}
	if found, want := slices.Sorted(maps.Keys(readBlock(figures).parts)), slices.Sorted(slices.Values(names())); !slices.Equal(found, want) {
		t.Errorf("the document has figures of %q, the command measures %q", found, want)
	}
	commands := regexp.MustCompile(`BENCHFLAGS='([^']*)'`).FindAllStringSubmatch(text, -1)
	if len(commands) < 5 {
		t.Errorf("only %d commands were found", len(commands))
	}
	for _, command := range commands {
		var stderr strings.Builder
		if _, err := parseOptions(strings.Fields(command[1]), &stderr); err != nil {
			t.Errorf("%s: %v: %s", command[0], err, &stderr)
		}
	}
	if want := "in transactions of " + thousands(loopChunk) + " rows"; !strings.Contains(text, want) {
		t.Errorf("the document does not say %q", want)
	}
}

// TestFirstFiguresMayBeSome writes a part into a document without figures: its
// circumstances are those of the whole.
func TestFirstFiguresMayBeSome(t *testing.T) {
	t.Parallel()
	r := report{circumstances: []circumstance{{"date", say("2026-01-01")}}, measured: []measured{measuredOf("locks", "1 s")}}
	text := r.onto("")
	if !strings.HasPrefix(text, "- date: 2026-01-01\n\n"+partMark("locks")) || strings.Contains(text, "run of its own") {
		t.Error(text)
	}
}

// TestFiguresByNameOutliveARunOfEverything has a run that measures what it measures by itself.
func TestFiguresByNameOutliveARunOfEverything(t *testing.T) {
	t.Parallel()
	named := report{circumstances: []circumstance{{"date", say("2026-01-01")}}, measured: []measured{measuredOf("sink-down", "1 s")}}
	all := report{circumstances: []circumstance{{"date", say("2026-02-02")}}}
	for _, m := range measurements() {
		if !m.byName {
			all.measured = append(all.measured, measuredOf(m.name, "2 s"))
		}
	}
	text := all.onto(named.onto(everythingMeasured("3 s").onto("")))
	if !strings.Contains(text, "Measured in a run of its own:\n\n- date: 2026-01-01\n\n### About sink-down") || strings.Contains(text, "| what locks takes | 3 s |") {
		t.Error(text)
	}
}

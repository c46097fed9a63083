package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// measuredOf is a measurement with one figure.
func measuredOf(name, value string) measured {
	return measured{name, []figure{{group: "About " + name, what: "what " + name + " takes", value: value}}}
}

// everythingMeasured is the report of a run of everything.
func everythingMeasured(value string) report {
	r := report{circumstances: []circumstance{{"date", "2026-01-01"}, {"machine", "slow"}}}
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
		circumstances: []circumstance{{"date", "2026-02-02"}, {"machine", "slow"}},
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

// TestFirstFiguresMayBeSome writes a part into a document without figures: its
// circumstances are those of the whole.
func TestFirstFiguresMayBeSome(t *testing.T) {
	t.Parallel()
	r := report{circumstances: []circumstance{{"date", "2026-01-01"}}, measured: []measured{measuredOf("locks", "1 s")}}
	text := r.onto("")
	if !strings.HasPrefix(text, "- date: 2026-01-01\n\n"+partMark("locks")) || strings.Contains(text, "run of its own") {
		t.Error(text)
	}
}

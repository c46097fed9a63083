package mutant

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/suite/torture/check"
)

// TestRunnerBuildsAndTries builds a real mutant and sees what the runner makes
// of the trials.
func TestRunnerBuildsAndTries(t *testing.T) {
	t.Parallel()
	var numbers []int
	r := Runner{Root: root, Folder: t.TempDir(), Try: func(ctx context.Context, tr Trial) (Findings, error) {
		numbers = append(numbers, tr.Number)
		if _, err := os.Stat(tr.Binary); err != nil {
			t.Error(err)
		}
		out, err := exec.CommandContext(ctx, tr.Binary, "version").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "mutant-has-no-horizon") {
			t.Errorf("the binary says %q: %v", out, err)
		}
		switch tr.Number {
		case 1:
			return Findings{Void: "no late commit"}, nil
		case 2:
			return Findings{Kinds: []check.Kind{check.Overlap}}, nil
		}
		return Findings{Kinds: []check.Kind{check.Lost}}, nil
	}}
	m := Mutant{Name: "has-no-horizon", Without: []Step{horizon()}, Expect: []check.Kind{check.Lost}}
	results := r.Run(t.Context(), []Mutant{m})
	if !slices.Equal(numbers, []int{1, 2, 3}) {
		t.Errorf("trials %v", numbers)
	}
	if len(results) != 1 || results[0].Trials != 3 || results[0].Verdict() != "caught: lost" {
		t.Errorf("results %+v", results)
	}
}

// TestRunnerTriesWitnesses has one that fails, one that does not notice, and one that
// does not compile.
func TestRunnerTriesWitnesses(t *testing.T) {
	t.Parallel()
	const file = "internal/jsontext/jsontext.go"
	without := func(old, replacement string) []Step {
		return []Step{{What: "a step is missing", Edits: []Edit{{file, old, replacement}}}}
	}
	r := Runner{Root: root, Folder: t.TempDir()}
	for _, c := range []struct {
		m       Mutant
		verdict string
	}{
		{Mutant{Name: "noticed", Without: without(`c != '"'`, "true")}, "caught: internal/jsontext TestEveryByteInEveryPlace"},
		{Mutant{Name: "unnoticed", Without: without("size == 0 {\n\t\t\t\treturn dst, false", "size == 0 {\n\t\t\t\treturn dst[:0], false")}, "got away"},
		{Mutant{Name: "broken", Without: without(`c != '"'`, "!")}, "not tried: internal/jsontext TestEveryByteInEveryPlace does not run on the mutant"},
	} {
		c.m.Witness = "internal/jsontext TestEveryByteInEveryPlace"
		results := r.Run(t.Context(), []Mutant{c.m})
		if got := results[0].Verdict(); !strings.HasPrefix(got, c.verdict) {
			t.Errorf("%s: %s, want %s", c.m.Name, got, c.verdict)
		}
	}
	unseen := Mutant{Name: "unseen", Without: without(`c != '"'`, "true"), Witness: "internal/jsontext TestThatIsNotThere"}
	if got := r.Run(t.Context(), []Mutant{unseen})[0].Verdict(); !strings.Contains(got, "does not pass on the source as it is: the test was not run") {
		t.Errorf("a witness that is not there: %s", got)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	m := Mutant{Name: "m", Without: []Step{{What: "one is missing"}, {What: "so is the other"}}, Expect: []check.Kind{check.Lost}}
	caught, away := Result{Mutant: m, Trials: 1, Took: time.Minute}, Result{Mutant: m, Trials: 3}
	caught.take(Findings{Kinds: []check.Kind{check.Lost, check.Reordered}}, nil)
	away.take(Findings{Kinds: []check.Kind{check.Reordered}}, nil)
	failed, void := Result{Mutant: m}, Result{Mutant: m}
	failed.take(Findings{}, errors.New("no server"))
	void.take(Findings{Void: "no kill"}, nil)

	var out bytes.Buffer
	if err := Summary(&out, []Result{caught}); err != nil {
		t.Errorf("all were caught: %v", err)
	}
	if want := "| m | one is missing; and so is the other | lost | 1 | 1m0s |"; !strings.Contains(out.String(), want) {
		t.Errorf("no line %q in\n%s", want, &out)
	}
	out.Reset()
	if err := Summary(&out, []Result{caught, away, failed, void}); !errors.Is(err, errAway) {
		t.Errorf("three got away: %v", err)
	}
	for _, want := range []string{"got away; found instead: reordered", "not tried: no server", "void: no kill", "Mutants caught: 1 of 4"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

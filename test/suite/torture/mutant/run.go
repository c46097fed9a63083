package mutant

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/observerd/observerd/test/suite/torture/check"
)

// Trial is one run of one mutant.
type Trial struct {
	Mutant Mutant
	Binary string
	// Holder is the program that holds general locks; empty for none.
	Holder string
	// Number counts the trials of the mutant, from 1, and is the seed. A later one
	// may last longer.
	Number int
}

// Findings are what a trial has shown.
type Findings struct {
	// Kinds are the kinds of the violations that were found.
	Kinds []check.Kind
	// Void says why the trial proves nothing, as when no fault struck; empty for
	// one that counts.
	Void string
}

// Runner runs mutants.
type Runner struct {
	// Root is the module's; Folder is where binaries are built. Required.
	Root, Folder string
	// Try runs a trial and checks it. An error is one of the harness, not of the
	// mutant. Required.
	Try func(ctx context.Context, t Trial) (Findings, error)
	// Progress hears what goes on; nil does not.
	Progress func(format string, args ...any)
}

// Result is what became of one mutant.
type Result struct {
	Mutant Mutant
	// Caught are the kinds that were expected and found; empty for a mutant
	// that got away.
	Caught []check.Kind
	// Witnessed says that its witness failed, where that is what is tried.
	Witnessed bool
	// Other are kinds that were found and are not its own: a mistake of the
	// harness, or of the mutant's description.
	Other []check.Kind
	// Void and Err are those of the last trial.
	Void string
	Err  error
	// Trials is how many it took.
	Trials int
	Took   time.Duration
}

// A mutant may get away in all trials but the last; limit bounds one.
const (
	trials = 3
	limit  = 15 * time.Minute
)

// Run runs the mutants one after the other. It ends early only with ctx.
func (r Runner) Run(ctx context.Context, mutants []Mutant) []Result {
	if r.Progress == nil {
		r.Progress = func(string, ...any) {}
	}
	var all []Result
	for _, m := range mutants {
		if ctx.Err() != nil {
			break
		}
		result := r.run(ctx, m)
		r.Progress("mutant %s: %s", m.Name, result.Verdict())
		all = append(all, result)
	}
	return all
}

func (r Runner) run(ctx context.Context, m Mutant) Result {
	began := time.Now()
	result := Result{Mutant: m}
	if len(m.Expect) == 0 {
		result.Trials = 1
		result.Witnessed, result.Err = r.witness(ctx, m)
		result.Took = time.Since(began)
		return result
	}
	binary, holder, err := m.Build(ctx, r.Root, filepath.Join(r.Folder, m.Name))
	if err != nil {
		result.Err, result.Took = err, time.Since(began)
		return result
	}
	for len(result.Caught) == 0 && result.Trials < trials && ctx.Err() == nil {
		result.Trials++
		result.take(r.try(ctx, Trial{Mutant: m, Binary: binary, Holder: holder, Number: result.Trials}))
	}
	result.Took = time.Since(began)
	return result
}

func (r Runner) try(ctx context.Context, t Trial) (Findings, error) {
	r.Progress("mutant %s, trial %d: %s", t.Mutant.Name, t.Number, t.Mutant.Missing())
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return r.Try(ctx, t)
}

// take notes what a trial has found.
func (r *Result) take(f Findings, err error) {
	r.Void, r.Err = f.Void, err
	r.Other = nil
	for _, kind := range f.Kinds {
		if slices.Contains(r.Mutant.Expect, kind) {
			r.Caught = append(r.Caught, kind)
		} else {
			r.Other = append(r.Other, kind)
		}
	}
}

// errAway is that of [Summary] when a mutant got away.
var errAway = errors.New("mutants got away")

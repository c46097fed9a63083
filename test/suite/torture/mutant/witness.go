package mutant

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// witness reports whether the witness of a mutant fails on it. That it fails on the
// source as it is, or does not run, is an error: it would tell nothing.
func (r Runner) witness(ctx context.Context, m Mutant) (failed bool, err error) {
	overlay, err := m.Apply(r.Root, filepath.Join(r.Folder, m.Name))
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r.Progress("mutant %s, by %s: %s", m.Name, m.Witness, m.Missing())
	passed, output, err := r.test(ctx, m)
	if err == nil && !passed {
		err = errors.New("it fails")
	}
	if err != nil {
		return false, fmt.Errorf("%s does not pass on the source as it is: %w\n%s", m.Witness, err, output)
	}
	passed, output, err = r.test(ctx, m, "-overlay", overlay)
	if err != nil {
		return false, fmt.Errorf("%s does not run on the mutant: %w\n%s", m.Witness, err, output)
	}
	return !passed, nil
}

// test runs the witness. It has failed only where it says so itself: what does not
// compile is an error.
func (r Runner) test(ctx context.Context, m Mutant, flags ...string) (passed bool, output string, err error) {
	folder, name, _ := strings.Cut(m.Witness, " ")
	args := append([]string{"test", "-count=1", "-v", "-run", "^" + name + "$"}, flags...)
	dir := r.Root
	if suite, ok := strings.CutPrefix(folder, "test/suite/"); ok { // Another module.
		dir, folder = filepath.Join(r.Root, "test", "suite"), suite
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+folder)...)
	cmd.Dir = dir
	said, err := cmd.CombinedOutput()
	output = string(said)
	exit := new(exec.ExitError)
	switch {
	case ctx.Err() != nil:
		return false, output, context.Cause(ctx)
	case strings.Contains(output, "--- PASS: "+name) && err == nil:
		return true, output, nil
	case strings.Contains(output, "--- FAIL: "+name) && errors.As(err, &exit):
		return false, output, nil
	case err == nil:
		err = errors.New("the test was not run")
	}
	return false, output, err
}

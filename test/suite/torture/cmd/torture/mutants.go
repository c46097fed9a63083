package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/test/kit/testbed"
	"github.com/observerd/observerd/test/suite/torture"
	"github.com/observerd/observerd/test/suite/torture/check"
	"github.com/observerd/observerd/test/suite/torture/mutant"
)

// hunt is the command "mutants": it removes the safety steps of the daemon, one
// at a time, and wants each of them missed.
func hunt(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("torture mutants", flag.ContinueOnError)
	flags.SetOutput(stderr)
	folder := flags.String("folder", filepath.Join("var", "torture", "mutants-"+time.Now().UTC().Format("20060102T150405")), "an empty `folder` for binaries and runs")
	only := flags.String("only", "", "only these mutants, separated by commas")
	write := flags.String("write", "", "replace the table in this Markdown `file`")
	if err := flags.Parse(args); err != nil {
		return usageOf(err)
	}
	mutants, err := wanted(*only)
	if err != nil {
		return err
	}
	runner := mutant.Runner{
		Root: ".", Folder: filepath.Join(*folder, "build"),
		Try:      func(ctx context.Context, t mutant.Trial) (mutant.Findings, error) { return try(ctx, *folder, t) },
		Progress: func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) },
	}
	var table bytes.Buffer
	away := mutant.Summary(&table, runner.Run(ctx, mutants))
	if _, err := stdout.Write(table.Bytes()); err != nil {
		return err
	}
	if *write == "" {
		return away
	}
	return errors.Join(away, testbed.Write(*write, "mutants", table.Bytes()))
}

// wanted are the mutants with these names; empty for all of them.
func wanted(names string) ([]mutant.Mutant, error) {
	all := mutant.All()
	if names == "" {
		return all, nil
	}
	var some []mutant.Mutant
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(m mutant.Mutant) bool { return m.Name == name })
		if i < 0 {
			return nil, usageError{fmt.Errorf("there is no mutant %q", name)}
		}
		some = append(some, all[i])
	}
	return some, nil
}

// mutantDrain bounds how long a mutant is waited for that has lost something.
const mutantDrain = 20 * time.Second

// strikes is how long faults strike in the first trial of a mutant; later ones take
// longer.
const strikes = 45 * time.Second

// try is one run of a mutant.
func try(ctx context.Context, folder string, t mutant.Trial) (mutant.Findings, error) {
	m := t.Mutant
	dir := filepath.Join(folder, fmt.Sprintf("%s-%d", m.Name, t.Number))
	out, err := torture.Run(ctx, torture.Options{
		Seed: int64(t.Number), Duration: strikes * time.Duration(t.Number), Every: 2 * time.Second, Drain: mutantDrain,
		Coordination: m.Hints.Coordination, Nodes: m.Hints.Nodes, Binary: t.Binary, Holder: t.Holder, Dir: dir, Mutant: m.Name,
		Failpoints: m.Hints.Failpoints, Faults: m.Hints.Faults, ChunkRows: m.Hints.ChunkRows, Command: "make torture MUTANTS=1",
	})
	if err != nil {
		return mutant.Findings{}, err
	}
	report := check.Check(out.History)
	return mutant.Findings{Void: strings.Join(report.Void, "; "), Kinds: slices.Sorted(maps.Keys(report.Found))}, keep(report, dir)
}

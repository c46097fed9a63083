package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/suite/torture"
	"github.com/observerd/observerd/test/suite/torture/check"
	"github.com/observerd/observerd/test/suite/torture/history"
)

// torment is the command "run".
func torment(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("torture run", flag.ContinueOnError)
	flags.SetOutput(stderr)
	o := torture.Options{Progress: func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }}
	minutes := flags.Float64("minutes", 3, "how long faults strike")
	faults := flags.String("faults", "", "only these `kinds` of faults, separated by commas: "+strings.Join(torture.Kinds(), ", "))
	flags.Int64Var(&o.Seed, "seed", 0, "what the run follows from; 0: the clock")
	flags.IntVar(&o.Nodes, "nodes", 3, "how many processes")
	flags.StringVar(&o.Coordination, "coordination", torture.PostgreSQL, torture.PostgreSQL+" or "+torture.SQLite+", a file that all nodes share")
	flags.IntVar(&o.Types, "types", 3, "how many types, each with one observer")
	flags.StringVar(&o.Binary, "binary", "", "an observerd built with the tag failpoints; empty: it is built")
	flags.StringVar(&o.Holder, "holder", "", "the program that holds general locks (test/suite/torture/cmd/holder), built with the tag failpoints; empty: it is built")
	flags.StringVar(&o.Dir, "folder", "", "an empty `folder` for what the run leaves behind; empty: var/torture/TIME-SEED")
	flags.DurationVar(&o.TTL, "ttl", 0, "how long a lock outlives its last renewal; 0: 6s, or 15s with SQLite")
	flags.DurationVar(&o.Interval, "interval", 0, "the distance between the polls of a type; 0: 1s, or 60ms for each type")
	flags.IntVar(&o.ChunkRows, "chunk", 0, "how many `rows` commit at once; 0: it varies")
	if err := flags.Parse(args); err != nil {
		return usageOf(err)
	}
	o.Duration = time.Duration(*minutes * float64(time.Minute))
	if *faults != "" {
		o.Faults = strings.Split(*faults, ",")
	}
	if o.Seed == 0 {
		o.Seed = time.Now().UnixNano() % 1e9
	}
	o.Command = fmt.Sprintf("make torture SEED=%d MINUTES=%g NODES=%d", o.Seed, *minutes, o.Nodes)
	if o.Types != 3 || o.Coordination != torture.PostgreSQL {
		o.Command += fmt.Sprintf(" TORTUREFLAGS='-coordination %s -types %d'", o.Coordination, o.Types)
	}
	if o.Dir == "" {
		o.Dir = filepath.Join("var", "torture", fmt.Sprintf("%s-%d", time.Now().UTC().Format("20060102T150405"), o.Seed))
	}
	if o.Binary == "" {
		o.Binary = o.Dir + ".bin"
		if err := daemon.Build(ctx, daemon.BuildOptions{Out: o.Binary, Tags: "failpoints"}); err != nil {
			return err
		}
	}
	if o.Holder == "" {
		o.Holder = o.Dir + ".holder"
		if err := daemon.Build(ctx, daemon.BuildOptions{Package: torture.HolderPackage, Out: o.Holder, Tags: "failpoints"}); err != nil {
			return err
		}
	}
	fmt.Fprintf(stderr, "seed %d, folder %s\n", o.Seed, o.Dir)
	done, err := torture.Run(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(done.Unhealed, judge(done.History, o.Dir, stdout))
}

func usageOf(err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	return usageError{err}
}

// checkAgain is the command "check".
func checkAgain(_ context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("torture check", flag.ContinueOnError)
	flags.SetOutput(stderr)
	if err := flags.Parse(args); err != nil {
		return usageOf(err)
	}
	if flags.NArg() == 0 {
		return usageError{errors.New("check wants the folders of runs")}
	}
	var errs []error
	for _, dir := range flags.Args() {
		done, err := history.Load(dir)
		if err == nil {
			err = judge(done, dir, stdout)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// errVerdict reports a run that has not passed.
var errVerdict = errors.New("the run has not passed")

// judge checks a run, and writes the report to stdout and into the run's
// folder.
func judge(done history.Run, dir string, stdout io.Writer) error {
	report := check.Check(done)
	if err := keep(report, dir); err != nil {
		return err
	}
	fmt.Fprint(stdout, report)
	if v := report.Verdict(); v != check.Passed {
		return fmt.Errorf("%w: %s: %s", errVerdict, dir, v)
	}
	return nil
}

// keep writes a report into the folder of its run.
func keep(report check.Report, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "report.txt"), []byte(report.String()), 0o644); err != nil { //nolint:gosec // People read it.
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

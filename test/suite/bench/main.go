// Command bench measures observerd beside the barest code that does the same
// work, and prints what it found beside the goals:
//
//	make bench
//
// What is compared runs in turns within one run (A, B, A, B, …), so that
// whatever else the machine does meets both alike; a figure is the median of
// its rounds, and of several runs the range of these medians. The cluster named by
// PGTEST_URL must be a throw-away one: the command makes databases in it and drops
// them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) //nolint:forbidigo // It is the main of a command.
}

// Exit codes. A missed goal is a result, not a failure.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 64
)

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) > 0 && args[0] == workerCommand {
		return exitCode(work(ctx, stdin, stdout), stderr)
	}
	if len(args) > 0 && args[0] == pairsCommand {
		return exitCode(pairs(ctx, args[1:], stdout, stderr), stderr)
	}
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		return exitUsage // The flags have said why.
	}
	return exitCode(bench(ctx, o, stdout, stderr), stderr)
}

func exitCode(err error, stderr io.Writer) int {
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitFailed
	}
	return exitOK
}

// measurement is one of the things that the command can measure.
type measurement struct {
	name    string
	measure func(context.Context, *suite) ([]figure, error)
	// byName is measured only where -only names it: it takes minutes, and differs little from
	// run to run.
	byName bool
}

// measurements are in the order in which they run and are reported.
func measurements() []measurement {
	return []measurement{
		{name: "locks", measure: measureLocks},
		{name: "general-locks", measure: measureGeneralLocks},
		{name: "redis-locks", measure: measureRedisLocks},
		{name: "kubernetes-locks", measure: measureKubernetesLocks},
		{name: "github-queue", measure: measureGitHubQueue},
		{name: "guard", measure: measureGuard},
		{name: "backlog", measure: measureBacklog},
		{name: "snapshot", measure: measureSnapshot},
		{name: "quiet", measure: measureQuiet},
		{name: "turn", measure: measureTurn},
		{name: "idle", measure: measureIdle},
		{name: "idle-nodes", measure: measureIdleNodes},
		{name: "page", measure: measurePage},
		{name: "words", measure: measureWords},
		{name: "many-locks", measure: measureManyLocks},
		{name: "sources", measure: measureSources},
		{name: "sinks", measure: measureSinks},
		{name: "file", measure: measureFile},
		{name: "arrival", measure: measureArrival},
		{name: "many-nodes", measure: measureManyNodes, byName: true},
		{name: "many-observers", measure: measureManyObservers, byName: true},
		{name: "many-types", measure: measureManyTypes, byName: true},
		{name: "many-streams", measure: measureManyStreams, byName: true},
		{name: "idle-sinks", measure: measureIdleSinks, byName: true},
		{name: "sink-down", measure: measureSinkDown, byName: true},
	}
}

// suite is what all measurements of a run share.
type suite struct {
	options
	cluster *cluster
	stderr  io.Writer
}

// progress tells a person who waits what is going on.
func (s *suite) progress(format string, args ...any) {
	fmt.Fprintf(s.stderr, "bench: "+format+"\n", args...)
}

// bench measures in as many runs as are wanted. What was written of the runs
// before stays when one fails.
func bench(ctx context.Context, o options, stdout, stderr io.Writer) error {
	var all report
	for n := range o.runs {
		one, err := measureAll(ctx, o, n+1, stderr)
		if err == nil && n > 0 {
			one, err = all.and(one)
		}
		if err == nil && o.write != "" {
			err = one.update(o.write)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("run %d of %d: %w", n+1, o.runs, err), all.text(stdout))
		}
		all = one
	}
	if o.json {
		return all.json(stdout)
	}
	return all.text(stdout)
}

// measureAll is one run, in databases of its own.
func measureAll(ctx context.Context, o options, n int, stderr io.Writer) (report, error) {
	c, err := openCluster(ctx, o.admin)
	if err != nil {
		return report{}, err
	}
	defer c.close(context.WithoutCancel(ctx))
	s := &suite{options: o, cluster: c, stderr: stderr}
	s.progress("run %d of %d", n, o.runs)
	r := report{}
	if r.circumstances, err = circumstances(ctx, s); err != nil {
		return report{}, err
	}
	for _, m := range measurements() {
		if !o.wants(m) {
			continue
		}
		figures, err := s.profiled(ctx, m)
		if err != nil {
			return report{}, fmt.Errorf("measure %s: %w", m.name, err)
		}
		r.measured = append(r.measured, measured{m.name, figures})
	}
	return r, nil
}

// profiled measures, and profiles this process meanwhile if that is wanted.
func (s *suite) profiled(ctx context.Context, m measurement) ([]figure, error) {
	finish, err := startProfile(s.profile, m.name)
	if err != nil {
		return nil, err
	}
	figures, err := m.measure(ctx, s)
	return figures, errors.Join(err, finish())
}

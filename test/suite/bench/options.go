package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// options are the flags of the command.
type options struct {
	// admin is the URL of a superuser of the throw-away cluster, maria that of
	// a throw-away MariaDB.
	admin, maria string
	// write is the Markdown file whose figures are replaced; empty for none.
	write string
	// json says that the report is for a program: see [report.json].
	json bool
	// only names the measurements that are wanted; empty means all.
	only []string
	// runs is how often all of it is measured.
	runs int
	// profile is the folder for CPU and heap profiles of the polls; empty for
	// none.
	profile string
	// chunks are the chunk sizes of the poll that are tried beside the default,
	// loops those of the hand-written loop.
	chunks, loops []int
	sizes
}

// sizes say how much is measured.
type sizes struct {
	// rows is the size of the backlog.
	rows int
	// rounds is how often each side of a comparison runs.
	rounds int
	// lockCycles is how often a connection takes its lock in one round.
	lockCycles int
	// quietPolls is how many quiet polls of a source are timed.
	quietPolls int
	// turns is how many turns of 1,000 rows are taken.
	turns int
	// warmup and idle are how long a node runs before its CPU is measured, and
	// while it is.
	warmup, idle time.Duration
	// nodes and manyNodes are how many are idle together, observers how many two of them poll.
	nodes, manyNodes, observers int
	// contest is how long contenders want a general lock in one round, held and many how
	// many are held where the holder is measured and where an idle node is, and pairs how
	// often that node is measured.
	contest           time.Duration
	held, many, pairs int
	// sources are the sizes of the tables that are read from PostgreSQL and
	// MariaDB, emulated those from the emulator of Oracle, which keeps them in
	// memory. They ascend, and the first is that of the round trips.
	sources, emulated []int
	// sourceRounds is how often each side of their comparison runs.
	sourceRounds int
	// fed is how many events sinks are fed.
	fed int
	// arriving is how long rows are committed one by one.
	arriving time.Duration
	// streams is how many have an event each.
	streams int
	// quick says that these sizes prove that it works, and no more.
	quick bool
	// listen is how long the machine is listened to before a run.
	listen time.Duration
}

func fullSizes() sizes {
	return sizes{
		rows: 1_000_000, rounds: 5, lockCycles: 500, quietPolls: 300, turns: 40, warmup: 35 * time.Second, idle: 2 * time.Minute, nodes: 20, manyNodes: 100, observers: 2000,
		contest: 5 * time.Second, held: 10_000, many: 100_000, pairs: 3,
		sources: []int{10_000, 100_000, 1_000_000}, emulated: []int{10_000, 100_000, 200_000}, sourceRounds: 3,
		fed: 100_000, arriving: 30 * time.Second, streams: 10_000, listen: 5 * time.Second,
	}
}

// quickSizes prove that everything works; the figures mean little.
func quickSizes() sizes {
	return sizes{
		rows: 20_000, rounds: 1, lockCycles: 20, quietPolls: 3, turns: 3, warmup: time.Second, idle: 2 * time.Second, nodes: 2, manyNodes: 3, observers: 20,
		contest: 200 * time.Millisecond, held: 50, many: 200, pairs: 1,
		sources: []int{2_000, 6_000}, emulated: []int{2_000, 6_000}, sourceRounds: 1, fed: 4_000, arriving: time.Second, streams: 100, quick: true, listen: 100 * time.Millisecond,
	}
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	o := options{
		admin: os.Getenv(pgtest.EnvURL), maria: os.Getenv(mariatest.EnvURL),
		chunks: []int{2_500, 10_000, 20_000}, loops: []int{20_000}, sizes: fullSizes(),
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", false, "use small sizes, which prove that it works but measure little")
	only := flags.String("only", "", "measure only these, separated by commas: "+strings.Join(names(), ", "))
	flags.StringVar(&o.write, "write", "", "replace the figures in this Markdown `file`")
	flags.BoolVar(&o.json, "json", false, "print the figures as JSON, as bench pairs reads them")
	flags.StringVar(&o.profile, "profile", "", "write profiles of the polls to this `folder`")
	flags.Func("chunks", "chunk `sizes` of the poll to try beside the default, separated by commas", setChunks(&o.chunks))
	flags.Func("loops", "chunk `sizes` of the hand-written loop to try beside its own, separated by commas", setChunks(&o.loops))
	flags.IntVar(&o.runs, "runs", 1, "how often to measure all of it; the report then says from where to where the figures go")
	rows := flags.Int("rows", 0, "size of the backlog; 0 means a million")
	rounds := flags.Int("rounds", 0, "how often each side of a comparison runs; 0 means 5, or 3 where sources are read")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if *quick {
		o.sizes = quickSizes()
	}
	if *rows > 0 {
		o.rows = *rows
	}
	if *rounds > 0 {
		o.rounds, o.sourceRounds = *rounds, *rounds
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	err := o.check(flags.Args())
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
	}
	return o, err
}

func (o options) check(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("%q is not a flag", rest[0])
	}
	if o.runs < 1 {
		return fmt.Errorf("-runs %d measures nothing; use a number above 0", o.runs)
	}
	for _, name := range o.only {
		if !slices.Contains(names(), name) {
			return fmt.Errorf("no measurement is named %q: there are %s", name, strings.Join(names(), ", "))
		}
	}
	if o.admin == "" || o.maria == "" {
		return errors.New(pgtest.EnvURL + " or " + mariatest.EnvURL + " is not set: run `make bench`")
	}
	return nil
}

func (o options) wants(m measurement) bool {
	return len(o.only) == 0 && !m.byName || slices.Contains(o.only, m.name)
}

func names() []string {
	var all []string
	for _, m := range measurements() {
		all = append(all, m.name)
	}
	return all
}

// setChunks reads chunk sizes; the empty text means none.
func setChunks(chunks *[]int) func(string) error {
	return func(text string) error {
		*chunks = nil
		for part := range strings.SplitSeq(text, ",") {
			if part == "" {
				continue
			}
			n, err := strconv.Atoi(part)
			if err != nil || n <= 0 {
				return fmt.Errorf("%q is not a number of rows", part)
			}
			*chunks = append(*chunks, n)
		}
		return nil
	}
}

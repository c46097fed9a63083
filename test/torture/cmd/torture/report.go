package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/test/kit/testbed"
	"github.com/observerd/observerd/test/torture/check"
)

// reportAll is the command "report": the figures of many runs together.
func reportAll(_ context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("torture report", flag.ContinueOnError)
	flags.SetOutput(stderr)
	write := flags.String("write", "", "replace the figures in this Markdown `file`")
	if err := flags.Parse(args); err != nil {
		return usageOf(err)
	}
	if flags.NArg() == 0 {
		return usageError{errors.New("report wants the folders of runs")}
	}
	var c campaign
	for _, dir := range flags.Args() {
		r, err := loadResult(dir)
		if err != nil {
			return err
		}
		c.add(r)
	}
	text := c.markdown()
	if _, err := stdout.Write(text); err != nil {
		return err
	}
	if *write == "" {
		return nil
	}
	return testbed.Write(*write, "torture", text)
}

// campaign is many runs.
type campaign struct {
	runs     []check.Report
	sum      check.Report
	counters map[string]float64
}

func (c *campaign) add(r result) {
	if c.counters == nil {
		c.counters = make(map[string]float64)
	}
	for name, value := range r.Counters {
		c.counters[name] += value
	}
	c.runs = append(c.runs, r.Report)
	c.sum = c.sum.Plus(r.Report)
}

// shown are the counters whose series are listed one by one.
var shown = []string{
	"observerd_stale_commits_refused_total", "observerd_commit_conflicts_total", "observerd_unknown_commits_resolved_total",
	"observerd_takeovers_total", "observerd_leases_lost_total", "observerd_stalled_sessions_ended_total",
	"observerd_poll_panics_total", "observerd_relay_sink_failures_total",
}

func (c *campaign) markdown() []byte {
	var b bytes.Buffer
	for _, line := range c.circumstances() {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	b.WriteString("\n" + c.sum.Markdown())
	b.WriteString("\nWhat the nodes counted:\n\n| counter | sum |\n|---|---:|\n")
	for _, name := range slices.Sorted(maps.Keys(c.counters)) {
		bare, _, _ := strings.Cut(name, "{")
		if slices.Contains(shown, bare) {
			fmt.Fprintf(&b, "| `%s` | %.0f |\n", name, c.counters[name])
		}
	}
	return b.Bytes()
}

// circumstances are what somebody needs to know to do it again.
func (c *campaign) circumstances() []string {
	var seeds []string
	var minutes time.Duration
	nodes, verdicts := make(map[string]bool), make(map[check.Verdict]int)
	facts := make(map[string]bool)
	for _, r := range c.runs {
		m := r.Meta
		seeds = append(seeds, fmt.Sprint(m.Seed))
		minutes += m.Duration
		nodes[fmt.Sprintf("%d nodes with a TTL of %s", len(m.Nodes), m.TTL)] = true
		verdicts[r.Verdict()]++
		for _, group := range []map[string]string{m.Versions, m.Settings} {
			for name, value := range group {
				if name != "drained" {
					facts[name+" = "+value] = true
				}
			}
		}
	}
	var judged []string
	for _, v := range slices.Sorted(maps.Keys(verdicts)) {
		judged = append(judged, fmt.Sprintf("%d %s", verdicts[v], v))
	}
	return []string{
		fmt.Sprintf("runs: %d of %.0f minutes under faults together: %s", len(c.runs), minutes.Minutes(), strings.Join(judged, ", ")),
		"seeds: " + strings.Join(seeds, ", "),
		"clusters: " + strings.Join(slices.Sorted(maps.Keys(nodes)), "; "),
		"settings: " + strings.Join(slices.Sorted(maps.Keys(facts)), ", "),
		"time until everything was delivered once all was healed: " + c.drained(),
		"command: `" + c.runs[0].Meta.Command + "`, with each seed",
	}
}

// drained is how long it took at most.
func (c *campaign) drained() string {
	var most time.Duration
	for _, r := range c.runs {
		if d, err := time.ParseDuration(r.Meta.Settings["drained"]); err == nil {
			most = max(most, d)
		}
		if _, unhealed := r.Meta.Settings["unhealed"]; unhealed {
			return "not always"
		}
	}
	return most.String() + " at most"
}

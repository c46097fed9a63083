package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
)

func (c *cli) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show nodes, types, observers, sinks and locks of the cluster",
		Args:  takes(0, 0),
	}
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, 15*time.Second)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.operate(cmd.Context(), *timeout, admin.OperatorOptions{}, func(ctx context.Context, operator *admin.Operator) error {
			report, err := operator.Report(ctx)
			switch {
			case err != nil:
				return err
			case *output == formatJSON:
				return printJSON(c.stdout, report)
			}
			return printReport(c.stdout, report)
		})
	}
	return cmd
}

// section is one table of the report.
type section struct {
	title    string
	headings []string
	rows     [][]string
}

func printReport(w io.Writer, r admin.Report) error {
	fmt.Fprintf(w, "cluster on %s at %s\n", r.Backend, r.At.Format(time.RFC3339))
	sections := []section{nodeSection(r), typeSection(r), observerSection(r), pollSection(r), sinkSection(r), lockSection(r)}
	for _, rare := range []section{wentBackSection(r), generationSection(r), sweepSection(r), accountSection(r)} {
		if len(rare.rows) > 0 {
			sections = append(sections, rare)
		}
	}
	for _, s := range sections {
		fmt.Fprintf(w, "\n%s\n", s.title)
		if len(s.rows) == 0 {
			fmt.Fprintln(w, "none")
			continue
		}
		if err := table(w, s.headings, s.rows); err != nil {
			return err
		}
	}
	return nil
}

func nodeSection(r admin.Report) section {
	s := section{title: "NODES", headings: []string{"NAME", "VERSION", "CONFIG", "TYPES", "UNREACHABLE", "OUTDATED", "UP", "SEEN"}}
	for _, n := range r.Nodes {
		up := span(r.At.Sub(n.StartedAt))
		if n.Gone {
			up = "gone"
		}
		s.rows = append(s.rows, []string{
			n.Name, orDash(n.Version), n.ConfigHash, orDash(strings.Join(n.Types, ",")), orDash(strings.Join(n.Unreachable, ",")),
			orDash(strings.Join(n.Outdated, ",")), up, ago(r.At, n.SeenAt),
		})
	}
	return s
}

func typeSection(r admin.Report) section {
	s := section{title: "TYPES", headings: []string{"TYPE", "LAST TURN", "NODE", "OUTCOME", "TOOK"}}
	for _, t := range r.Types {
		s.rows = append(s.rows, []string{t.Name, ago(r.At, t.TurnAt), orDash(t.LastNode), orDash(t.LastOutcome), span(t.LastDuration)})
	}
	return s
}

func observerSection(r admin.Report) section {
	s := section{title: "OBSERVERS", headings: []string{"OBSERVER", "STATE", "LAST OK", "EVENTS", "ROWS", "POISON", "LAG", "NEWEST", "LAST ERROR"}}
	for _, o := range r.Observers {
		state := o.State
		if o.RetryAt.After(r.At) {
			state += " for " + span(o.RetryAt.Sub(r.At))
		}
		lag := "-"
		if o.Lag > 0 {
			lag = span(o.Lag)
		}
		s.rows = append(s.rows, []string{
			o.ID, state, ago(r.At, o.LastOKAt), strconv.FormatInt(o.Events, 10), strconv.FormatInt(o.Live, 10),
			strconv.FormatInt(o.Dead, 10), lag, orDash(o.Newest), orDash(oneLine(o.LastError)),
		})
	}
	return s
}

func pollSection(r admin.Report) section {
	s := section{title: "LAST POLLS", headings: []string{"OBSERVER", "NODE", "WHEN", "TOOK", "OUTCOME", "ROWS", "EVENTS", "POISON", "WHY"}}
	for _, p := range r.Polls {
		s.rows = append(s.rows, []string{
			p.Observer, p.Node, ago(r.At, p.StartedAt), span(p.Duration), p.Outcome, strconv.FormatInt(p.Rows, 10),
			strconv.FormatInt(p.Events, 10), strconv.FormatInt(p.Poison, 10), orDash(oneLine(p.Reason)),
		})
	}
	return s
}

func sinkSection(r admin.Report) section {
	s := section{title: "SINKS", headings: []string{"SINK", "OBSERVER", "STORED", "OF", "LAG"}}
	for _, k := range r.Sinks {
		s.rows = append(s.rows, []string{k.Sink, k.Stream, strconv.FormatInt(k.Offset, 10), strconv.FormatInt(k.Last, 10), span(k.Lag)})
	}
	return s
}

func lockSection(r admin.Report) section {
	s := section{title: "LOCKS", headings: []string{"LOCK", "REGION", "HOLDER", "FENCE", "TERM", "TTL LEFT"}}
	for _, l := range r.Locks {
		name, holder, left := l.Name, l.Holder, "expired"
		switch {
		case holder == "":
			// A Java node for example: only its key and term are known.
			name, holder, left = l.Key, "not observerd", "unknown"
		case l.Left > 0:
			left = span(l.Left)
		}
		if l.Ahead > 0 {
			left += ", dated " + span(l.Ahead) + " ahead"
		}
		s.rows = append(s.rows, []string{orDash(name), l.Region, holder, strconv.FormatInt(l.Fence, 10), l.Term, left})
	}
	if r.MoreLocks > 0 {
		s.rows = append(s.rows, []string{fmt.Sprintf("and at least %d more", r.MoreLocks), "", "", "", "", ""})
	}
	return s
}

// generationSection has the observers that read all rows, in as many polls as that
// takes.
func generationSection(r admin.Report) section {
	s := section{title: "READING ALL ROWS", headings: []string{"OBSERVER", "READ", "OF", "STARTED", "FINISHED", "LAST TOOK"}}
	for _, g := range r.Generations {
		of, finished, took := strconv.FormatInt(g.Of, 10), "not yet", "-"
		if !g.FinishedAt.IsZero() {
			of, finished = "-", ago(r.At, g.FinishedAt)
		}
		if g.Took > 0 || !g.FinishedAt.IsZero() {
			took = span(g.Took)
		}
		s.rows = append(s.rows, []string{
			g.Observer, strconv.FormatInt(g.Rows, 10), of, ago(r.At, g.StartedAt), finished, took,
		})
	}
	return s
}

// sweepSection has the backfills and reconciles that run.
func sweepSection(r admin.Report) section {
	s := section{title: "SWEEPS", headings: []string{"OBSERVER", "KIND", "FROM", "BEFORE", "AT", "ROWS", "EVENTS", "STARTED", "LAST STEP"}}
	for _, w := range r.Sweeps {
		s.rows = append(s.rows, []string{
			w.Observer, w.Kind, orDash(w.From), orDash(w.Before), orDash(w.Position), strconv.FormatInt(w.Rows, 10),
			strconv.FormatInt(w.Events, 10), ago(r.At, w.StartedAt), ago(r.At, w.UpdatedAt),
		})
	}
	return s
}

// accountSection has the accounts that no node tries before 'observerd observers resume'.
func accountSection(r admin.Report) section {
	s := section{title: "REFUSED ACCOUNTS", headings: []string{"ACCOUNT", "NODE", "REFUSED", "WHY"}}
	for _, a := range r.Accounts {
		s.rows = append(s.rows, []string{a.ID, a.Node, ago(r.At, a.Since), orDash(oneLine(a.Reason))})
	}
	return s
}

// wentBackSection has the streams whose events of before readers may have.
func wentBackSection(r admin.Report) section {
	s := section{title: "EVENT LOG WENT BACK", headings: []string{"OBSERVER", "NOTICED BY", "WHEN", "EVENT"}}
	for _, b := range r.WentBack {
		s.rows = append(s.rows, []string{b.Observer, orDash(b.Node), ago(r.At, b.At), oneLine(b.Detail)})
	}
	return s
}

// oneLine keeps a text from breaking a table, and a terminal from obeying it:
// keys and messages are written by others.
func oneLine(text string) string {
	return escaped(strings.Join(strings.Fields(text), " "))
}

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
)

func (c *cli) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show nodes, types, observers, sinks and locks of the cluster",
		Long: `Show nodes, types, observers, sinks and locks of the cluster, as the coordination
database has them. Of an observer, EVENTS/10MIN and ROWS/10MIN are those of the polls that
have ended in the last 10 minutes, and LAST ERROR stays until a poll goes well.

On a terminal, what needs attention has a color, unless NO_COLOR is set.`,
		Example: `  observerd status
  observerd status --watch
  observerd status -o json | jq '.observers[] | select(.state != "active")'`,
		Args: takes(0, 0),
	}
	output, timeout, watch := outputFlag(cmd), timeoutFlag(cmd, 15*time.Second), watchFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.operate(cmd.Context(), 0, admin.OperatorOptions{}, func(ctx context.Context, operator *admin.Operator) error {
			show := func(ctx context.Context, w io.Writer) error {
				report, err := operator.Report(ctx)
				switch {
				case err != nil:
					return err
				case *output == formatJSON:
					return printJSON(w, report)
				}
				return printReport(w, c.painter(), report)
			}
			if *watch {
				return c.watch(ctx, *timeout, *output == formatText, show)
			}
			return within(ctx, *timeout, c.stdout, show)
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

func printReport(w io.Writer, p painter, r admin.Report) error {
	if p {
		w = asIs(w) // The tables escape what they print.
	}
	fmt.Fprintf(w, "cluster on %s at %s\n", r.Backend, r.At.Format(time.RFC3339))
	sections := []section{nodeSection(r), typeSection(r), observerSection(r), pollSection(r.At, r.Polls), sinkSection(r.At, r.Sinks), lockSection(r)}
	return printSections(w, p, append(sections, rare(pauseSection(r.At, r.Observers), wentBackSection(r), generationSection(r.At, r.Generations),
		sweepSection(r.At, r.Sweeps), accountSection(r.At, r.Accounts))...))
}

// rare leaves out the sections that are empty.
func rare(sections ...section) []section {
	return slices.DeleteFunc(sections, func(s section) bool { return len(s.rows) == 0 })
}

func printSections(w io.Writer, p painter, sections []section) error {
	for _, s := range sections {
		fmt.Fprintf(w, "\n%s\n", s.title)
		if len(s.rows) == 0 {
			fmt.Fprintln(w, "none")
			continue
		}
		if err := p.table(w, s.headings, s.rows); err != nil {
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
	s := section{title: "TYPES", headings: []string{"TYPE", "EVERY", "LAST TURN", "NODE", "OUTCOME", "TOOK", "NEXT TURN"}}
	for _, t := range r.Types {
		s.rows = append(s.rows, []string{
			t.Name, spanOrDash(t.Interval), ago(r.At, t.TurnAt), orDash(t.LastNode), orDash(t.LastOutcome), span(t.LastDuration), until(r.At, t.NextAt),
		})
	}
	return s
}

func observerSection(r admin.Report) section {
	s := section{title: "OBSERVERS", headings: []string{
		"OBSERVER", "SOURCE", "STATE", "EVERY", "LAST OK", "NEXT POLL", "EVENTS/10MIN", "ROWS/10MIN", "EVENTS", "ROWS", "POISON", "LAG", "NEWEST", "LAST ERROR",
	}}
	for _, o := range r.Observers {
		events, rows := "-", "-"
		if o.Recent.Polls > 0 {
			events, rows = number(o.Recent.Events), number(o.Recent.Rows)
		}
		s.rows = append(s.rows, []string{
			o.ID, orDash(o.Source), stateOf(r.At, o), spanOrDash(o.Interval), ago(r.At, o.LastOKAt), until(r.At, o.NextPollAt), events, rows,
			number(o.Events), number(o.Live), number(o.Dead), spanOrDash(o.Lag), orDash(o.Newest), orDash(oneLine(o.LastError)),
		})
	}
	return s
}

// stateOf is the state of an observer, and for how long it lasts.
func stateOf(now time.Time, o admin.Observer) string {
	switch {
	case o.State == admin.StatePaused && !o.Pause.Until.IsZero():
		return o.State + " for " + span(o.Pause.Until.Sub(now))
	case o.State == admin.StateBackoff:
		return o.State + " for " + span(o.RetryAt.Sub(now))
	}
	return o.State
}

func pauseSection(now time.Time, observers []admin.Observer) section {
	s := section{title: "PAUSED", headings: []string{"OBSERVER", "SINCE", "ENDS", "BY", "REASON"}}
	for _, o := range observers {
		if o.Pause == nil {
			continue
		}
		ends := "when resumed"
		if !o.Pause.Until.IsZero() {
			ends = until(now, o.Pause.Until)
		}
		since := "-"
		if !o.Pause.At.IsZero() {
			since = ago(now, o.Pause.At)
		}
		s.rows = append(s.rows, []string{o.ID, since, ends, orDash(oneLine(o.Pause.By)), orDash(oneLine(o.Pause.Reason))})
	}
	return s
}

func pollSection(now time.Time, polls []admin.Poll) section {
	s := section{title: "LAST POLLS", headings: []string{"OBSERVER", "NODE", "WHEN", "TOOK", "OUTCOME", "ROWS", "EVENTS", "POISON", "WHY"}}
	for _, p := range polls {
		s.rows = append(s.rows, []string{
			p.Observer, p.Node, ago(now, p.StartedAt), span(p.Duration), p.Outcome, number(p.Rows),
			number(p.Events), number(p.Poison), orDash(oneLine(p.Reason)),
		})
	}
	return s
}

func sinkSection(now time.Time, sinks []admin.Sink) section {
	s := section{title: "SINKS", headings: []string{"SINK", "OBSERVER", "STORED", "OF", "LAG", "NODE", "LAST ERROR"}}
	for _, k := range sinks {
		why := "-"
		if k.LastError != "" {
			why = fmt.Sprintf("on %s, for %s: %s", k.FailedNode, span(now.Sub(k.FailedAt)), oneLine(k.LastError))
		}
		s.rows = append(s.rows, []string{k.Sink, k.Stream, number(k.Offset), number(k.Last), span(k.Lag), orDash(k.Node), why})
	}
	return s
}

func lockSection(r admin.Report) section {
	s := section{title: "LOCKS", headings: []string{"LOCK", "REGION", "HOLDER", "FENCE", "TTL LEFT"}}
	for _, l := range r.Locks {
		name, holder, left := l.Name, l.Holder, "expired"
		switch {
		case holder == "":
			// A Java node for example: only its key and term are known.
			holder, left = "not observerd", "unknown"
		case l.Left > 0:
			left = span(l.Left)
		}
		if l.Ahead > 0 {
			left += ", dated " + span(l.Ahead) + " ahead"
		}
		if name == "" {
			name = shortKey(l.Key)
		}
		s.rows = append(s.rows, []string{orDash(name), l.Region, holder, number(l.Fence), left})
	}
	if r.MoreLocks > 0 {
		s.rows = append(s.rows, []string{fmt.Sprintf("and at least %d more", r.MoreLocks), "", "", "", ""})
	}
	return s
}

// shortKey is the key of a lock without a name: of a UUID its beginning, which is enough to
// find the row.
func shortKey(key string) string {
	if _, err := uuid.Parse(key); err != nil {
		return key
	}
	return key[:8] + "-…"
}

// spanOrDash is a duration; 0 is none.
func spanOrDash(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return span(d)
}

// generationSection has the observers that read all rows, in as many polls as that
// takes.
func generationSection(now time.Time, generations []admin.Generation) section {
	s := section{title: "READING ALL ROWS", headings: []string{"OBSERVER", "READ", "OF", "STARTED", "FINISHED", "LAST TOOK"}}
	for _, g := range generations {
		of, finished, took := number(g.Of), "not yet", "-"
		if !g.FinishedAt.IsZero() {
			of, finished = "-", ago(now, g.FinishedAt)
		}
		if g.Took > 0 || !g.FinishedAt.IsZero() {
			took = span(g.Took)
		}
		s.rows = append(s.rows, []string{
			g.Observer, number(g.Rows), of, ago(now, g.StartedAt), finished, took,
		})
	}
	return s
}

// sweepSection has the backfills and reconciles that run.
func sweepSection(now time.Time, sweeps []admin.Sweep) section {
	s := section{title: "SWEEPS", headings: []string{"OBSERVER", "KIND", "FROM", "BEFORE", "AT", "ROWS", "EVENTS", "STARTED", "LAST STEP"}}
	for _, w := range sweeps {
		s.rows = append(s.rows, []string{
			w.Observer, w.Kind, orDash(w.From), orDash(w.Before), orDash(w.Position), number(w.Rows),
			number(w.Events), ago(now, w.StartedAt), ago(now, w.UpdatedAt),
		})
	}
	return s
}

// accountSection has the accounts that no node tries before 'observerd observers resume'.
func accountSection(now time.Time, accounts []admin.Account) section {
	s := section{title: "REFUSED ACCOUNTS", headings: []string{"ACCOUNT", "NODE", "REFUSED", "WHY"}}
	for _, a := range accounts {
		s.rows = append(s.rows, []string{a.ID, a.Node, ago(now, a.Since), orDash(oneLine(a.Reason))})
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

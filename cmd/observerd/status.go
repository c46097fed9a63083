package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/jsontext/terminal"
	"github.com/observerd/observerd/internal/status"
)

func (c *cli) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show nodes, types, observers, sinks and locks of the cluster",
		Long: `Show the verdict, what needs attention and the command to run, and then the nodes,
types, observers, sinks and locks of the cluster, as the coordination database has them.
With --exit-code the exit code is 0 for ok, 3 for degraded, 4 for failing, and 1 if
it is unknown.

Of an observer, EVENTS/10MIN and ROWS/10MIN are those of the polls that
have ended in the last 10 minutes, and LAST ERROR is shown until a poll succeeds.

With --watch a terminal shows what fits into its height, observers before sinks, nodes
and types, and prints how much is omitted.

On a terminal, what needs attention has a color, unless NO_COLOR is set.`,
		Example: `  observerd status
  observerd status --watch
  observerd status --exit-code
  observerd status -o json | jq '.observers[] | select(.state != "active")'`,
		Args: takes(0, 0),
	}
	output, timeout, watch := outputFlag(cmd), timeoutFlag(cmd, 15*time.Second), watchFlag(cmd)
	coded := cmd.Flags().Bool("exit-code", false, "end with the exit code of the verdict")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *coded && *watch {
			return usageError{errors.New("--exit-code and --watch exclude each other")}
		}
		verdict, lines := status.Verdict{}, func() int { return 0 }
		if *watch && *output == formatText {
			lines = c.terminalLines
		}
		err := c.operate(cmd.Context(), 0, admin.OperatorOptions{}, func(ctx context.Context, operator *admin.Operator) error {
			show := func(ctx context.Context, w io.Writer) error {
				report, err := operator.Report(ctx)
				verdict = report.Verdict
				return answer(w, *output, report, err, func() error { return printReport(w, c.painter(), report, lines()) })
			}
			if *watch {
				return c.watch(ctx, *timeout, *output == formatText, show)
			}
			return within(ctx, *timeout, func(ctx context.Context) error { return show(ctx, c.stdout) })
		})
		if !*coded {
			return err
		}
		return verdictError(verdict, err)
	}
	return cmd
}

// verdictError has the exit code of a verdict, or of one that could not be given.
func verdictError(v status.Verdict, err error) error {
	if err != nil {
		return codeError{exitFailure, err}
	}
	code := map[status.Level]int{status.LevelDegraded: exitFindings, status.LevelFailing: exitFailing}[v.Level]
	if code == exitOK {
		return nil
	}
	return codeError{code, saidError{errors.New(v.Headline())}}
}

// section is one table of the report. more says how many rows are left out; empty for none.
type section struct {
	title    string
	headings []string
	rows     [][]string
	more     string
}

// printReport prints a report. With a height it prints what fits into so many lines, the most
// important sections first; 0 is no limit.
func printReport(w io.Writer, p painter, r status.Report, height int) error {
	if p {
		w = terminal.AsIs(w) // The tables escape what they print.
	}
	fmt.Fprintln(w, p.paint(r.Verdict.Headline(), colorOf("LEVEL", string(r.Verdict.Level))))
	fmt.Fprintf(w, "cluster on %s at %s\n", r.Backend, r.At.Format(time.RFC3339))
	attention, nodes, types, observers, polls := attentionSection(r), nodeSection(r), typeSection(r), observerSection(r), pollSection(r.At, r.Polls)
	sinks, locks := sinkSection(r.At, r.Sinks), lockSection(r)
	others := rare(pauseSection(r.At, r.Observers), wentBackSection(r), generationSection(r.At, r.Generations), sweepSection(r.At, r.Sweeps), accountSection(r.At, r.Accounts))
	if height > 0 {
		const above = 2 // the lines that are printed already
		shown, hidden := fit(rare(append([]section{attention, observers, sinks, nodes, types, polls, locks}, others...)...), height-above)
		if err := printSections(w, p, shown); err != nil || len(hidden) == 0 {
			return err
		}
		_, err := fmt.Fprintf(w, "… and more: %s\n", strings.Join(hidden, ", "))
		return err
	}
	return printSections(w, p, slices.Concat(rare(attention), []section{nodes, types, observers, polls, sinks, locks}, others))
}

// fit cuts sections down to so many lines, of which the last may name the sections that are
// left out.
func fit(sections []section, lines int) (shown []section, hidden []string) {
	const around = 3 // an empty line, the title and the headings
	lines--
	for _, s := range sections {
		switch room := lines - around; {
		case len(s.rows) <= room:
		case room >= 2:
			s.more = fmt.Sprintf("… and %d more", len(s.rows)-room+1)
			s.rows = s.rows[:room-1]
			lines--
		default:
			hidden = append(hidden, s.title)
			continue
		}
		lines -= around + len(s.rows)
		shown = append(shown, s)
	}
	return shown, hidden
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
		if s.more != "" {
			fmt.Fprintln(w, s.more)
		}
	}
	return nil
}

// sectionOf is a section with a row of each value.
func sectionOf[T any](title string, headings []string, values []T, row func(T) []string) section {
	return section{title: title, headings: headings, rows: fn.Each(values, row)}
}

func attentionSection(r status.Report) section {
	return sectionOf("NEEDS ATTENTION", []string{"WHAT", "LEVEL", "SINCE", "WHY", "RUN", "RUNBOOK"}, r.Verdict.Attention, func(a status.Attention) []string {
		return []string{oneLine(a.What), string(a.Level), agoOrDash(r.At, a.Since), oneLine(a.Why), orDash(a.Command), orDash(a.Runbook)}
	})
}

func nodeSection(r status.Report) section {
	headings := []string{"NAME", "VERSION", "CONFIG", "TYPES", "UNREACHABLE", "OUTDATED", "UP", "SEEN"}
	return sectionOf("NODES", headings, r.Nodes, func(n status.Node) []string {
		return []string{
			n.Name, orDash(n.Version), n.ConfigHash, orDash(strings.Join(n.Types, ",")), orDash(strings.Join(n.Unreachable, ",")),
			orDash(strings.Join(n.Outdated, ",")), either(n.Gone, "gone", span(r.At.Sub(n.StartedAt))), ago(r.At, n.SeenAt),
		}
	})
}

func typeSection(r status.Report) section {
	return sectionOf("TYPES", []string{"TYPE", "EVERY", "LAST TURN", "NODE", "OUTCOME", "TOOK", "NEXT TURN"}, r.Types, func(t status.Type) []string {
		return []string{
			t.Name, spanOrDash(t.Interval), ago(r.At, t.TurnAt), orDash(t.LastNode), orDash(t.LastOutcome), span(t.LastDuration), until(r.At, t.NextAt),
		}
	})
}

func observerSection(r status.Report) section {
	return sectionOf("OBSERVERS", []string{
		"OBSERVER", "SOURCE", "STATE", "EVERY", "LAST OK", "NEXT POLL", "EVENTS/10MIN", "ROWS/10MIN", "EVENTS", "ROWS", "POISON", "LAG", "NEWEST", "LAST ERROR",
	}, failuresFirst(r.Observers), func(o status.Observer) []string {
		polled := o.Recent.Polls > 0
		events, rows := either(polled, number(o.Recent.Events), "-"), either(polled, number(o.Recent.Rows), "-")
		return []string{
			o.ID, orDash(o.Source), stateOf(r.At, o), spanOrDash(o.Interval), ago(r.At, o.LastOKAt), until(r.At, o.NextPollAt), events, rows,
			number(o.Events), number(o.Live), number(o.Dead), spanOrDash(o.Lag), orDash(o.Newest), orDash(oneLine(o.LastError)),
		}
	})
}

// failuresFirst has the observers that fail, and those with poison rows, before the others.
func failuresFirst(all []status.Observer) []status.Observer {
	rank := func(o status.Observer) int {
		switch {
		case o.LastError != "":
			return 0
		case o.Dead > 0:
			return 1
		}
		return 2
	}
	return slices.SortedStableFunc(slices.Values(all), func(a, b status.Observer) int { return cmp.Compare(rank(a), rank(b)) })
}

// stateOf is the state of an observer, and for how long it lasts.
func stateOf(now time.Time, o status.Observer) string {
	switch {
	case o.State == status.StatePaused && !o.Pause.Until.IsZero():
		return o.State + " for " + span(o.Pause.Until.Sub(now))
	case o.State == status.StateBackoff:
		return o.State + " for " + span(o.RetryAt.Sub(now))
	}
	return o.State
}

func pauseSection(now time.Time, observers []status.Observer) section {
	paused := slices.DeleteFunc(slices.Clone(observers), func(o status.Observer) bool { return o.Pause == nil })
	return sectionOf("PAUSED", []string{"OBSERVER", "SINCE", "ENDS", "BY", "REASON"}, paused, func(o status.Observer) []string {
		ends := either(o.Pause.Until.IsZero(), "when resumed", until(now, o.Pause.Until))
		return []string{o.ID, agoOrDash(now, o.Pause.At), ends, orDash(oneLine(o.Pause.By)), orDash(oneLine(o.Pause.Reason))}
	})
}

func pollSection(now time.Time, polls []status.Poll) section {
	headings := []string{"OBSERVER", "NODE", "WHEN", "TOOK", "OUTCOME", "ROWS", "EVENTS", "POISON", "WHY"}
	return sectionOf("LAST POLLS", headings, polls, func(p status.Poll) []string {
		return []string{
			p.Observer, p.Node, ago(now, p.StartedAt), span(p.Duration), p.Outcome, number(p.Rows),
			number(p.Events), number(p.Poison), orDash(oneLine(p.Reason)),
		}
	})
}

func sinkSection(now time.Time, sinks []status.Sink) section {
	return sectionOf("SINKS", []string{"SINK", "OBSERVER", "STORED", "OF", "LAG", "NODE", "LAST ERROR"}, sinks, func(k status.Sink) []string {
		why := "-"
		if k.LastError != "" {
			why = fmt.Sprintf("on %s, for %s: %s", k.FailedNode, span(now.Sub(k.FailedAt)), oneLine(k.LastError))
		}
		return []string{k.Sink, k.Stream, number(k.Offset), number(k.Last), span(k.Lag), orDash(k.Node), why}
	})
}

func lockSection(r status.Report) section {
	s := sectionOf("LOCKS", []string{"LOCK", "REGION", "HOLDER", "FENCE", "TTL LEFT"}, r.Locks, func(l status.Lock) []string {
		holder, left := l.Holder, "expired"
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
		return []string{cmp.Or(l.Name, shortKey(l.Key), "-"), l.Region, holder, number(l.Fence), left}
	})
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

// agoOrDash is how long ago something was; zero is not known.
func agoOrDash(now, then time.Time) string { return either(then.IsZero(), "-", ago(now, then)) }

// spanOrDash is a duration; 0 is none.
func spanOrDash(d time.Duration) string { return either(d == 0, "-", span(d)) }

// generationSection has the observers that read all rows, in as many polls as that
// takes.
func generationSection(now time.Time, generations []status.Generation) section {
	headings := []string{"OBSERVER", "READ", "OF", "STARTED", "FINISHED", "LAST TOOK"}
	return sectionOf("READING ALL ROWS", headings, generations, func(g status.Generation) []string {
		of, finished, took := number(g.Of), "not yet", spanOrDash(g.Took)
		if !g.FinishedAt.IsZero() {
			of, finished, took = "-", ago(now, g.FinishedAt), span(g.Took)
		}
		return []string{g.Observer, number(g.Rows), of, ago(now, g.StartedAt), finished, took}
	})
}

// sweepSection has the backfills and reconciles that run.
func sweepSection(now time.Time, sweeps []status.Sweep) section {
	headings := []string{"OBSERVER", "KIND", "FROM", "BEFORE", "AT", "ROWS", "EVENTS", "STARTED", "LAST STEP"}
	return sectionOf("SWEEPS", headings, sweeps, func(w status.Sweep) []string {
		return []string{
			w.Observer, w.Kind, orDash(w.From), orDash(w.Before), orDash(w.Position), number(w.Rows),
			number(w.Events), ago(now, w.StartedAt), ago(now, w.UpdatedAt),
		}
	})
}

// accountSection has the accounts that no node tries before 'observerd observers resume'.
func accountSection(now time.Time, accounts []status.Account) section {
	return sectionOf("REFUSED ACCOUNTS", []string{"ACCOUNT", "NODE", "REFUSED", "WHY"}, accounts, func(a status.Account) []string {
		return []string{a.ID, a.Node, ago(now, a.Since), orDash(oneLine(a.Reason))}
	})
}

// wentBackSection has the streams whose events of before readers may have.
func wentBackSection(r status.Report) section {
	return sectionOf("EVENT LOG WENT BACK", []string{"OBSERVER", "NOTICED BY", "WHEN", "EVENT"}, r.WentBack, func(b status.WentBack) []string {
		return []string{b.Observer, orDash(b.Node), ago(r.At, b.At), oneLine(b.Detail)}
	})
}

// oneLine keeps a text from breaking a table, and a terminal from obeying it:
// keys and messages are written by others.
func oneLine(text string) string { return terminal.Escaped(strings.Join(strings.Fields(text), " ")) }

func (c observerCommands) show() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show the details of an observer",
		Long: `Show the details of an observer: its definition, how far it has come, its last
polls, its sinks, who has paused it and until when, and what operators did to it. There
are no secrets in it.`,
		Args:              takes(1, 1),
		ValidArgsFunction: c.completeObserver,
	}
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, operateTimeout)
	return c.operates(cmd, timeout, admin.OperatorOptions{}, func(ctx context.Context, operator *admin.Operator, args []string) error {
		details, err := operator.Show(ctx, args[0])
		return answer(c.stdout, *output, details, err, func() error { return printDetails(c.colored(), c.painter(), details) })
	})
}

func printDetails(w io.Writer, p painter, d status.ObserverDetails) error {
	o, now := d.Observer, d.At
	state := stateOf(now, o)
	if o.Pause != nil {
		state = "paused" + o.Pause.Words(now, span)
	}
	facts := [][]string{
		{"state", state}, {"next poll", until(now, o.NextPollAt)}, {"every", spanOrDash(o.Interval)}, {"last poll", ago(now, o.TurnAt)},
		{"last success", ago(now, o.LastOKAt)}, {"last error", orDash(o.LastError)}, {"failures in a row", number(int64(o.Failures))},
		{"refused to do", orDash(o.Refusal)}, {"low-water mark", orDash(o.LowWater)}, {"newest timestamp", orDash(o.Newest)}, {"lag", spanOrDash(o.Lag)},
		{"events", number(o.Events)}, {"rows", number(o.Live)}, {"gone rows", number(o.Gone)}, {"poison rows", number(o.Dead)},
		{"in the last " + span(o.Recent.Span), fmt.Sprintf("%d polls, %d of them failed; %d rows read, %d events", o.Recent.Polls, o.Recent.Failed, o.Recent.Rows, o.Recent.Events)},
	}
	if err := p.table(w, []string{"OBSERVER", o.ID}, facts); err != nil {
		return err
	}
	sections := []section{definitionSection(d), pollSection(now, d.Polls), sinkSection(now, d.Sinks)}
	return printSections(w, p, append(sections, rare(generationSection(now, d.Generations), sweepSection(now, d.Sweeps), accountSection(now, d.Accounts),
		actSection(now, d.Acts))...))
}

func definitionSection(d status.ObserverDetails) section {
	s := section{title: "DEFINITION", headings: []string{"KEY", "VALUE"}}
	for _, setting := range d.Definition {
		s.rows = append(s.rows, []string{setting.Key, oneLine(setting.Value)})
		if setting.Key == "source" {
			s.rows = append(s.rows, []string{"source url", d.URL})
		}
	}
	return s
}

func actSection(now time.Time, acts []status.Act) section {
	return sectionOf("WHAT OPERATORS DID", []string{"WHEN", "WHO", "WHAT", "DETAIL"}, acts, func(a status.Act) []string {
		return []string{ago(now, a.At), oneLine(a.Actor), a.Action, orDash(oneLine(a.Detail))}
	})
}

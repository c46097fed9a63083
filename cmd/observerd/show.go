package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
)

func (c observerCommands) show() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show all that is known of an observer",
		Long: `Show all that is known of an observer: its definition, how far it has come, its last
polls, its sinks, who has paused it and until when, and what operators did to it. There
are no secrets in it.`,
		Args:              takes(1, 1),
		ValidArgsFunction: c.completeObserver,
	}
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, operateTimeout)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.operate(cmd.Context(), *timeout, admin.OperatorOptions{}, func(ctx context.Context, operator *admin.Operator) error {
			details, err := operator.Show(ctx, args[0])
			switch {
			case err != nil:
				return err
			case *output == formatJSON:
				return printJSON(c.stdout, details)
			}
			return printDetails(c.colored(), c.painter(), details)
		})
	}
	return cmd
}

func printDetails(w io.Writer, p painter, d admin.ObserverDetails) error {
	o, now := d.Observer, d.At
	state := stateOf(now, o)
	if o.Pause != nil {
		state = "paused" + o.Pause.Words(now, span)
	}
	facts := [][]string{
		{"state", state}, {"next poll", until(now, o.NextPollAt)}, {"every", spanOrDash(o.Interval)}, {"last poll", ago(now, o.TurnAt)},
		{"last success", ago(now, o.LastOKAt)}, {"last error", orDash(o.LastError)}, {"failures in a row", number(int64(o.Failures))},
		{"refused to do", orDash(d.Refusal)}, {"low-water mark", orDash(o.LowWater)}, {"newest timestamp", orDash(o.Newest)}, {"lag", spanOrDash(o.Lag)},
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

func definitionSection(d admin.ObserverDetails) section {
	s := section{title: "DEFINITION", headings: []string{"KEY", "VALUE"}}
	for _, setting := range d.Definition {
		s.rows = append(s.rows, []string{setting.Key, oneLine(setting.Value)})
		if setting.Key == "source" {
			s.rows = append(s.rows, []string{"source url", d.URL})
		}
	}
	return s
}

func actSection(now time.Time, acts []admin.Act) section {
	return sectionOf("WHAT OPERATORS DID", []string{"WHEN", "WHO", "WHAT", "DETAIL"}, acts, func(a admin.Act) []string {
		return []string{ago(now, a.At), oneLine(a.Actor), a.Action, orDash(oneLine(a.Detail))}
	})
}

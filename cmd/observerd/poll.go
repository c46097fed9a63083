package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/fn"
)

// poller is one run of poll.
type poller struct {
	*cli
	once, dry bool
	by        func() admin.By
	limit     int
	output    *format
	timeout   *time.Duration
}

func (c *cli) pollCommand() *cobra.Command {
	p := &poller{cli: c}
	cmd := &cobra.Command{
		Use:   "poll ID",
		Short: "Poll an observer once, or show what a poll would find",
		Long: `With --dry-run, show the SQL that a poll would send now, as 'validate --full-sql'
does, the rows that it would read and the events that it would make. Nothing is written and no lock is taken.

With --once alone, poll the observer now, under the lock of its type. The turns
of the cluster do not change; a running node delivers the events.`,
		Example: `  observerd poll warehouse-orders --once --dry-run
  observerd poll warehouse-orders --once`,
		Args:              takes(1, 1),
		ValidArgsFunction: c.completeObserver,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !p.once && !p.dry {
				return usageError{errors.New("use --once to poll once now, or --dry-run to write nothing; 'observerd run' polls repeatedly")}
			}
			if p.limit < 0 {
				return usageError{errors.New("--limit is negative; use 0 for all")}
			}
			return c.operate(cmd.Context(), *p.timeout, admin.OperatorOptions{ReadOnly: p.dry}, func(ctx context.Context, operator *admin.Operator) error {
				return p.poll(ctx, operator, args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&p.once, "once", false, "poll once and return")
	cmd.Flags().BoolVar(&p.dry, "dry-run", false, "show rows and events, write nothing")
	cmd.Flags().IntVar(&p.limit, "limit", 20, "with --dry-run, show so many `rows` and events; 0: all")
	p.by = byFlags(cmd)
	p.output = outputFlag(cmd)
	p.timeout = timeoutFlag(cmd, 10*time.Minute)
	return cmd
}

func (p *poller) poll(ctx context.Context, operator *admin.Operator, id string) error {
	if p.dry {
		d, err := operator.DryRun(ctx, id, p.limit)
		if err != nil && d.RowsRead == 0 {
			return err
		}
		return errors.Join(err, answer(p.stdout, *p.output, d, nil, func() error { return printDryRun(p.stdout, d) }))
	}
	polled, err := operator.PollOnce(ctx, id, p.by())
	if polled.Outcome == "" {
		return err
	}
	return errors.Join(err, p.line(*p.output, polled, nil, "%s: %s in %s under lock %s (fence %d): %d rows read, %d events written, %d poison rows",
		polled.Observer, polled.Outcome, span(polled.Took), polled.Lock, polled.Fence, polled.Rows, polled.Events, polled.Poison))
}

func printDryRun(w io.Writer, d admin.DryRun) error {
	fmt.Fprintf(w, "observer %s (type %s, detect %s): source %s, from %s\n", d.Observer, d.Type, d.Detect, d.Source, cmp.Or(d.From, beginning))
	if d.Blank {
		fmt.Fprintln(w, "the coordination database is empty, so every row is new")
	}
	if d.SQL != "" {
		fmt.Fprintf(w, "\nSQL:\n%s;\n", d.SQL)
	}
	fmt.Fprintf(w, "\nROWS: %d read%s\n", d.RowsRead, first(len(d.Rows), d.RowsRead))
	rows := fn.Each(d.Rows, func(r admin.DryRow) []string {
		content := string(r.Data)
		if r.Problem != "" {
			content = "cannot be read: " + r.Problem
		}
		return []string{orDash(oneLine(r.Key)), orDash(r.Timestamp), oneLine(content)}
	})
	if len(rows) > 0 {
		if err := table(w, []string{"KEY", "TIMESTAMP", "ROW"}, rows); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "\nEVENTS: %d%s\n", d.EventCount, first(len(d.Events), d.EventCount))
	for _, e := range d.Events {
		fmt.Fprintf(w, "%s\n", e)
	}
	if d.DeadCount > 0 {
		fmt.Fprintf(w, "\nPOISON ROWS: %d%s\n", d.DeadCount, first(len(d.Dead), d.DeadCount))
		for _, dead := range d.Dead {
			fmt.Fprintf(w, "%s: %s\n", orDash(oneLine(dead.Key)), oneLine(dead.Reason))
		}
	}
	if d.Ended > 0 {
		fmt.Fprintf(w, "\nended after %d new and changed rows; there may be more\n", d.Ended)
	}
	fmt.Fprintln(w, "\nnothing was written")
	return nil
}

// first says that a list holds only the first of what was counted.
func first(shown int, all int64) string {
	return either(int64(shown) >= all, "", fmt.Sprintf(", the first %d:", shown))
}

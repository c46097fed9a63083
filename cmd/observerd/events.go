package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/jsontext/terminal"
)

// lookEvery is the time between two looks at the event log.
const lookEvery = time.Second

func (c *cli) eventsTail() *cobra.Command {
	o := admin.TailOptions{Every: lookEvery}
	var from string
	cmd := &cobra.Command{
		Use:   "tail [ID]",
		Short: "Print the last events of the log",
		Long: `Print the last events of each observer, or of one, oldest first: with -o json as
CloudEvents JSON, one event a line; with -o text in columns, under a heading, with
long data cut. The events of one observer are in their order, those of several in the
order of their commits.

--from and --since use the time of the commit, which is the observedtime of an event and
the column OBSERVED. All times are in UTC.

With -f it waits for the tables if no node has created them yet.`,
		Example: `  observerd events tail
  observerd events tail warehouse-orders -n 100 -f | jq .data
  observerd events tail --from 2026-11-20
  observerd events tail warehouse-orders --since 2h -o text`,
		Args:              takes(0, 1),
		ValidArgsFunction: c.completeObserver,
	}
	output := outputFlag(cmd)
	*output = ""
	cmd.Flag("output").DefValue = "text on a terminal, json elsewhere"
	timeout := timeoutFlag(cmd, 30*time.Second)
	cmd.Flags().IntVarP(&o.Last, "limit", "n", 20, "how many `events` of each observer")
	renamed(cmd, "lines", "limit")
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "follow new events, until interrupted; --timeout does not apply then")
	cmd.Flags().StringVar(&from, "from", "", "the first `event`, by its sequence, or by a time such as 2026-11-20 or 2026-11-20T09:00:00Z")
	cmd.Flags().Var(positive(&o.Since), "since", "events of this time until now, such as 2h")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given := cmd.Flags().Changed
		switch {
		case given("limit") && given("from"), given("limit") && given("since"), given("from") && given("since"):
			return usageError{errors.New("--limit, --from and --since exclude each other")}
		case o.Last < 0:
			return usageError{errors.New("--limit is negative; set 0 or more")}
		case given("from"):
			var err error
			if o.FromSeq, o.From, err = parseFrom(from); err != nil {
				return err
			}
		}
		if len(args) == 1 {
			o.Observer = args[0]
		}
		if o.Follow {
			*timeout = 0
		}
		output.print(c.stdout, &o)
		return c.tail(cmd.Context(), *timeout, o)
	}
	return cmd
}

// tail shows events. While it follows, it waits for the tables that the first node makes.
func (c *cli) tail(ctx context.Context, timeout time.Duration, o admin.TailOptions) error {
	for said := false; ; said = true {
		err := c.operate(ctx, timeout, admin.OperatorOptions{}, func(ctx context.Context, operator *admin.Operator) error { return operator.Tail(ctx, o) })
		switch {
		case !admin.NotStarted(err):
			return err
		case !o.Follow:
			return fmt.Errorf("%w; use -f to wait for it", err)
		case !said:
			fmt.Fprintf(c.stderr, "waiting: %v\n", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookEvery):
		}
	}
}

// timeLayouts are the times that --from takes; those without a zone are in UTC.
var timeLayouts = []string{time.RFC3339, time.DateOnly, "2006-01-02T15:04:05", time.DateTime, "2006-01-02T15:04", "2006-01-02 15:04"}

// parseTime reads a time in one of the timeLayouts.
func parseTime(text string) (at time.Time, err error) {
	for _, layout := range timeLayouts {
		if at, err = time.Parse(layout, text); err == nil {
			break
		}
	}
	return at, err
}

// parseFrom reads a sequence number or a time.
func parseFrom(text string) (seq int64, at time.Time, err error) {
	if seq, err = strconv.ParseInt(text, 10, 64); err == nil && seq > 0 {
		return seq, time.Time{}, nil
	}
	if at, err = parseTime(text); err == nil {
		return 0, at, nil
	}
	return 0, time.Time{}, usageError{errors.New("--from is neither a sequence number from 1 nor a time; use 42, 2026-11-20 or 2026-11-20T09:00:00Z")}
}

// print tells how events are printed; without a format, the stream decides.
func (f format) print(w io.Writer, o *admin.TailOptions) {
	if f == formatJSON || f == "" && !terminal.Is(w) {
		out := terminal.JSON(w)
		o.Shown = func() error { return nil }
		o.Emit = func(_ *admin.Event, line []byte) error {
			_, err := out.Write(append(line, '\n'))
			return err
		}
		return
	}
	p := &eventPrinter{w: w}
	o.Emit, o.Shown = p.add, p.flush
}

// eventPrinter prints events under a heading. It keeps some of them back, to know how wide
// the columns are.
type eventPrinter struct {
	w     io.Writer
	lines admin.EventLines
	begun bool
	kept  []admin.Event
}

// mostKept bounds the memory: events are large where their rows are.
const mostKept = 200

func (p *eventPrinter) add(e *admin.Event, _ []byte) error {
	p.kept = append(p.kept, *e)
	if len(p.kept) < mostKept {
		return nil
	}
	return p.flush()
}

func (p *eventPrinter) flush() error {
	if len(p.kept) == 0 {
		return nil
	}
	p.lines.Widen(p.kept)
	var text []byte
	if !p.begun {
		p.begun = true
		text = append(p.lines.AppendHeading(text), '\n')
	}
	for i := range p.kept {
		text = append(p.lines.Append(text, &p.kept[i]), '\n')
	}
	p.kept = p.kept[:0]
	_, err := p.w.Write(text)
	return err
}

func (c *cli) schemaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema ID",
		Short: "Print the JSON Schema of an observer's events",
		Long: `Print the JSON Schema (draft 2020-12) of an observer's events, from the present
columns of its source. docs/events.md describes the attributes. Nothing is written to any
database.`,
		Example:           `  observerd schema warehouse-orders > warehouse-orders.schema.json`,
		Args:              takes(1, 1),
		ValidArgsFunction: c.completeObserver,
	}
	timeout := timeoutFlag(cmd, time.Minute)
	return c.operates(cmd, timeout, admin.OperatorOptions{ReadOnly: true}, func(ctx context.Context, operator *admin.Operator, args []string) error {
		schema, err := operator.EventSchema(ctx, args[0])
		if err == nil {
			_, err = fmt.Fprintf(c.stdout, "%s\n", schema)
		}
		return err
	})
}

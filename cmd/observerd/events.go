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
)

// lookEvery is the time between two looks at the event log.
const lookEvery = time.Second

func (c *cli) eventsCommand() *cobra.Command {
	return group("events", "Look at the event log", c.eventsTail())
}

func (c *cli) eventsTail() *cobra.Command {
	o := admin.TailOptions{Every: lookEvery}
	var from string
	cmd := &cobra.Command{
		Use:   "tail [ID]",
		Short: "Print the last events of the log",
		Long: `Print the last events of each observer, or of one, oldest first: as CloudEvents
JSON, one event a line, or with -o text as a summary. The order of events is that
of their observer; between observers there is none.

--from and --since count by the time at which events were committed, which is their
observedtime. All times are in UTC.`,
		Example: `  observerd events tail
  observerd events tail warehouse-orders -n 100 -f | jq .data
  observerd events tail --from 2026-11-20
  observerd events tail warehouse-orders --since 2h -o text`,
		Args:              takes(0, 1),
		ValidArgsFunction: c.completeObserver,
	}
	output := outputFlag(cmd)
	*output = formatJSON
	cmd.Flag("output").DefValue = string(formatJSON)
	timeout := timeoutFlag(cmd, 30*time.Second)
	cmd.Flags().IntVarP(&o.Last, "lines", "n", 20, "how many `events` of each observer")
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "go on with new events, until interrupted; --timeout does not count then")
	cmd.Flags().StringVar(&from, "from", "", "the first `event`, by its sequence, or by a time such as 2026-11-20 or 2026-11-20T09:00:00Z")
	cmd.Flags().Var((*positive)(&o.Since), "since", "events of this time until now, such as 2h")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		begins := 0
		for _, flag := range []string{"lines", "from", "since"} {
			if cmd.Flags().Changed(flag) {
				begins++
			}
		}
		switch {
		case begins > 1:
			return usageError{errors.New("-n, --from and --since exclude each other")}
		case o.Last < 0:
			return usageError{errors.New("-n is negative")}
		case cmd.Flags().Changed("from"):
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
		o.Emit = printEvent(c.stdout, *output)
		return c.operate(cmd.Context(), *timeout, admin.OperatorOptions{}, func(ctx context.Context, operator *admin.Operator) error {
			return operator.Tail(ctx, o)
		})
	}
	return cmd
}

// timeLayouts are the times that --from takes; those without a zone are in UTC.
var timeLayouts = []string{time.RFC3339, time.DateOnly, "2006-01-02T15:04:05", time.DateTime, "2006-01-02T15:04", "2006-01-02 15:04"}

// parseFrom reads a sequence number or a time.
func parseFrom(text string) (seq int64, at time.Time, err error) {
	if seq, err = strconv.ParseInt(text, 10, 64); err == nil && seq > 0 {
		return seq, time.Time{}, nil
	}
	for _, layout := range timeLayouts {
		if at, err = time.Parse(layout, text); err == nil {
			return 0, at, nil
		}
	}
	return 0, time.Time{}, usageError{errors.New("--from is neither a sequence number from 1 nor a time; write 42, 2026-11-20 or 2026-11-20T09:00:00Z")}
}

func printEvent(w io.Writer, f format) func(*admin.Event, []byte) error {
	if f == formatJSON {
		out := jsonWriter(w)
		return func(_ *admin.Event, line []byte) error {
			_, err := out.Write(append(line, '\n'))
			return err
		}
	}
	return func(e *admin.Event, _ []byte) error {
		_, err := fmt.Fprintf(w, "%s  %s/%d  %s  %s  %s v%d\n",
			e.Time.UTC().Format(time.RFC3339), e.Stream, e.Seq, e.Type, oneLine(e.Subject), e.Change, e.Version)
		return err
	}
}

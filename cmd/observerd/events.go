package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	cmd := &cobra.Command{
		Use:   "tail [ID]",
		Short: "Print the last events of the log",
		Long: `Print the last events of each observer, or of one, oldest first: as CloudEvents
JSON, one event a line, or with -o text as a summary. The order of events is that
of their observer; between observers there is none.`,
		Example: `  observerd events tail
  observerd events tail warehouse-orders -n 100 -f | jq .data`,
		Args:              takes(0, 1),
		ValidArgsFunction: c.completeObserver,
	}
	output := outputFlag(cmd)
	*output = formatJSON
	cmd.Flag("output").DefValue = string(formatJSON)
	timeout := timeoutFlag(cmd, 30*time.Second)
	cmd.Flags().IntVarP(&o.Last, "lines", "n", 20, "how many `events` of each observer")
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "go on with new events, until interrupted; --timeout does not count then")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.Last < 0 {
			return usageError{errors.New("-n is negative")}
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
			e.Time.Format(time.RFC3339), e.Stream, e.Seq, e.Type, oneLine(e.Subject), e.Change, e.Version)
		return err
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/jsontext"
	"github.com/observerd/observerd/internal/status"
)

func (c *cli) sinksCommand() *cobra.Command {
	s := sinkCommands{c}
	return group("sinks", "List, pause, resume and adopt sinks, and print the tables that one needs",
		s.list(), s.pause(), s.resume(), s.adopt(), s.sql())
}

// sinkCommands makes the commands below sinks.
type sinkCommands struct{ *cli }

// sinkState is a sink as JSON has it.
type sinkState struct {
	Sink string `json:"sink"`
	// Type is empty for a sink that the configuration does not have.
	Type  string `json:"type,omitempty"`
	State string `json:"state"`
	Node  string `json:"node,omitempty"`
	// Waiting are the events that it has not stored, without those that are parked, Lag is for
	// how long the oldest has waited.
	Waiting   int64         `json:"waiting"`
	Parked    int64         `json:"parked"`
	Lag       time.Duration `json:"lag_ms"`
	Pause     *status.Pause `json:"pause,omitempty"`
	LastError string        `json:"last_error,omitempty"`
}

func (c sinkCommands) list() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List the sinks and their state", Args: takes(0, 0)}
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, operateTimeout)
	return c.operates(cmd, timeout, admin.OperatorOptions{ReadOnly: true}, func(ctx context.Context, operator *admin.Operator, _ []string) error {
		report, err := operator.Report(ctx)
		states := sinkStates(operator.Sinks(), report)
		return answer(c.stdout, *output, states, err, func() error {
			headings := []string{"SINK", "TYPE", "STATE", "NODE", "WAITING", "PARKED", "LAG", "LAST ERROR"}
			return table(c.stdout, headings, fn.Each(states, func(s sinkState) []string {
				state := s.State
				if s.Pause != nil {
					state += s.Pause.Words(report.At, span)
				}
				return []string{s.Sink, orDash(s.Type), state, orDash(s.Node), number(s.Waiting), number(s.Parked), span(s.Lag), orDash(oneLine(s.LastError))}
			}))
		})
	})
}

// sinkStates sums the streams of each sink up: those of the configuration, in its order, and
// then others that were fed once.
func sinkStates(sinks []config.Sink, report status.Report) []sinkState {
	states, at := []sinkState{}, make(map[string]int)
	for _, t := range sinks {
		at[t.ID] = len(states)
		states = append(states, sinkState{Sink: t.ID, Type: t.Type, State: "new"})
	}
	for _, s := range report.Sinks {
		if _, known := at[s.Sink]; !known {
			at[s.Sink] = len(states)
			states = append(states, sinkState{Sink: s.Sink})
		}
		sum := &states[at[s.Sink]]
		sum.State, sum.Node, sum.Pause, sum.LastError = status.StateActive, s.Node, s.Pause, s.LastError
		sum.Waiting, sum.Lag = sum.Waiting+s.Last-s.Offset, max(sum.Lag, s.Lag)
		switch {
		case s.Pause != nil:
			sum.State = status.StatePaused
		case sum.Type == "":
			sum.State = status.StateRemoved
		case s.LastError != "":
			sum.State = "failing"
		}
	}
	for _, p := range report.Parked {
		if n, known := at[p.Sink]; known {
			states[n].Parked = p.Events
		}
	}
	return states
}

// act makes a command that does something to one sink.
func (c sinkCommands) act(cmd *cobra.Command, do operation) *cobra.Command {
	cmd.Args = takes(1, 1)
	output, timeout, by := outputFlag(cmd), timeoutFlag(cmd, operateTimeout), byFlags(cmd)
	return c.operates(cmd, timeout, admin.OperatorOptions{}, func(ctx context.Context, operator *admin.Operator, args []string) error {
		changed, result, err := do(ctx, operator, args[0], by())
		done := jsontext.Object{{Name: "sink", Value: args[0]}, {Name: "changed", Value: changed}, {Name: "result", Value: result}}
		return c.line(*output, done, err, "%s: %s", args[0], result)
	})
}

func (c sinkCommands) pause() *cobra.Command {
	return c.act(&cobra.Command{
		Use:   "pause ID",
		Short: "Pause a sink on every node until it is resumed",
		Long: `Pause a sink on every node until it is resumed. The pause is kept in the
coordination database and outlives restarts. The events that the sink lacks are kept,
however long that is; a batch that is on its way is still delivered.`,
		Example: `  observerd sinks pause shop --reason "SHOP-77, the receiver is rebuilt"`,
	}, func(ctx context.Context, operator *admin.Operator, id string, by admin.By) (bool, string, error) {
		changed, err := operator.PauseSink(ctx, id, by)
		return changed, either(changed, "paused", "was paused already"), err
	})
}

func (c sinkCommands) resume() *cobra.Command {
	return c.act(&cobra.Command{
		Use:     "resume ID",
		Short:   "Resume a paused sink",
		Example: `  observerd sinks resume shop --reason "SHOP-77 is done"`,
	}, func(ctx context.Context, operator *admin.Operator, id string, by admin.By) (bool, string, error) {
		changed, err := operator.ResumeSink(ctx, id, by)
		return changed, either(changed, "resumed", "is not paused"), err
	})
}

func (c sinkCommands) adopt() *cobra.Command {
	var stream string
	var yes bool
	cmd := c.act(&cobra.Command{
		Use:   "adopt ID",
		Short: "Continue a halted stream of a sink from its offset, whatever the sink holds",
		Long: `Continue a stream from its offset that was halted because the sink holds events that
the event log does not know, or none of those that it has stored. Events after the
offset are delivered, and none before it. The relay continues within seconds, and compares
again once the next event of the stream is stored.

First find out why they differ: another cluster may feed this target, or the target was
restored and lacks events that are in the log.`,
		Example: `  observerd sinks adopt inbox --stream warehouse-orders --reason "INC-4711, the target was recreated"`,
	}, func(ctx context.Context, operator *admin.Operator, id string, by admin.By) (bool, string, error) {
		if err := operator.KnowsStream(ctx, id, stream); err != nil {
			return false, "", err
		}
		question := fmt.Sprintf("Continue %s from the offset of %s, whatever the sink holds?", stream, id)
		if err := observerCommands(c).confirm(ctx, yes, question); err != nil {
			return false, "", err
		}
		changed, err := operator.AdoptSink(ctx, id, stream, by)
		return changed, either(changed, "continues from the offset of "+stream, "was adopted already, and has stored nothing since"), err
	})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := takes(1, 1)(cmd, args); err != nil || stream != "" {
			return err
		}
		return errors.New("--stream is missing; use the id of an observer")
	}
	cmd.Flags().StringVar(&stream, "stream", "", "the `stream`, which is the id of its observer")
	_ = cmd.RegisterFlagCompletionFunc("stream", c.completeObserver)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (c sinkCommands) sql() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sql ID",
		Short: "Print the statements that create the tables of a sink",
		Long: `Print the statements that create the tables of a sink of type sql, and the rights that it
needs, for the owner of that database to review and run.`,
		Example: `  observerd sinks sql inbox | psql "$TARGET"`,
		Args:    takes(1, 1),
	}
	timeout := timeoutFlag(cmd, operateTimeout)
	return c.operates(cmd, timeout, admin.OperatorOptions{ReadOnly: true}, func(_ context.Context, operator *admin.Operator, args []string) error {
		text, err := operator.SinkSQL(args[0])
		if err == nil {
			_, err = fmt.Fprint(c.stdout, text)
		}
		return err
	})
}

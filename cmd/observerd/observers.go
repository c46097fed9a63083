package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/jsontext/terminal"
	"github.com/observerd/observerd/internal/status"
)

const operateTimeout = 30 * time.Second

func (c *cli) observersCommand() *cobra.Command {
	o := observerCommands{c}
	return group("observers", "List, show, pause, resume, accept, reset and backfill observers",
		o.list(), o.show(), o.pause(), o.resume(), o.accept(), o.reset(), o.backfill())
}

// observerCommands makes the commands below observers.
type observerCommands struct{ *cli }

func (c observerCommands) list() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List the observers and their state", Args: takes(0, 0)}
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, operateTimeout)
	return c.operates(cmd, timeout, admin.OperatorOptions{}, func(ctx context.Context, operator *admin.Operator, _ []string) error {
		report, err := operator.Report(ctx)
		return answer(c.stdout, *output, report.Observers, err, func() error {
			headings := []string{"OBSERVER", "TYPE", "SOURCE", "DETECT", "STATE", "LAST OK", "EVENTS", "LAST ERROR"}
			return c.painter().table(c.colored(), headings, fn.Each(report.Observers, func(o status.Observer) []string {
				return []string{
					o.ID, orDash(o.Type), orDash(o.Source), orDash(o.Detect), stateOf(report.At, o), ago(report.At, o.LastOKAt),
					number(o.Events), orDash(oneLine(o.LastError)),
				}
			}))
		})
	})
}

func (c observerCommands) pause() *cobra.Command {
	var lasts time.Duration
	cmd := c.act(&cobra.Command{
		Use:   "pause [ID...]",
		Short: "Stop the polls of observers on every node, for a time or until they are resumed",
		Long: `Stop the polls of observers on every node. The pause is stored in the coordination
database and survives restarts; the next commit of a running poll fails.

With --for, the pause ends after that time, by the clock of the coordination database.
An existing pause can be made longer but not shorter: resume it first.
'observerd status' shows the reason.`,
		Example: `  observerd observers pause warehouse-orders --reason "WMS-4711, index is rebuilt" --for 2h
  observerd observers pause --type order
  observerd observers pause --all --for 30m --reason "failover of the ERP"`,
	}, func(ctx context.Context, operator *admin.Operator, id string, by admin.By) (bool, string, error) {
		changed, err := operator.Pause(ctx, id, by, lasts)
		switch {
		case err != nil:
			return false, "", err
		case !changed:
			text, err := wasPaused(ctx, operator, id)
			return false, text, err
		case lasts > 0:
			return true, "paused for " + span(lasts), nil
		}
		return true, "paused", nil
	})
	cmd.Flags().Var(positive(&lasts), "for", "end the pause after this time, such as 2h")
	cmd.Flags().Lookup("for").DefValue = "" // 0 is no time.
	cmd.Flags().Lookup("reason").Usage = "why, for the audit table, the status and its page"
	return cmd
}

// wasPaused says of an observer whose pause lasts longer who has paused it.
func wasPaused(ctx context.Context, operator *admin.Operator, id string) (string, error) {
	report, err := operator.Report(ctx)
	for _, o := range report.Observers {
		if o.ID == id && o.Pause != nil {
			return "was paused already" + o.Pause.Words(report.At, span), err
		}
	}
	return "was paused already", err
}

func (c observerCommands) resume() *cobra.Command {
	return c.act(&cobra.Command{
		Use:   "resume [ID...]",
		Short: "Resume paused observers, or end their backoff",
		Long: `Resume paused observers, or end their backoff. If the source of one has
refused the account, the account may be tried again at once.`,
		Example: `  observerd observers resume warehouse-orders
  observerd observers resume --type order --reason "WMS-4711 is done"`,
	}, func(ctx context.Context, operator *admin.Operator, id string, by admin.By) (bool, string, error) {
		changed, err := operator.Resume(ctx, id, by)
		return changed, either(changed, "resumed", "is neither paused nor in backoff"), err
	})
}

// acted is what a command did to an observer.
type acted struct {
	Observer string `json:"observer"`
	// Changed is false where there was nothing to do.
	Changed bool   `json:"changed"`
	Result  string `json:"result"`
}

// operation does something to an observer. changed is false where there was nothing to do.
type operation func(ctx context.Context, operator *admin.Operator, id string, by admin.By) (changed bool, result string, err error)

// act makes a command that does something to one observer, or to several if its use has
// room for them.
func (c observerCommands) act(cmd *cobra.Command, do operation) *cobra.Command {
	var selected admin.Selection
	cmd.Args, cmd.ValidArgsFunction = takes(1, 1), c.completeObserver
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, operateTimeout)
	several := strings.HasSuffix(cmd.Use, " [ID...]")
	if several {
		cmd.Args, cmd.ValidArgsFunction = takes(0, math.MaxInt), c.completeObservers
		cmd.Flags().StringVar(&selected.Type, "type", "", "the observers of this `type`")
		cmd.Flags().BoolVar(&selected.All, "all", false, "all observers")
	}
	by := byFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		selected.IDs = args
		if err := checkSelection(selected, cmd.Flags().Changed("type")); err != nil {
			return err
		}
		return c.operate(cmd.Context(), *timeout, admin.OperatorOptions{}, func(ctx context.Context, operator *admin.Operator) (err error) {
			if several {
				args, err = operator.Select(ctx, selected)
			}
			if err != nil {
				return err
			}
			return c.doAll(ctx, operator, args, by(), do, *output)
		})
	}
	return cmd
}

// doAll does something to the observers, one after the other, and prints what came of it,
// also of those before the first that fails.
func (c observerCommands) doAll(ctx context.Context, operator *admin.Operator, ids []string, by admin.By, do operation, output format) (err error) {
	all := make([]acted, 0, len(ids))
	for _, id := range ids {
		one := acted{Observer: id}
		if one.Changed, one.Result, err = do(ctx, operator, id, by); err != nil {
			if len(ids) > 1 {
				err = fmt.Errorf("%s: %w", id, err)
			}
			break
		}
		if all = append(all, one); output == formatText {
			fmt.Fprintf(c.stdout, "%s: %s\n", id, one.Result)
		}
	}
	if output == formatJSON && len(all) > 0 {
		err = errors.Join(err, printJSON(c.stdout, all))
	}
	return err
}

// checkSelection wants ids, a type, or all.
func checkSelection(s admin.Selection, typed bool) error {
	switch {
	case s.All && (typed || len(s.IDs) > 0):
		return usageError{errors.New("--all excludes names of observers; leave them out")}
	case typed && s.Type == "":
		return usageError{errors.New("--type is empty; use a type, or --all")}
	case !s.All && !typed && len(s.IDs) == 0:
		return usageError{errors.New("ID is missing; use the ids of observers, --type TYPE or --all")}
	}
	return nil
}

// byFlags gives a command the flags that say who calls it, and why.
func byFlags(cmd *cobra.Command) func() admin.By {
	actor := cmd.Flags().String("actor", "", "who does it, for the audit table; the user and host by default")
	reason := cmd.Flags().String("reason", "", "why, for the audit table")
	return func() admin.By { return admin.By{Actor: cmp.Or(*actor, self()), Reason: *reason} }
}

func (c observerCommands) accept() *cobra.Command {
	var yes bool
	cmd := c.act(&cobra.Command{
		Use:   "accept ID",
		Short: "Approve what the last poll of an observer refused",
		Long: `Allow the next poll of an observer, or the next step of its reconcile or backfill, on
any node, to do what the last one refused: mark that many rows as gone, leave out that
many poison rows, or continue with the changed columns. The approval holds once: what
exceeds it is refused again.`,
	}, func(ctx context.Context, operator *admin.Operator, id string, by admin.By) (bool, string, error) {
		refused, err := operator.Refused(ctx, id)
		switch {
		case err != nil:
			return false, "", err
		case refused.Text == "":
			return false, "has refused nothing", nil
		case refused.Accepted:
			return false, "was accepted already, the " + refused.Next + " does it: " + refused.Text, nil
		}
		if err := c.confirm(ctx, yes, fmt.Sprintf("%s has refused: %s. Approve it for the %s?", id, refused.Text, refused.Next)); err != nil {
			return false, "", err
		}
		return true, "accepted, the " + refused.Next + " does it: " + refused.Text, operator.Accept(ctx, id, by, refused)
	})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (c observerCommands) reset() *cobra.Command {
	var o admin.ResetOptions
	var yes bool
	cmd := c.act(&cobra.Command{
		Use:   "reset ID",
		Short: "Read the source of an observer from its beginning again",
		Long: `Set an observer back to the beginning of its source, or to its start if it has
one. Observed rows are recognised and make no event; only missed rows
do. With --forget they are not recognised: every row becomes an event
again, as version 1 and under a new id. The event log does not change.

With --keep-cursor the observer continues where it is: it accepts another query, or
other columns of the source, and does not read earlier rows again. Rows that it has
missed, as those of a database in whose place another one has answered, stay missed.`,
	}, func(ctx context.Context, operator *admin.Operator, id string, by admin.By) (bool, string, error) {
		if o.Forget && o.KeepCursor {
			return false, "", usageError{errors.New("--forget and --keep-cursor exclude each other")}
		}
		if err := operator.KnowsObserver(ctx, id); err != nil {
			return false, "", err
		}
		if err := c.confirm(ctx, yes, resetQuestion(id, o)); err != nil {
			return false, "", err
		}
		changed, err := operator.Reset(ctx, id, by, o)
		return changed, either(changed, "reset", "was never polled; there is nothing to reset"), err
	})
	cmd.Flags().BoolVar(&o.Forget, "forget", false, "also forget which rows were observed")
	cmd.Flags().BoolVar(&o.KeepCursor, "keep-cursor", false, "continue at the cursor, with the present query and columns")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func resetQuestion(id string, o admin.ResetOptions) string {
	switch {
	case o.Forget:
		return fmt.Sprintf("Reset %s and make an event of every row again?", id)
	case o.KeepCursor:
		return fmt.Sprintf("Continue %s at its cursor with another query, or other columns?", id)
	}
	return fmt.Sprintf("Reset %s and read its source from the beginning?", id)
}

// self names who runs the program.
func self() string {
	u, err := user.Current()
	if err != nil {
		return atThisHost("unknown")
	}
	return atThisHost(u.Username)
}

// atThisHost names a user of this host.
func atThisHost(name string) string {
	host, _ := os.Hostname()
	return name + "@" + cmp.Or(host, "unknown")
}

// confirm asks at a terminal; elsewhere --yes is required.
func (c observerCommands) confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if !terminal.Is(c.stdin) {
		return usageError{errors.New("no terminal to confirm on; pass --yes")}
	}
	fmt.Fprint(c.stderr, question+" [y/N] ")
	answer := make(chan string, 1)
	// A read from a terminal cannot be interrupted; it ends with the process.
	go func() {
		line, _ := bufio.NewReader(c.stdin).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case line := <-answer:
		if line != "y" && line != "yes" {
			return errors.New("not confirmed; nothing was changed")
		}
	}
	return nil
}

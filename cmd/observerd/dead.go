package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
)

// retryTimeout is for as many rows as may be, each of which is a read of its own.
const retryTimeout = 10 * time.Minute

func (c *cli) deadCommand() *cobra.Command {
	d := deadCommands{c}
	return group("dead", "List, show, retry and drop the records of poison rows", d.list(), d.show(), d.retry(), d.drop())
}

// deadCommands makes the commands below dead.
type deadCommands struct{ *cli }

// deadRecord is the record of a poison row as JSON has it.
type deadRecord struct {
	ID       int64  `json:"id"`
	Observer string `json:"observer"`
	// Key is empty where it could not be read.
	Key    string `json:"key"`
	Reason string `json:"reason"`
	// Refused says that a poll refused the row with all that came with it.
	Refused bool      `json:"refused"`
	FirstAt time.Time `json:"first_at"`
	LastAt  time.Time `json:"last_at"`
}

func recordOf(d admin.DeadRow) deadRecord {
	return deadRecord{d.ID, d.Stream, d.Key, d.Reason, d.Refused, d.FirstAt, d.LastAt}
}

func (c deadCommands) list() *cobra.Command {
	f := admin.DeadFilter{}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the records of poison rows, those that were met last first",
		Long: `List the records of poison rows: rows that could not become an event. The key and
the reason tell what to fix; the number of a record is for the other commands.`,
		Example: `  observerd dead list --observer orders --since 2h
  observerd dead list --limit 0 -o json`,
		Args: takes(0, 0),
	}
	cmd.Flags().StringArrayVar(&f.Streams, "observer", nil, "of this observer; repeat it for more")
	_ = cmd.RegisterFlagCompletionFunc("observer", c.completeObserver)
	cmd.Flags().StringVar(&f.Key, "key", "", "of the row with this key")
	cmd.Flags().Var(positive(&f.Since), "since", "met within this time, such as 2h")
	limit := limitFlag(cmd)
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, operateTimeout)
	return c.operates(cmd, timeout, admin.OperatorOptions{ReadOnly: true}, func(ctx context.Context, operator *admin.Operator, _ []string) error {
		f.Limit = oneMore(*limit)
		found, now, err := operator.Dead(ctx, f)
		records := each(limited(c.cli, *limit, found), recordOf)
		return answer(c.stdout, *output, records, err, func() error {
			return table(c.stdout, []string{"ID", "OBSERVER", "KEY", "LAST MET", "REFUSED", "REASON"}, each(records, func(d deadRecord) []string {
				return []string{number(d.ID), d.Observer, orDash(d.Key), ago(now, d.LastAt), either(d.Refused, "yes", "-"), d.Reason}
			}))
		})
	})
}

func (c deadCommands) show() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show RECORD",
		Short: "Show the record of a poison row, with what was kept of the row",
		Long: `Show the record of a poison row. The row is as it was when it was met last; it is not
read again. What could not be read of it was not kept.`,
		Example: `  observerd dead show 17`,
		Args:    takes(1, 1),
	}
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, operateTimeout)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, err := recordIDs(args)
		if err != nil {
			return err
		}
		return c.operate(cmd.Context(), *timeout, admin.OperatorOptions{ReadOnly: true}, func(ctx context.Context, operator *admin.Operator) error {
			found, now, err := operator.Dead(ctx, admin.DeadFilter{IDs: ids, Raw: true})
			if err == nil {
				err = allFound(ids, found)
			}
			if err != nil {
				return err
			}
			d := found[0]
			if *output == formatJSON {
				return printJSON(c.stdout, struct {
					deadRecord
					Row string `json:"row"`
				}{recordOf(d), string(d.Raw)})
			}
			return table(c.stdout, []string{"record", number(d.ID)}, [][]string{
				{"observer", d.Stream}, {"key", orDash(d.Key)}, {"reason", d.Reason}, {"refused", either(d.Refused, "yes", "no")},
				{"first met", timestamp(d.FirstAt)}, {"last met", timestamp(d.LastAt) + ", " + ago(now, d.LastAt)}, {"row", orDash(string(d.Raw))},
			})
		})
	}
	return cmd
}

// deadChoice says which records a command is for, who runs it and why.
type deadChoice struct {
	ids       []int64
	observers []string
	all       bool
	by        func() admin.By
	output    *format
}

// choose makes a command for records by their numbers, of observers, or for all.
func (c deadCommands) choose(cmd *cobra.Command, preset time.Duration,
	do func(ctx context.Context, operator *admin.Operator, d *deadChoice, found []admin.DeadRow) error) *cobra.Command {
	d := &deadChoice{}
	cmd.Use += " [RECORD…]"
	cmd.Args = takes(0, math.MaxInt)
	flags := cmd.Flags()
	flags.StringArrayVar(&d.observers, "observer", nil, "all records of this observer; repeat it for more")
	_ = cmd.RegisterFlagCompletionFunc("observer", c.completeObserver)
	flags.BoolVar(&d.all, "all", false, "all records of all observers")
	d.by = byFlags(cmd)
	d.output = outputFlag(cmd)
	timeout := timeoutFlag(cmd, preset)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := d.parse(args); err != nil {
			return err
		}
		return c.operate(cmd.Context(), *timeout, admin.OperatorOptions{}, func(ctx context.Context, operator *admin.Operator) error {
			found, _, err := operator.Dead(ctx, admin.DeadFilter{IDs: d.ids, Streams: d.observers})
			if err == nil {
				err = allFound(d.ids, found)
			}
			if err != nil {
				return err
			}
			slices.Reverse(found) // As they were met.
			return do(ctx, operator, d, found)
		})
	}
	return cmd
}

// parse reads the numbers of records, and checks that the choice is one.
func (d *deadChoice) parse(args []string) (err error) {
	if d.ids, err = recordIDs(args); err != nil {
		return err
	}
	byNumber, byID := len(d.ids) > 0, len(d.observers) > 0
	switch {
	case !byNumber && !byID && !d.all:
		return usageError{errors.New("say which records: the numbers that 'observerd dead list' shows, --observer ID, or --all")}
	case byNumber && byID, byNumber && d.all, byID && d.all:
		return usageError{errors.New("numbers of records, --observer and --all exclude each other")}
	}
	return nil
}

// byObserver calls do for the records of each observer. A failure of one does not keep
// it from the others.
func byObserver(found []admin.DeadRow, do func(id string, rows []admin.DeadRow) error) error {
	groups := make(map[string][]admin.DeadRow)
	for _, d := range found {
		groups[d.Stream] = append(groups[d.Stream], d)
	}
	var all error
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		if err := do(id, groups[id]); err != nil {
			all = errors.Join(all, fmt.Errorf("%s: %w", id, err))
		}
	}
	return all
}

// retriedRecord is what has become of a record as JSON has it.
type retriedRecord struct {
	deadRecord
	Outcome admin.RetryOutcome `json:"outcome"`
	// Found is why the row still is poison, Seq the sequence of its event.
	Found string `json:"found,omitempty"`
	Seq   int64  `json:"seq,omitempty"`
}

func (c deadCommands) retry() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry",
		Short: "Read poison rows again by their keys, and make events of those that were fixed",
		Long: `Read poison rows again by their keys, after what was wrong with them was fixed in the
source, and make events of those that can be read. It is done under the lock of the
observer's type and in the same fenced commits as a poll, while the nodes run: no row
becomes an event twice. The record of a row that became an event, or was observed
since, is removed. Those of other rows stay: the row is still poison, or no row is
found by the key. The exit code is 1 then.`,
		Example: `  observerd dead retry 17 18
  observerd dead retry --observer orders --reason 'INC-4711, quantities fixed'`,
	}
	return c.choose(cmd, retryTimeout, func(ctx context.Context, operator *admin.Operator, d *deadChoice, found []admin.DeadRow) error {
		var all []admin.RetriedRow
		err := byObserver(found, func(_ string, rows []admin.DeadRow) error {
			done, err := operator.RetryDead(ctx, rows, d.by())
			all = append(all, done...)
			return err
		})
		return errors.Join(c.printRetried(*d.output, all), err, leftOver(all))
	})
}

func (c deadCommands) printRetried(output format, all []admin.RetriedRow) error {
	records := each(all, func(r admin.RetriedRow) retriedRecord {
		return retriedRecord{recordOf(r.DeadRow), r.Outcome, r.Found, r.Seq}
	})
	return answer(c.stdout, output, records, nil, func() error {
		return table(c.stdout, []string{"ID", "OBSERVER", "KEY", "RESULT"}, each(all, func(r admin.RetriedRow) []string {
			return []string{number(r.ID), r.Stream, orDash(r.Key), said(r)}
		}))
	})
}

// said words what has become of a record.
func said(r admin.RetriedRow) string {
	switch r.Outcome {
	case admin.RetryEvent:
		return fmt.Sprint("became event ", r.Seq)
	case admin.RetryObserved:
		return "was observed already"
	case admin.RetryPoison:
		return "still poison: " + r.Found
	case admin.RetryMissing:
		return "no row is found by this key: it is gone, or null-timestamp leaves it out"
	}
	return "has no key to read it by: " + r.Reason
}

// leftOver is the error of a retry that has left records.
func leftOver(all []admin.RetriedRow) error {
	left := slices.DeleteFunc(slices.Clone(all), func(r admin.RetriedRow) bool {
		return r.Outcome == admin.RetryEvent || r.Outcome == admin.RetryObserved
	})
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d records stay; fix the rows and retry them, or remove the records with 'observerd dead drop'", len(left), len(all))
}

func (c deadCommands) drop() *cobra.Command {
	var yes bool
	cmd := c.choose(&cobra.Command{
		Use:   "drop",
		Short: "Remove the records of poison rows",
		Long: `Remove the records of poison rows, of which no events are to be made. The source and
the observer stay as they are: a poll that meets such a row again makes a new record.

Of an observer that reads all rows in each poll, keep the records of rows that
'observerd observers accept' has accepted: later polls know the rows by them, and
judge the rows anew, and may refuse them, when the records are gone.`,
		Example: `  observerd dead drop 17 --reason 'test order'
  observerd dead drop --observer orders --yes`,
	}, operateTimeout, func(ctx context.Context, operator *admin.Operator, d *deadChoice, found []admin.DeadRow) error {
		if len(found) > 0 {
			if err := observerCommands(c).confirm(ctx, yes, fmt.Sprintf("Remove the records of %d poison rows?", len(found))); err != nil {
				return err
			}
		}
		dropped := int64(0)
		err := byObserver(found, func(_ string, rows []admin.DeadRow) error {
			n, err := operator.DropDead(ctx, rows, d.by())
			dropped += n
			return err
		})
		return errors.Join(c.line(*d.output, map[string]int64{"dropped": dropped}, nil, "%d records removed", dropped), err)
	})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// recordIDs reads the numbers of records.
func recordIDs(args []string) ([]int64, error) {
	ids := make([]int64, len(args))
	for i, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || id <= 0 {
			return nil, usageError{fmt.Errorf("%q is no number of a record; write one that 'observerd dead list' shows", arg)}
		}
		ids[i] = id
	}
	return ids, nil
}

// allFound is an error for a number of no record.
func allFound(ids []int64, found []admin.DeadRow) error {
	for _, id := range ids {
		if !slices.ContainsFunc(found, func(d admin.DeadRow) bool { return d.ID == id }) {
			return fmt.Errorf("there is no record %d; 'observerd dead list' has those that there are", id)
		}
	}
	return nil
}

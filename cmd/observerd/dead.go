package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/fn"
)

// retryTimeout is for as many rows as may be, each of which is a read of its own.
const retryTimeout = 10 * time.Minute

func (c *cli) deadCommand() *cobra.Command {
	d := deadCommands{c}
	return group("dead", "List, show, retry and drop poison rows, and events that sinks have refused", d.list(), d.show(), d.retry(), d.drop())
}

// deadCommands makes the commands below dead.
type deadCommands struct{ *cli }

// deadRecord is the record of a poison row, or a parked event, as JSON has it.
type deadRecord struct {
	// ID is the number of a poison row.
	ID int64 `json:"id,omitempty"`
	// Record is what the commands take.
	Record string `json:"record"`
	// Sink has refused the event Seq of the observer; empty and 0 for a poison row.
	Sink     string `json:"sink,omitempty"`
	Observer string `json:"observer"`
	Event    int64  `json:"event,omitempty"`
	// Key is empty where it could not be read.
	Key    string `json:"key"`
	Reason string `json:"reason"`
	// Refused says that a poll refused the row with all that came with it.
	Refused bool      `json:"refused"`
	FirstAt time.Time `json:"first_at"`
	LastAt  time.Time `json:"last_at"`
}

func recordOf(d admin.DeadRow) deadRecord {
	return deadRecord{
		ID: d.ID, Record: number(d.ID), Observer: d.Stream, Key: d.Key, Reason: d.Reason, Refused: d.Refused, FirstAt: d.FirstAt, LastAt: d.LastAt,
	}
}

func recordOfParked(p admin.ParkedEvent) deadRecord {
	return deadRecord{
		Record: "p" + number(p.Number), Sink: p.Sink, Observer: p.Stream, Event: p.Seq, Key: p.Key, Reason: p.Reason,
		FirstAt: p.ParkedAt, LastAt: p.ParkedAt,
	}
}

// why is the reason, with the sink of a parked event.
func (d deadRecord) why() string {
	return either(d.Sink == "", d.Reason, fmt.Sprintf("sink %s, event %d: %s", d.Sink, d.Event, d.Reason))
}

func (c deadCommands) list() *cobra.Command {
	f := deadChoice{lists: true}
	var key string
	var since time.Duration
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List poison rows, the most recent first, and events that sinks have refused",
		Long: `List the records of poison rows: rows that could not become an event. The key and
the reason show what to fix; the other commands take the number of a record. Then
follow events that sinks with "on-poison: park" have refused, and later ones of their
keys, in the order in which a retry delivers them. Their numbers begin with p.`,
		Example: `  observerd dead list --observer orders --since 2h
  observerd dead list --sink shop
  observerd dead list --limit 0 -o json`,
		Args: takes(0, 0),
	}
	f.flags(c.cli, cmd, "of this", "parked events of this")
	cmd.Flags().StringVar(&key, "key", "", "of the row with this key")
	cmd.Flags().Var(positive(&since), "since", "met within this time, such as 2h")
	limit := limitFlag(cmd)
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, operateTimeout)
	return c.operates(cmd, timeout, admin.OperatorOptions{ReadOnly: true}, func(ctx context.Context, operator *admin.Operator, _ []string) error {
		f.all = len(f.observers) == 0 && len(f.sinks) == 0
		rows, parked, now, err := f.find(ctx, operator, admin.DeadFilter{Key: key, Since: since, Limit: oneMore(*limit)})
		records := limited(c.cli, *limit, append(fn.Each(rows, recordOf), fn.Each(parked, recordOfParked)...))
		return answer(c.stdout, *output, records, err, func() error {
			return table(c.stdout, []string{"ID", "OBSERVER", "KEY", "LAST MET", "REFUSED", "REASON"}, fn.Each(records, func(d deadRecord) []string {
				return []string{d.Record, d.Observer, orDash(d.Key), ago(now, d.LastAt), either(d.Refused, "yes", "-"), d.why()}
			}))
		})
	})
}

func (c deadCommands) show() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show RECORD",
		Short: "Show the record of a poison row, or a parked event, with what was kept of it",
		Long: `Show the record of a poison row, or a parked event. The row is shown as it was when it was
last met; it is not read again. What could not be read was not kept.`,
		Example: `  observerd dead show 17
  observerd dead show p3`,
		Args: takes(1, 1),
	}
	output, timeout := outputFlag(cmd), timeoutFlag(cmd, operateTimeout)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d := deadChoice{}
		if err := d.parse(args); err != nil {
			return err
		}
		return c.operate(cmd.Context(), *timeout, admin.OperatorOptions{ReadOnly: true}, func(ctx context.Context, operator *admin.Operator) error {
			rows, parked, now, err := d.find(ctx, operator, admin.DeadFilter{Raw: true})
			var found struct {
				deadRecord
				Row string `json:"row"`
			}
			for _, row := range rows {
				found.deadRecord, found.Row = recordOf(row), string(row.Raw)
			}
			for _, p := range parked {
				found.deadRecord, found.Row = recordOfParked(p), string(p.Data)
			}
			return answer(c.stdout, *output, found, err, func() error {
				return table(c.stdout, []string{"record", found.Record}, [][]string{
					{"observer", found.Observer}, {"key", orDash(found.Key)}, {"reason", found.why()}, {"refused", either(found.Refused, "yes", "no")},
					{"first met", timestamp(found.FirstAt)}, {"last met", timestamp(found.LastAt) + ", " + ago(now, found.LastAt)}, {"row", orDash(found.Row)},
				})
			})
		})
	}
	return cmd
}

// deadChoice says which records a command is for, who runs it and why.
type deadChoice struct {
	records          []string
	ids, parked      []int64 // which these are
	observers, sinks []string
	all              bool
	// lists says that nothing is done to the records: those of an observer are its parked
	// events, too.
	lists  bool
	by     func() admin.By
	output *format
}

// flags are those that choose records by what they belong to.
func (d *deadChoice) flags(c *cli, cmd *cobra.Command, rows, parked string) {
	cmd.Flags().StringArrayVar(&d.observers, "observer", nil, rows+" observer; repeat it for more")
	_ = cmd.RegisterFlagCompletionFunc("observer", c.completeObserver)
	cmd.Flags().StringArrayVar(&d.sinks, "sink", nil, parked+" sink; repeat it for more")
}

// choose makes a command for records by their numbers, of observers, of sinks, or for all.
func (c deadCommands) choose(cmd *cobra.Command, preset time.Duration,
	do func(ctx context.Context, operator *admin.Operator, d *deadChoice, rows []admin.DeadRow, parked []admin.ParkedEvent) error) *cobra.Command {
	d := &deadChoice{}
	cmd.Use += " [RECORD…]"
	cmd.Args = takes(0, math.MaxInt)
	d.flags(c.cli, cmd, "all poison rows of this", "all parked events of this")
	cmd.Flags().BoolVar(&d.all, "all", false, "all records of all observers and sinks")
	d.by = byFlags(cmd)
	d.output = outputFlag(cmd)
	timeout := timeoutFlag(cmd, preset)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := d.parse(args); err != nil {
			return err
		}
		return c.operate(cmd.Context(), *timeout, admin.OperatorOptions{}, func(ctx context.Context, operator *admin.Operator) error {
			rows, parked, _, err := d.find(ctx, operator, admin.DeadFilter{})
			if err != nil {
				return err
			}
			slices.Reverse(rows) // As they were met.
			return do(ctx, operator, d, rows, parked)
		})
	}
	return cmd
}

// parse reads the numbers of records, and checks that the choice is one.
func (d *deadChoice) parse(args []string) error {
	d.records = args
	for _, arg := range args {
		text, parked := strings.CutPrefix(arg, "p")
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id <= 0 {
			return usageError{fmt.Errorf("%q is not the number of a record; use one that 'observerd dead list' shows", arg)}
		}
		if parked {
			d.parked = append(d.parked, id)
		} else {
			d.ids = append(d.ids, id)
		}
	}
	choices := []bool{len(args) > 0, len(d.observers) > 0, len(d.sinks) > 0, d.all}
	switch len(fn.Only(choices, func(chosen bool) bool { return chosen })) {
	case 0:
		return usageError{errors.New("name the records: use the numbers that 'observerd dead list' shows, --observer ID, --sink ID, or --all")}
	case 1:
		return nil
	}
	return usageError{errors.New("numbers of records, --observer, --sink and --all exclude each other")}
}

// find returns the records that are chosen, and the database's clock.
func (d *deadChoice) find(ctx context.Context, operator *admin.Operator, f admin.DeadFilter) (rows []admin.DeadRow, parked []admin.ParkedEvent, now time.Time, err error) {
	f.IDs, f.Streams = d.ids, d.observers
	if len(d.ids) > 0 || len(d.observers) > 0 && len(d.sinks) == 0 || d.all {
		if rows, now, err = operator.Dead(ctx, f); err != nil {
			return nil, nil, now, err
		}
	}
	if len(d.parked) > 0 || d.lists && len(d.observers) > 0 || len(d.sinks) > 0 || d.all {
		parked, now, err = operator.Parked(ctx, admin.ParkedFilter{
			Numbers: d.parked, Sinks: d.sinks, Streams: d.observers, Key: f.Key, Since: f.Since, Data: f.Raw, Limit: f.Limit,
		})
	}
	found := append(fn.Each(rows, recordOf), fn.Each(parked, recordOfParked)...)
	for _, id := range d.records {
		if err == nil && !slices.ContainsFunc(found, func(r deadRecord) bool { return r.Record == id }) {
			err = codeError{exitUsage, fmt.Errorf("there is no record %s; 'observerd dead list' lists the existing ones", id)}
		}
	}
	return rows, parked, now, err
}

// byGroup calls do for the records of each observer, or sink. A failure of one does not keep
// it from the others.
func byGroup[T any](found []T, of func(T) string, do func(some []T) error) error {
	groups := fn.Group(found, func(d T) (string, T) { return of(d), d })
	var all error
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		if err := do(groups[id]); err != nil {
			all = errors.Join(all, fmt.Errorf("%s: %w", id, err))
		}
	}
	return all
}

func observerOf(d admin.DeadRow) string { return d.Stream }
func sinkOf(p admin.ParkedEvent) string { return p.Sink }

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
		Short: "Read poison rows again, and deliver parked events, after their cause was fixed",
		Long: `Read poison rows again by their keys, after they were fixed in the source, and make
events of those that can be read. This is done under the lock of the
observer's type and in the same fenced commits as a poll, while the nodes run: no row
becomes an event twice. The record of a row that became an event, or was observed
since, is removed. The others stay, because the row is still poison, or no row has
the key. The exit code is 1 then.

For parked events, the relay of their sink delivers all parked events of the same keys,
in order, with their old sequences, at least once. This command waits for it for half a
minute. An event that the sink refuses again stays parked, with those after it.`,
		Example: `  observerd dead retry 17 18 p3
  observerd dead retry --sink shop
  observerd dead retry --observer orders --reason 'INC-4711, quantities fixed'`,
	}
	return c.choose(cmd, retryTimeout, func(ctx context.Context, operator *admin.Operator, d *deadChoice, rows []admin.DeadRow, parked []admin.ParkedEvent) error {
		all := []retriedRecord{}
		err := byGroup(rows, observerOf, func(rows []admin.DeadRow) error {
			done, err := operator.RetryDead(ctx, rows, d.by())
			for _, r := range done {
				all = append(all, retriedRecord{recordOf(r.DeadRow), r.Outcome, r.Found, r.Seq})
			}
			return err
		})
		parkedErr := byGroup(parked, sinkOf, func(parked []admin.ParkedEvent) error {
			done, err := operator.RetryParked(ctx, parked, d.by())
			for _, r := range done {
				all = append(all, retriedRecord{deadRecord: recordOfParked(r.ParkedEvent), Outcome: r.Outcome})
			}
			return err
		})
		return errors.Join(answer(c.stdout, *d.output, all, nil, func() error {
			return table(c.stdout, []string{"ID", "OBSERVER", "KEY", "RESULT"}, fn.Each(all, func(r retriedRecord) []string {
				return []string{r.Record, r.Observer, orDash(r.Key), said(r)}
			}))
		}), err, parkedErr, leftOver(all))
	})
}

// said words what has become of a record.
func said(r retriedRecord) string {
	switch r.Outcome {
	case admin.RetryEvent:
		return fmt.Sprint("became event ", r.Seq)
	case admin.RetryObserved:
		return "was observed already"
	case admin.RetryPoison:
		return "still poison: " + r.Found
	case admin.RetryMissing:
		return "no row is found by this key: it is gone, or null-timestamp leaves it out"
	case admin.RetryDelivered:
		return "was delivered to " + r.Sink
	case admin.RetryRefused:
		return r.Sink + " refuses it: " + r.Reason
	case admin.RetryWaits:
		return "waits for the relay of " + r.Sink + ", which delivers it later; 'observerd sinks list' shows the progress"
	}
	return "has no key to read it by: " + r.Reason
}

// leftOver is the error of a retry that has left records.
func leftOver(all []retriedRecord) error {
	gone := []admin.RetryOutcome{admin.RetryEvent, admin.RetryObserved, admin.RetryDelivered}
	left := len(fn.Only(all, func(r retriedRecord) bool { return !slices.Contains(gone, r.Outcome) }))
	if left == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d records stay; fix what is wrong and retry them, or remove the records with 'observerd dead drop'", left, len(all))
}

func (c deadCommands) drop() *cobra.Command {
	var yes bool
	cmd := c.choose(&cobra.Command{
		Use:   "drop",
		Short: "Remove the records of poison rows, and parked events",
		Long: `Remove the records of poison rows that should not become events. The source and the
observer do not change: a poll that meets such a row again creates a new record.

Of an observer that reads all rows in each poll, keep the records of rows that
'observerd observers accept' has accepted: later polls know the rows by them, and
judge the rows anew, and may refuse them, when the records are gone.

A parked event that is dropped is not delivered. Events parked after it stay parked
until they are retried.`,
		Example: `  observerd dead drop 17 --reason 'test order'
  observerd dead drop --observer orders --yes`,
	}, operateTimeout, func(ctx context.Context, operator *admin.Operator, d *deadChoice, rows []admin.DeadRow, parked []admin.ParkedEvent) error {
		if len(rows)+len(parked) > 0 {
			question := fmt.Sprintf("Remove the records of %d poison rows and %d parked events?", len(rows), len(parked))
			if err := observerCommands(c).confirm(ctx, yes, question); err != nil {
				return err
			}
		}
		dropped := int64(0)
		count := func(n int64, err error) error {
			dropped += n
			return err
		}
		err := byGroup(rows, observerOf, func(rows []admin.DeadRow) error { return count(operator.DropDead(ctx, rows, d.by())) })
		parkedErr := byGroup(parked, sinkOf, func(parked []admin.ParkedEvent) error { return count(operator.DropParked(ctx, parked, d.by())) })
		return errors.Join(c.line(*d.output, map[string]int64{"dropped": dropped}, nil, "%d records removed", dropped), err, parkedErr)
	})
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

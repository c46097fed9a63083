package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/observerd/observerd/internal/admin"
)

// backfiller is one run of observers backfill.
type backfiller struct {
	*cli
	from, to       string
	rate           float64
	cancel, status bool
	by             func() admin.By
	output         *format
	timeout        *time.Duration
}

func (c observerCommands) backfill() *cobra.Command {
	b := &backfiller{cli: c.cli}
	cmd := &cobra.Command{
		Use:   "backfill ID",
		Short: "Read a range of the source again while polls continue",
		Long: `Read a range of an observer's source in small steps, each under the lock of its
type and in the same commits as a poll. Nodes poll in between, and no row becomes
an event twice: observed rows are recognised.

Use it for rows before the start of an observer, and for rows whose timestamp was set
back. To continue an interrupted backfill, run the command again without --from and
--to, on any host.`,
		Example: `  observerd observers backfill warehouse-orders --from 2026-01-01 --rate 2000
  observerd observers backfill warehouse-orders            continue it
  observerd observers backfill warehouse-orders --status
  observerd observers backfill warehouse-orders --cancel`,
		Args:              takes(1, 1),
		ValidArgsFunction: c.completeObserver,
		RunE:              func(cmd *cobra.Command, args []string) error { return b.run(cmd.Context(), args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&b.from, "from", "", "the first `timestamp`, such as 2026-01-31 or 2026-01-31T09:00:00Z, without a zone in UTC; the beginning of the source by default")
	flags.StringVar(&b.to, "to", "", "the first `timestamp` that is not read any more; the low-water mark by default")
	flags.Float64Var(&b.rate, "rate", 0, "read at most so many `rows` a second; max-rate of the observer by default")
	flags.BoolVar(&b.cancel, "cancel", false, "end the backfill that is running; what was read stays")
	flags.BoolVar(&b.status, "status", false, "show the progress of the last backfill")
	b.by = byFlags(cmd)
	b.output = outputFlag(cmd)
	b.timeout = cmd.Flags().Duration("timeout", 0, "stop after this time with exit code 75, to continue later; 0: never")
	return cmd
}

func (b *backfiller) run(ctx context.Context, id string) error {
	o := admin.BackfillOptions{Observer: id, Rate: b.rate, By: b.by()}
	switch {
	case b.rate < 0:
		return usageError{errors.New("--rate is negative; set 0 for max-rate of the observer")}
	case math.IsNaN(b.rate), math.IsInf(b.rate, 0):
		return usageError{errors.New("--rate is not a number of rows; set 0 for max-rate of the observer")}
	case *b.timeout < 0:
		return usageError{errors.New("--timeout is negative; use 0 for never")}
	case b.cancel && b.status, (b.cancel || b.status) && (b.from != "" || b.to != "" || b.rate > 0):
		return usageError{errors.New("--cancel and --status exclude other flags")}
	}
	for _, bound := range []struct {
		flag, text string
		at         *time.Time
	}{{"--from", b.from, &o.From}, {"--to", b.to, &o.To}} {
		if bound.text == "" {
			continue
		}
		at, err := parseTime(bound.text)
		if err != nil {
			return usageError{fmt.Errorf("%s is not a time; use for example 2026-01-31 or 2026-01-31T09:00:00Z", bound.flag)}
		}
		*bound.at = at
	}
	return b.operate(ctx, *b.timeout, admin.OperatorOptions{}, func(ctx context.Context, operator *admin.Operator) error {
		switch {
		case b.status:
			s, err := operator.BackfillStatus(ctx, id)
			if s.State == "" {
				return b.line(*b.output, s, err, "%s: there was no backfill", s.Observer)
			}
			return b.line(*b.output, s, err, "%s: backfill %s, from %s to %s, at %s: %d rows read, %d events written",
				s.Observer, s.State, cmp.Or(s.From, beginning), s.Before, cmp.Or(s.Position, beginning), s.Rows, s.Events)
		case b.cancel:
			return observerCommands{b.cli}.doAll(ctx, operator, []string{id}, o.By, func(ctx context.Context, operator *admin.Operator, id string, by admin.By) (bool, string, error) {
				changed, err := operator.CancelBackfill(ctx, id, by)
				return changed, either(changed, "backfill cancelled", "no backfill is running"), err
			}, *b.output)
		}
		return b.work(ctx, operator, o)
	})
}

// work does the backfill and shows how far it is on stderr; stdout has the
// result.
func (b *backfiller) work(ctx context.Context, operator *admin.Operator, o admin.BackfillOptions) error {
	if *b.output != formatJSON {
		o.Progress = newProgress(b.stderr).report
	}
	done, err := operator.Backfill(ctx, o)
	if done.State == "" {
		return err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded) {
		err = codeError{exitNotAcquired, fmt.Errorf("stopped after %s; the backfill continues when it is called again", *b.timeout)}
	}
	return errors.Join(err, b.line(*b.output, done, nil, "%s: backfill %s, %d rows read, %d events written", done.Observer, done.State, done.Rows, done.Events))
}

// beginning stands for the empty bound of a range.
const beginning = "the beginning"

// lineEvery is the time between two lines.
const lineEvery = 5 * time.Second

// progress shows how far a backfill is, in lines: what is done of the range, not of
// its rows, whose number is unknown.
type progress struct {
	w     io.Writer
	began time.Time
	rows  int64     // when it began
	seen  bool      // there was a report
	last  time.Time // of the last line
	said  string    // what it was waiting for then
	// part is the first that was known, at that time; negative: none yet.
	part float64
	at   time.Time
}

func newProgress(w io.Writer) *progress { return &progress{w: w, began: time.Now(), part: -1} }

// report takes the news of a step.
func (p *progress) report(b admin.Backfill) {
	if !p.seen {
		p.rows, p.seen = b.Rows, true
	}
	if b.Rows == p.rows {
		p.began = time.Now() // What it waited for before its first rows is no rate.
	}
	if p.part < 0 {
		p.part, p.at = b.Part, time.Now()
	}
	if now := time.Now(); now.Sub(p.last) >= lineEvery || b.Waiting != "" && b.Waiting != p.said {
		p.last, p.said = now, b.Waiting
		fmt.Fprintf(p.w, "%s: %s\n", b.Observer, p.text(b))
	}
}

// text is "120000 rows, 300 events, 4000 rows/s, 45%, about 1m10s left".
func (p *progress) text(b admin.Backfill) string {
	took := time.Since(p.began)
	rate := float64(b.Rows-p.rows) / math.Max(took.Seconds(), 0.001)
	text := fmt.Sprintf("%d rows, %d events, %.0f rows/s", b.Rows, b.Events, rate)
	if b.Part >= 0 {
		text += fmt.Sprintf(", %.0f%%", 100*b.Part)
	}
	if gained := b.Part - p.part; p.part >= 0 && gained > 0 && b.Part < 1 {
		text += ", about " + span(time.Duration(float64(time.Since(p.at))*(1-b.Part)/gained)) + " left"
	}
	if b.Waiting != "" {
		text += " (" + b.Waiting + ")"
	}
	return text
}

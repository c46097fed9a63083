package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/access"
	"github.com/observerd/observerd/internal/wiring"
)

// look is what the checks of all observers look at.
type look struct {
	op      *Operator
	sources *access.Opener
	sample  int
}

// check asks the source about the observer's query.
func (c *ObserverCheck) check(ctx context.Context, l look) {
	o := c.observer
	src, err := l.sources.Open(o.Source)
	if err != nil {
		c.fail("source "+o.Source, err)
		return
	}
	defer src.Close() // It was only read.
	q, err := observer.WithKeyOf(ctx, src, wiring.Spec(o, slog.New(slog.DiscardHandler)), l.op.cursorOf(ctx, o))
	if err != nil {
		c.failSource(ctx, o, err)
		return
	}
	c.observer.Key, o.Key = q.Key, q.Key
	d, err := src.Describe(ctx, q)
	if err != nil {
		c.failSource(ctx, o, err)
		return
	}
	c.Reachable = true
	c.findings = append(c.findings, judge(o, d)...)
	if err := c.checkRead(ctx, o, src); err != nil {
		c.failSource(ctx, o, err)
		return
	}
	if l.sample == 0 {
		return
	}
	c.sampleRows(ctx, o, src, l.sample)
	if !slices.ContainsFunc(c.findings, Finding.isError) {
		c.judgeLag(ctx, src, d)
		c.countHistory(ctx, src, l.op, d.TimestampNullable)
	}
}

// cursorTime bounds the wait for the cursor of a stream, which leaves time for its source.
const cursorTime = 5 * time.Second

// cursorOf returns the cursor of an observer that leaves its key to the primary key; zero
// where there is none yet, or the coordination database cannot be asked, of which its own
// check tells.
func (op *Operator) cursorOf(ctx context.Context, o config.Observer) observer.Cursor {
	if len(o.Key) > 0 {
		return observer.Cursor{}
	}
	ctx, cancel := context.WithTimeout(ctx, cursorTime)
	defer cancel()
	cursor, _ := op.cursor(ctx, o.ID)
	return cursor
}

// checkRead reads the statement of a poll and its plan: not of the first poll, which
// reads everything, but of the following ones.
func (c *ObserverCheck) checkRead(ctx context.Context, o config.Observer, src source.Database) error {
	var in observer.Range
	q := wiring.Query(o)
	if q.Timestamp != "" && o.Detect != config.DetectSnapshot {
		h, err := src.Horizon(ctx, q)
		if err != nil {
			return err
		}
		in.From, q.Form = h.Cursor, h.Form
	}
	text, err := src.SQL(ctx, q, in)
	if err != nil {
		return err
	}
	c.SQL, c.FullSQL = text.Plain, text.Full
	plan, err := src.Plan(ctx, q, in)
	if err != nil {
		c.findings = append(c.findings, Finding{SeverityWarning, "observer " + c.ID, fmt.Sprintf("the plan of its polls cannot be shown: %v", err), nil})
		return nil
	}
	c.Plan = plan.Text
	c.findings = append(c.findings, judgePlan(o, plan)...)
	return nil
}

// sampleRows makes events of the first rows.
func (c *ObserverCheck) sampleRows(ctx context.Context, o config.Observer, src source.Database, n int) {
	s := wiring.Spec(o, slog.New(slog.DiscardHandler))
	s.Start = observer.Start{}
	made, err := observer.New(s)
	if err != nil {
		c.fail("observer "+c.ID, wiring.Mistake(err))
		return
	}
	var poison []observer.Dead
	stats, err := made.Poll(ctx, firstRows{src, n}, observer.DryRun(blank{}, func(ch observer.Chunk) error {
		for _, e := range ch.Events {
			e.Seq = int64(len(c.Sample)) + 1
			c.Sample = append(c.Sample, events.AppendJSON(nil, &e))
		}
		for _, dead := range ch.Dead {
			c.Dead = append(c.Dead, DryDead{Key: dead.Key, Reason: dead.Reason})
		}
		poison = append(poison, ch.Dead...)
		return nil
	}))
	if err != nil && !errors.Is(err, observer.ErrMostlyPoison) {
		c.failSource(ctx, o, fmt.Errorf("read the first rows: %w", err))
		return
	}
	if slices.ContainsFunc(c.findings, Finding.isError) {
		return // Rows may be poison for that.
	}
	c.findings = append(c.findings, judgeSample(o, poison, stats.Rows, func() bool {
		q := wiring.Query(o)
		q.Columns, q.NullTimestamp = q.Key, observer.NullSkip
		dated, err := hasRows(ctx, src, q, "")
		return dated && err == nil
	})...)
}

// failSource adds a failure of a source: a refused session is a finding about the
// source, every other about the observer.
func (c *ObserverCheck) failSource(ctx context.Context, o config.Observer, err error) {
	class := observer.ClassOf(err)
	if text := remedy(o, err); text != "" {
		err = fmt.Errorf("%w; %s", err, text)
	}
	subject := "source " + o.Source
	if c.Reachable = class != observer.ClassUnreachable && !access.NoSession(class) && ctx.Err() == nil; c.Reachable {
		subject = "observer " + c.ID
	}
	switch {
	case class == observer.ClassUnreachable, c.Reachable && wiring.Passes(class):
	case !c.Reachable && !access.NoSession(class):
		err = &observer.Fault{Class: observer.ClassUnreachable, Err: fmt.Errorf("%w: no answer in time", observer.ErrUnreachable)}
	default:
		err = wiring.Mistake(err)
	}
	c.fail(subject, err)
}

// remedy says what to write where the source says only what is wrong; it is empty for a
// failure that says so itself, and for one that passes.
func remedy(o config.Observer, err error) string {
	if errors.As(err, new(*source.MissingError)) || strings.Contains(err.Error(), "; ") {
		return ""
	}
	switch observer.ClassOf(err) {
	case observer.ClassCredentials:
		return "use the right user and password for sources." + o.Source
	case observer.ClassSettings:
		return "use the right host, database and parameters at sources." + o.Source + ".url"
	case observer.ClassQuery, observer.ClassData:
		if o.Query != "" {
			return "use a query that the database runs for this account"
		}
		return "use another table, or grant this account what it lacks"
	}
	return ""
}

// firstRows reads only the first rows of a source.
type firstRows struct {
	source.Database
	n int
}

// Horizon implements [observer.Source]. No part of the rows is read by itself.
func (s firstRows) Horizon(ctx context.Context, q observer.Query) (observer.Horizon, error) {
	h, err := s.Database.Horizon(ctx, q)
	h.Form, h.Undated = "", false
	return h, err
}

func (s firstRows) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	in.Part, in.Limit = observer.PartAll, s.n
	rows, err := s.Database.Read(ctx, q, in)
	if err != nil {
		return nil, err
	}
	return &fewRows{Rows: rows, left: s.n}, nil
}

// fewRows end early: a query without a timestamp has no limit of its own.
type fewRows struct {
	observer.Rows
	left int
}

func (r *fewRows) Next() bool {
	if r.left == 0 {
		return false
	}
	r.left--
	return r.Rows.Next()
}

// Err implements [observer.Rows]. Rows beyond the limit are no failure.
func (r *fewRows) Err() error {
	err := r.Rows.Err()
	if r.left == 0 && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

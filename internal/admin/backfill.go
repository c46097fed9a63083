package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/wiring"
)

// errNoBackfill is wrapped where a backfill could do nothing.
var errNoBackfill = errors.New("there is nothing to backfill")

// BackfillOptions describe the range to read again.
type BackfillOptions struct {
	// Observer is an id.
	Observer string
	// From and To bound the range; zero is the beginning of the source, and
	// the current low-water mark. Both zero continues a running backfill.
	From, To time.Time
	// Rate is the most rows that are read in a second; 0 is the observer's
	// max-rate.
	Rate float64
	// By is for the audit table.
	By By
	// Progress is called with the state before the first step and after each;
	// nil is allowed.
	Progress func(Backfill)
}

// Backfill is a range that is read beside the polls of an observer.
type Backfill struct {
	Observer string `json:"observer"`
	// State is running, done or cancelled; empty when there was never one.
	State string `json:"state"`
	// From, Before and Position are the source's own text; empty is its
	// beginning.
	From     string `json:"from"`
	Before   string `json:"before"`
	Position string `json:"position"`
	Rows     int64  `json:"rows"`
	Events   int64  `json:"events"`
	// Part is how much of the range lies below the position, from 0 to 1;
	// negative where that cannot be told.
	Part      float64   `json:"part"`
	StartedAt time.Time `json:"started_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	// Waiting says what the next step waits for; empty: for nothing.
	Waiting string `json:"waiting,omitempty"`
}

func newBackfill(s observer.Sweep, first string) Backfill {
	b := Backfill{
		Observer: s.Stream, State: string(s.State), From: s.From, Before: s.Before, Position: s.Position, Rows: s.Rows, Events: s.Events,
		Part: fraction(first, s.Position, s.Before), StartedAt: s.StartedAt, UpdatedAt: s.UpdatedAt,
	}
	if s.State == observer.SweepDone {
		b.Part = 1
	}
	return b
}

// Backfill reads a range of an observer's source in steps, each under the lock
// of its type and in the same fenced commits as a poll, so that it may run
// beside the nodes and no row becomes an event twice. It continues a backfill
// that was begun before. When ctx ends, the commits stay, and the next call
// continues from there.
func (op *Operator) Backfill(ctx context.Context, o BackfillOptions) (_ Backfill, err error) {
	configured, err := op.backfilled(ctx, o.Observer)
	if err != nil {
		return Backfill{}, err
	}
	src, err := op.open(configured.Source)
	if err != nil {
		return Backfill{}, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	b := &backfill{op: op, options: o, source: src, typ: wiring.TypeOf(op.cfg, configured)}
	q, err := observer.WithKey(ctx, src, wiring.Query(configured))
	if err != nil {
		return Backfill{}, err
	}
	if b.sweep, err = b.begin(ctx, q); err != nil {
		return Backfill{}, err
	}
	s := wiring.Spec(configured, op.log)
	s.Definition = wiring.DefinitionHash(configured, src)
	if o.Rate > 0 {
		s.MaxRate = o.Rate
	}
	b.budget = stepBudget(b.typ.Interval, s.MaxRate)
	s.ChunkRows = min(s.ChunkRows, b.budget.Rows)
	if b.observer, err = observer.New(s); err != nil {
		return Backfill{}, err
	}
	return b.run(ctx)
}

// backfilled returns the configuration of an observer that can be backfilled.
func (op *Operator) backfilled(ctx context.Context, id string) (config.Observer, error) {
	o, err := op.configured(id)
	if err != nil {
		return o, err
	}
	known, err := op.known(ctx, id)
	switch {
	case err != nil:
		return o, err
	case o.Timestamp == "" || o.Detect == config.DetectSnapshot:
		return o, fmt.Errorf("%w: observer %s reads all of its source in every poll", errNoBackfill, id)
	case known[id].Low == "":
		return o, fmt.Errorf("%w: observer %s was not polled yet, and its polls begin where its start says; 'observerd poll %s --once' polls it", errNoBackfill, id, id)
	}
	return o, op.checkPaused(ctx, id)
}

// begin returns the sweep to do: a new sweep, or the running sweep.
func (b *backfill) begin(ctx context.Context, q observer.Query) (observer.Sweep, error) {
	o, db := b.options, b.op.db
	running, ok, err := runningBackfill(ctx, db, o.Observer)
	if err != nil {
		return observer.Sweep{}, err
	}
	if ok && o.From.IsZero() && o.To.IsZero() {
		detail := fmt.Sprintf("%s %d: at %q", running.Kind, running.ID, running.Position)
		return running, db.Operations().Note(ctx, lockdb.Did(o.By, "continue-sweep", o.Observer, detail))
	}
	wanted, err := b.wanted(ctx, q)
	started := running
	if err == nil && !ok {
		started, err = db.Sweeps().Start(ctx, wanted, o.By)
	}
	if err != nil && !errors.Is(err, lockdb.ErrSweepRunning) {
		return observer.Sweep{}, err
	}
	if !o.From.IsZero() && started.From != wanted.From || !o.To.IsZero() && started.Before != wanted.Before {
		return started, fmt.Errorf("another backfill of %s is running, from %s to %s; leave out --from and --to to continue it, or end it with --cancel",
			o.Observer, shownBound(started.From), shownBound(started.Before))
	}
	return started, nil
}

func shownBound(cursor string) string { return cmp.Or(cursor, "the beginning") }

// wanted is the sweep of the options, its range in the source's own text.
func (b *backfill) wanted(ctx context.Context, q observer.Query) (observer.Sweep, error) {
	o, src := b.options, b.source
	s := observer.Sweep{Stream: o.Observer, Kind: observer.SweepBackfill}
	cursor, err := b.op.db.Peek().Cursor(ctx, o.Observer)
	if err != nil {
		return s, err
	}
	q.Form = cursor.Marks.Form
	if !o.From.IsZero() {
		if s.From, err = src.CursorAt(ctx, q, o.From); err != nil {
			return s, err
		}
	}
	if o.To.IsZero() {
		s.Before = cursor.Low
	} else if s.Before, err = src.CursorAt(ctx, q, o.To); err != nil {
		return s, err
	}
	if src.Compare(s.From, s.Before) >= 0 {
		return s, fmt.Errorf("%w: the range from %s to %s is empty", errNoBackfill, shownBound(s.From), shownBound(s.Before))
	}
	return s, nil
}

// runningBackfill returns the running backfill of an observer; false when there is none.
func runningBackfill(ctx context.Context, db *lockdb.DB, id string) (observer.Sweep, bool, error) {
	s, err := wiring.LastSweep(ctx, db, id, observer.SweepBackfill)
	return s, s.State == observer.SweepRunning, err
}

// BackfillStatus returns the backfill of an observer that is running or was
// started last.
func (op *Operator) BackfillStatus(ctx context.Context, id string) (Backfill, error) {
	if _, err := op.known(ctx, id); err != nil {
		return Backfill{}, err
	}
	s, err := wiring.LastSweep(ctx, op.db, id, observer.SweepBackfill)
	if err != nil || s.ID == 0 {
		return Backfill{Observer: id, Part: -1}, err
	}
	return newBackfill(s, s.From), nil
}

// CancelBackfill ends the backfill of an observer; its commits stay.
// It reports false when none is running.
func (op *Operator) CancelBackfill(ctx context.Context, id string, by By) (changed bool, err error) {
	if _, err := op.known(ctx, id); err != nil {
		return false, err
	}
	s, ok, err := runningBackfill(ctx, op.db, id)
	if err != nil || !ok {
		return false, err
	}
	err = op.db.Sweeps().Cancel(ctx, s.ID, by)
	if errors.Is(err, lockdb.ErrSweepEnded) {
		return false, nil
	}
	return err == nil, err
}

// fraction is how much of the range from first to last lies below at, from 0 to 1;
// negative where the source's texts are neither numbers nor times.
func fraction(first, at, last string) float64 {
	from, ok1 := measure(first)
	now, ok2 := measure(at)
	to, ok3 := measure(last)
	if !ok1 || !ok2 || !ok3 || to <= from {
		return -1
	}
	return min(max((now-from)/(to-from), 0), 1)
}

// measure reads a cursor as a number: a number itself, or the seconds of a time. The
// zone does not matter because only differences count.
func measure(cursor string) (float64, bool) {
	if n, err := strconv.ParseFloat(cursor, 64); err == nil {
		return n, true
	}
	text := strings.Replace(cursor, "T", " ", 1)
	for _, form := range []string{"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z07", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.Parse(form, text); err == nil {
			return float64(at.UnixMicro()) / 1e6, true
		}
	}
	return 0, false
}

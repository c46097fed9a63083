package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// Read implements [observer.Source]. Where the timestamp may be NULL, the rows
// without one come first, from a SELECT of their own in the same snapshot.
func (s *Source) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	watched, silence := source.WatchSilence(ctx, s.options.QueryTimeout)
	tx, err := s.db.BeginTx(watched, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		silence.Stop()
		return nil, s.translate(ctx, "begin the read", err)
	}
	r := &rows{source: s, ctx: watched, silence: silence, tx: tx}
	if err := r.prepare(q, in); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// rows streams the rows of a read.
type rows struct {
	encoder
	source  *Source
	ctx     context.Context
	silence *source.Silence
	tx      *sql.Tx
	steps   []step
	step    step // that runs
	current *sql.Rows
	values  []any
	targets []any // pointers into values
	ties    string
	row     *observer.Row
	err     error
	closed  bool
}

func (r *rows) prepare(q observer.Query, in observer.Range) error {
	ctx, cancel := r.source.deadline(r.ctx)
	defer cancel()
	p, err := r.source.plan(ctx, r.tx, q, in)
	if err != nil {
		return err
	}
	b, err := source.NewBuilder(q, p.selection)
	if err != nil {
		return err
	}
	r.encoder = encoder{selection: p.selection, builder: b, location: r.source.options.Location}
	r.steps, r.ties = p.steps, p.ties
	r.values = make([]any, len(p.selection.Columns))
	r.targets = make([]any, len(r.values))
	for i := range r.values {
		r.targets[i] = &r.values[i]
	}
	return nil
}

// Next implements [observer.Rows].
func (r *rows) Next() bool {
	if r.err != nil || r.closed {
		return false
	}
	// The drivers notice only when they next wait, which may be much later.
	if r.ctx.Err() != nil {
		r.err = r.source.translate(r.ctx, "read rows", r.ctx.Err())
		return false
	}
	r.silence.Wait()
	defer r.silence.Got()
	for {
		if r.current == nil {
			if len(r.steps) == 0 {
				return false
			}
			r.step, r.steps = r.steps[0], r.steps[1:]
			r.current, r.err = r.tx.QueryContext(r.ctx, r.step.sql, r.step.args...) //nolint:rowserrcheck // Checked below, where the rows end.
			if r.err != nil {
				return r.fail(r.err)
			}
		}
		if r.current.Next() {
			if err := r.current.Scan(r.targets...); err != nil {
				return r.fail(err)
			}
			r.row = r.encode(r.values)
			return true
		}
		if err := errors.Join(r.current.Err(), r.current.Close()); err != nil {
			return r.fail(err)
		}
		r.current = nil
	}
}

func (r *rows) fail(err error) bool {
	r.err = r.source.overRows(r.ctx, r.tx, "read rows", err, r.step)
	return false
}

// Columns implements [observer.Rows].
func (r *rows) Columns() []observer.Column { return r.selection.Members() }

// KeyOrder implements [observer.Rows].
func (r *rows) KeyOrder() string { return r.ties }

// Row implements [observer.Rows].
func (r *rows) Row() *observer.Row { return r.row }

// Err implements [observer.Rows].
func (r *rows) Err() error { return r.err }

// Close implements [observer.Rows].
func (r *rows) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	defer r.silence.Stop()
	if r.current != nil {
		// What it reports was reported by Next, or is of no interest any more.
		_ = r.current.Close()
	}
	// There is nothing to commit. A context that ended has done this already.
	_ = r.tx.Rollback()
	return nil
}

// encoder turns the values of a row into a row.
type encoder struct {
	selection source.Selection
	builder   *source.Builder
	location  *time.Location
	scratch   []byte
}

func (e *encoder) encode(values []any) *observer.Row {
	b := e.builder
	b.Start()
	for n, i := range e.selection.Key {
		b.KeyPart(n, e.keyText(values[i]))
	}
	cursor, at := e.timestamp(values)
	for i := range e.selection.Data {
		b.Member(i)
		appendCell(b, i, values[i])
	}
	return b.Finish(cursor, at)
}

func (e *encoder) timestamp(values []any) ([]byte, time.Time) {
	i := e.selection.Timestamp
	if i < 0 || values[i] == nil {
		return nil, time.Time{}
	}
	_, at, ok := parseValue(values[i], e.location)
	if !ok {
		e.builder.Fail(i, "is not a timestamp that is understood")
		return nil, time.Time{}
	}
	e.scratch = appendCursor(e.scratch[:0], values[i])
	return e.scratch, at
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// Read implements [observer.Source]. Where the timestamp may be NULL, the rows
// without one come first, from a SELECT of their own in the same snapshot.
func (s *Source) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	watched, silence := source.WatchSilence(ctx, s.options.QueryTimeout)
	r := &rows{source: s, ctx: watched, silence: silence}
	if err := r.begin(); err != nil {
		return nil, errors.Join(s.translate(ctx, "begin the read", err), r.Close())
	}
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
	conn    *sql.Conn
	tx      *sql.Tx
	steps   []step
	step    step // that runs
	count   int  // of its rows that were read
	current *sql.Rows
	values  []any
	targets []any // pointers into values
	// bounded says that a large row was met, share is the limit until then, and
	// unlimited that of the connection.
	bounded          bool
	share, unlimited int
	ties             string
	row              *observer.Row
	err              error
	closed           bool
}

// begin takes a connection, and a snapshot.
func (r *rows) begin() (err error) {
	if r.conn, err = r.source.db.Conn(r.ctx); err != nil {
		return err
	}
	if r.unlimited, err = limitValues(r.conn, -1); err != nil {
		return err
	}
	r.tx, err = r.conn.BeginTx(r.ctx, &sql.TxOptions{ReadOnly: true})
	return err
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
	r.encoder = encoder{selection: p.selection, builder: b, location: r.source.options.Location, form: formOf(q.Form), normal: q.NormalKeys}
	r.steps, r.ties, r.share = p.steps, p.ties, p.share()
	r.values = make([]any, len(p.selection.Columns)+1) // One of them for what is left behind.
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
	for r.current != nil || len(r.steps) > 0 {
		more, err := r.advance()
		if isTooLarge(err) && !r.bounded {
			more, err = false, r.again()
		}
		switch {
		case err != nil:
			r.err = r.source.overRows(r.ctx, r.tx, "read rows", err, r.step)
			return false
		case more:
			r.count++
			r.row = r.encode(r.values, r.left())
			return true
		}
	}
	return false
}

// advance goes to the next row of a step, or to its end. It begins one where none
// runs.
func (r *rows) advance() (more bool, err error) {
	if r.current == nil {
		r.step, r.steps, r.count = r.steps[0], r.steps[1:], 0
		if err := r.run(); err != nil {
			return false, err
		}
	}
	if r.current.Next() {
		return true, r.current.Scan(r.targets[:r.items()]...)
	}
	err = errors.Join(r.current.Err(), r.current.Close())
	r.current = nil
	return false, err
}

// Columns implements [observer.Rows].
func (r *rows) Columns() []observer.Column { return r.selection.Members() }

// KeyColumns implements [observer.Rows].
func (r *rows) KeyColumns() []observer.KeyColumn { return r.selection.KeyColumns() }

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
	if r.tx != nil {
		// There is nothing to commit. A context that ended has done this already.
		_ = r.tx.Rollback()
	}
	if r.conn != nil {
		r.release()
	}
	return nil
}

// encoder turns the values of a row into a row.
type encoder struct {
	selection source.Selection
	builder   *source.Builder
	location  *time.Location
	form      form // of all rows that have a place in their order; empty for any
	normal    bool // keys are written in the normal form
	scratch   []byte
}

// encode makes a row of its values and what is left behind of it.
func (e *encoder) encode(values []any, left source.Left) *observer.Row {
	b := e.builder
	b.Start(left)
	for n, i := range e.selection.Key {
		b.KeyPart(n, e.keyPart(i, values[i]))
	}
	cursor, at := e.timestamp(values, left)
	for i := range e.selection.Data {
		if !b.Member(i) {
			break
		}
		appendCell(b, i, values[i])
	}
	return b.Finish(cursor, at)
}

func (e *encoder) timestamp(values []any, left source.Left) ([]byte, time.Time) {
	i := e.selection.Timestamp
	text, _ := values[max(i, 0)].(string)
	long := left&source.LeftTimestamp != 0 || len(text) > source.ShortValue
	if i < 0 || values[i] == nil && !long {
		return nil, time.Time{}
	}
	f, at, ok := parseValue(values[i], e.location)
	switch {
	case !ok || long:
		e.builder.Fail(i, "is not a timestamp that is understood")
		return nil, time.Time{}
	case e.form != "" && f != e.form:
		e.builder.Fail(i, fmt.Sprintf("has a timestamp in %s, where most are in %s", f, e.form))
		return nil, time.Time{}
	}
	e.scratch = appendCursor(e.scratch[:0], values[i])
	return e.scratch, at
}

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
	r := &rows{source: s}
	if err := r.begin(ctx); err != nil {
		return nil, errors.Join(s.session.translate(ctx, "begin the read", err), r.Close(ctx))
	}
	if err := r.prepare(ctx, q, in); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return r.stream, nil
}

// rows are the results of a read.
type rows struct {
	cells
	source  *Source
	stream  *source.Stream
	conn    *sql.Conn
	tx      *sql.Tx
	session session // on tx
	steps   []step
	step    step // that runs
	count   int  // of its rows that were read
	current *sql.Rows
	targets []any // pointers into values
	// bounded says that a large row was met, share is the limit until then, and
	// unlimited that of the connection.
	bounded          bool
	share, unlimited int
}

// begin takes a connection, and a snapshot.
func (r *rows) begin(ctx context.Context) (err error) {
	if r.conn, err = r.source.db.conn(ctx); err != nil {
		return err
	}
	if r.unlimited, err = limitValues(r.conn, -1); err != nil {
		return err
	}
	r.tx, err = r.conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	r.session = session{r.tx, r.source.session.path}
	return err
}

func (r *rows) prepare(ctx context.Context, q observer.Query, in observer.Range) error {
	bounded, cancel := r.source.deadline(ctx)
	defer cancel()
	p, err := r.session.plan(bounded, q, in)
	if err != nil {
		return err
	}
	b, err := source.NewBuilder(q, p.selection)
	if err != nil {
		return err
	}
	o := r.source.options
	r.cells = cells{selection: p.selection, location: o.Location, form: formOf(q.Form)}
	r.steps, r.share = p.steps, p.share()
	r.values = make([]any, len(p.selection.Columns)+1) // One of them for what is left behind.
	r.targets = make([]any, len(r.values))
	for i := range r.values {
		r.targets[i] = &r.values[i]
	}
	r.stream = source.NewStream(ctx, o.QueryTimeout, source.StreamOptions{
		Selection: p.selection, Ties: p.ties, Statements: len(p.steps), Result: r, Cells: &r.cells, Builder: b,
	})
	return nil
}

// Open implements [source.Result].
func (r *rows) Open(ctx context.Context, n int) error {
	r.step, r.count = r.steps[n], 0
	err := r.run(ctx)
	if r.metLarge(err) {
		err = r.again(ctx)
	}
	return r.failed(ctx, err)
}

// Next implements [source.Result].
func (r *rows) Next(ctx context.Context) (bool, error) {
	more, err := r.advance()
	if r.metLarge(err) {
		if err = r.again(ctx); err == nil {
			more, err = r.advance()
		}
	}
	if err != nil {
		return false, r.failed(ctx, err)
	}
	r.count++
	return more, nil
}

// advance goes to the next row of a statement, or to its end.
func (r *rows) advance() (more bool, err error) {
	if r.current.Next() {
		return true, r.current.Scan(r.targets[:r.items()]...)
	}
	err = errors.Join(r.current.Err(), r.current.Close())
	r.current = nil
	return false, err
}

func (r *rows) failed(ctx context.Context, err error) error {
	return r.session.overRows(ctx, "read rows", err, r.step)
}

// Failed implements [source.Result].
func (r *rows) Failed(ctx context.Context, err error) error {
	return r.session.translate(ctx, "read rows", err)
}

// Close implements [source.Result].
func (r *rows) Close(context.Context) error {
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

// cells are the values of a row, and behind them what is left behind of it.
type cells struct {
	selection source.Selection
	location  *time.Location
	form      form // of all rows that have a place in their order; empty for any
	values    []any
	scratch   []byte
}

// Left implements [source.Cells].
func (c *cells) Left() source.Left {
	left, _ := c.values[len(c.values)-1].(int64) // nil, until a large row was met
	return source.Left(left)
}

// Append implements [source.Cells].
func (c *cells) Append(b *source.Builder, i int) { appendCell(b, i, c.values[i]) }

// Cursor implements [source.Cells].
func (c *cells) Cursor(i int) ([]byte, time.Time, string) {
	text, _ := c.values[i].(string)
	long := c.Left()&source.LeftTimestamp != 0 || len(text) > source.ShortValue
	if c.values[i] == nil && !long {
		return nil, time.Time{}, ""
	}
	f, at, ok := parseValue(c.values[i], c.location)
	switch {
	case !ok || long:
		return nil, time.Time{}, "is not a timestamp that is understood"
	case c.form != "" && f != c.form:
		return nil, time.Time{}, fmt.Sprintf("has a timestamp in %s, where most are in %s", f, c.form)
	}
	c.scratch = appendCursor(c.scratch[:0], c.values[i])
	return c.scratch, at, ""
}

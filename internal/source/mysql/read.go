package mysql

import (
	"context"
	"database/sql/driver"
	"io"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// Read implements [observer.Source]. Where the timestamp may be NULL, the rows
// without one come last, from a second SELECT in the same snapshot.
func (s *Source) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	r := &rows{source: s, parent: ctx, query: q, in: in}
	err := s.waits.Retry(ctx, func() (err error) {
		r.session, r.plan, err = s.begin(ctx, q, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	b, err := source.NewBuilder(q, r.plan.selection)
	if err != nil {
		r.Leave()
		return nil, source.Unfit(err)
	}
	r.cells = newCells(r.plan, s.options.Location)
	return source.NewStream(ctx, s.options.QueryTimeout, source.StreamOptions{
		Selection: r.plan.selection, Ties: r.plan.ties, Statements: len(r.plan.steps), Result: r, Cells: &r.cells, Builder: b,
		Waits: s.waits, Restarter: r,
	}), nil
}

// begin opens a snapshot and plans a read in it, so that the server refuses to
// read an InnoDB table in it that is rebuilt after that.
func (s *Source) begin(ctx context.Context, q observer.Query, in observer.Range) (*session, plan, error) {
	c, err := s.acquire(ctx)
	if err != nil {
		return nil, plan{}, err
	}
	var p plan
	if err = c.snapshot(ctx); err == nil {
		p, err = c.plan(ctx, q, in)
	}
	if err == nil {
		err = source.CheckOrder(in, p.orderID(p.order.Parts), p.ties)
	}
	if err != nil {
		c.end(ctx)
		return nil, plan{}, err
	}
	return c, p, nil
}

// rows are the results of a read.
type rows struct {
	cells
	source  *Source
	session *session // nil while a lock is waited for
	parent  context.Context
	query   observer.Query
	in      observer.Range
	reader  driverRows
	step    step
}

// Begin implements [source.Restarter]. The session that held the lock may have altered
// the table, and the columns of the plan are known already.
func (r *rows) Begin(ctx context.Context) error {
	if r.session != nil {
		return nil
	}
	c, p, err := r.source.begin(ctx, r.query, r.in)
	if err != nil {
		return err
	}
	r.session = c
	if !p.same(r.plan) {
		return errAltered()
	}
	return nil
}

// Open implements [source.Result].
func (r *rows) Open(ctx context.Context, n int) (err error) {
	r.step = r.plan.steps[n]
	conn := r.session.conn
	r.reader, err = conn.QueryContext(ctx, conn.unlimited(r.step.sql), nil)
	if err != nil {
		r.reader = nil
		return r.fail(ctx, err)
	}
	return r.plan.check(r.reader)
}

// Next implements [source.Result].
func (r *rows) Next(ctx context.Context) (bool, error) {
	err := r.reader.Next(r.values)
	if err == nil {
		return true, nil
	}
	if err == io.EOF { //nolint:errorlint // The driver's contract is this very value.
		err = r.reader.Close()
		r.reader = nil
	}
	if err != nil {
		return false, r.fail(ctx, err)
	}
	return false, nil
}

// fail words what has ended a statement that was waited for. One whose answer does
// not come in time may still run, and is ended over there.
func (r *rows) fail(ctx context.Context, err error) error {
	r.session.failed(err)
	if ctx.Err() != nil {
		r.session.kill()
	}
	err = r.source.translate(ctx, source.Reading, "read rows", err)
	if r.session.broken {
		return err
	}
	if r.reader != nil { // A refusal was its end.
		_ = r.reader.Close()
		r.reader = nil
	}
	return r.session.explained(ctx, "read rows", err, r.step.text)
}

// Failed implements [source.Result].
func (r *rows) Failed(ctx context.Context, err error) error {
	r.session.failed(err)
	return r.source.translate(ctx, source.Reading, "read rows", err)
}

// Leave implements [source.Restarter]: all statements belong to one snapshot.
func (r *rows) Leave() {
	if r.session != nil {
		r.session.end(r.parent)
		r.session = nil
	}
}

// Close implements [source.Result]. A statement that was not read to its end costs its
// connection: the server would send the rest of it first.
func (r *rows) Close(context.Context) error {
	if r.reader != nil {
		r.session.broken = true
		_ = r.session.conn.socket.Close() // The driver has nothing left to read what is left of the rows from.
		_ = r.reader.Close()
	}
	r.Leave()
	return nil
}

// cells are the values of a row.
type cells struct {
	plan     plan
	location *time.Location
	values   []driver.Value
	key      []byte
	cursor   []byte
}

func newCells(p plan, loc *time.Location) cells {
	// No number and no timestamp is longer.
	return cells{plan: p, location: loc, values: make([]driver.Value, p.items()), key: make([]byte, 0, 64), cursor: make([]byte, 0, 32)}
}

// Left implements [source.Cells].
func (c *cells) Left() source.Left {
	if !c.plan.leaves {
		return 0
	}
	return source.ReadLeft(text(c.key[:0], c.values[len(c.values)-1]))
}

// KeyText implements [source.Cells].
func (c *cells) KeyText(i int) []byte {
	if c.values[i] == nil {
		return nil
	}
	return appendKey(c.key[:0], c.plan.kinds[i], c.values[i])
}

// Append implements [source.Cells].
func (c *cells) Append(b *source.Builder, i int) { appendCell(b, i, c.plan.kinds[i], c.values[i]) }

// Cursor implements [source.Cells].
func (c *cells) Cursor(i int) ([]byte, time.Time, string) {
	if c.values[i] == nil {
		return nil, time.Time{}, ""
	}
	var ok bool
	if c.cursor, ok = c.plan.time.appendCursor(c.cursor[:0], text(c.key[:0], c.values[i])); !ok {
		return nil, time.Time{}, "is a zero date, or one that no calendar has"
	}
	return c.cursor, c.plan.time.Instant(c.cursor, c.location), ""
}

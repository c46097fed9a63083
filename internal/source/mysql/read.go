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
	var c *session
	var p plan
	err := s.waits.Unlocked(ctx, locked, func() (err error) {
		c, p, err = s.begin(ctx, q, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	b, err := source.NewBuilder(q, p.selection)
	if err != nil {
		c.end(ctx)
		return nil, unfit(err)
	}
	r := &rows{
		encoder: newEncoder(p, b, s.options.Location),
		source:  s, session: c, parent: ctx, query: q, in: in, values: make([]driver.Value, p.items()),
	}
	r.ctx, r.silence = source.WatchSilence(ctx, s.options.QueryTimeout)
	return r, nil
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
		err = p.checkOrder(in)
	}
	if err != nil {
		c.end(ctx)
		return nil, plan{}, err
	}
	return c, p, nil
}

func (p *plan) checkOrder(in observer.Range) error {
	if in.ByKey {
		return source.CheckOrder(in, p.orderID(p.order.parts))
	}
	return source.CheckOrder(in, p.ties)
}

// rows streams the rows of a read.
type rows struct {
	encoder
	source  *Source
	session *session // nil while a lock is waited for
	parent  context.Context
	ctx     context.Context
	silence *source.Silence
	query   observer.Query
	in      observer.Range
	reader  driver.Rows
	values  []driver.Value
	next    int // step to run next
	row     *observer.Row
	err     error
	closed  bool
}

// Next implements [observer.Rows].
func (r *rows) Next() bool {
	if r.err != nil || r.closed {
		return false
	}
	// The driver notices only when it next waits, which may be much later.
	if r.ctx.Err() != nil {
		r.err = r.fail(r.ctx.Err(), "")
		return false
	}
	for {
		if r.reader == nil {
			if r.next == len(r.plan.steps) {
				return false
			}
			if r.err = r.source.waits.Unlocked(r.ctx, r.locked, r.open); r.err != nil {
				return false
			}
			r.next++
		}
		more, err := r.fetch()
		if more || err != nil {
			r.err = err
			return more
		}
	}
}

// open runs the next step. Where somebody else has locked its table, it gives
// the connection back.
func (r *rows) open() error {
	if r.session == nil {
		if err := r.begin(); err != nil {
			return err
		}
	}
	r.silence.Wait()
	defer r.silence.Got()
	conn, step := r.session.conn, r.plan.steps[r.next]
	var err error
	r.reader, err = conn.inner.QueryContext(r.ctx, conn.unlimited(step.sql), nil)
	if err == nil {
		return r.plan.check(r.reader)
	}
	r.reader = nil
	err = r.fail(err, step.text)
	if r.locked(err) {
		r.leave()
	}
	return err
}

// begin begins the read anew after a lock. Who held that may have altered the
// table, and the columns of the plan were told of already.
func (r *rows) begin() error {
	c, p, err := r.source.begin(r.ctx, r.query, r.in)
	if err != nil {
		return err
	}
	r.session = c
	if !p.same(r.plan) {
		return errAltered()
	}
	return nil
}

// locked reports whether nothing was read yet because somebody else has locked
// the table: all steps belong to one snapshot.
func (r *rows) locked(err error) bool { return r.next == 0 && locked(err) }

// fetch waits for the next row of a step, or ends the step.
func (r *rows) fetch() (more bool, err error) {
	r.silence.Wait()
	defer r.silence.Got()
	err = r.reader.Next(r.values)
	if err == nil {
		r.row = r.encode(r.values)
		return true, nil
	}
	if err == io.EOF { //nolint:errorlint // The driver's contract is this very value.
		err = r.reader.Close()
		r.reader = nil
	}
	if err != nil {
		return false, r.fail(err, r.plan.steps[r.next-1].text)
	}
	return false, nil
}

// fail words what has ended the stream, or the statement that was waited for. One
// that was waited for in vain may still run, and is ended over there.
func (r *rows) fail(err error, statement string) error {
	const operation = "read rows"
	r.session.failed(err)
	if statement != "" && r.ctx.Err() != nil {
		r.session.kill()
	}
	err = r.source.translate(r.ctx, reading, operation, err)
	if statement == "" || r.session.broken {
		return err
	}
	if r.reader != nil { // A refusal was its end.
		_ = r.reader.Close()
		r.reader = nil
	}
	return r.session.explained(r.ctx, operation, err, statement)
}

// leave gives the connection back.
func (r *rows) leave() {
	if r.session != nil {
		r.session.end(r.parent)
		r.session = nil
	}
}

// Columns implements [observer.Rows].
func (r *rows) Columns() []observer.Column { return r.plan.selection.Members() }

// KeyColumns implements [observer.Rows].
func (r *rows) KeyColumns() []observer.KeyColumn { return r.plan.selection.KeyColumns() }

// KeyOrder implements [observer.Rows].
func (r *rows) KeyOrder() string { return r.plan.ties }

// Row implements [observer.Rows].
func (r *rows) Row() *observer.Row { return r.row }

// Err implements [observer.Rows].
func (r *rows) Err() error { return r.err }

// Close implements [observer.Rows]. A stream that was not read to its end costs
// its connection: the server would send the rest of it first.
func (r *rows) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	r.silence.Stop()
	if r.reader != nil {
		r.session.broken = true
		_ = r.session.conn.socket.Close() // The driver has nothing left to read what is left of the rows from.
		_ = r.reader.Close()
		r.reader = nil
	}
	r.leave()
	return nil
}

// encoder turns the values of a row into a row.
type encoder struct {
	plan     plan
	builder  *source.Builder
	location *time.Location
	key      []byte
	cursor   []byte
}

func newEncoder(p plan, b *source.Builder, loc *time.Location) encoder {
	// No number and no timestamp is longer.
	return encoder{plan: p, builder: b, location: loc, key: make([]byte, 0, 64), cursor: make([]byte, 0, 32)}
}

func (e *encoder) encode(values []driver.Value) *observer.Row {
	b := e.builder
	left := source.Left(0)
	if e.plan.leaves {
		left = source.ReadLeft(text(e.key[:0], values[len(values)-1]))
	}
	b.Start(left)
	for n, i := range e.plan.selection.Key {
		if values[i] == nil {
			b.KeyPart(n, nil)
			continue
		}
		b.KeyPart(n, appendKey(e.key[:0], e.plan.kinds[i], values[i]))
	}
	cursor, at := e.timestamp(values)
	for i := range e.plan.selection.Data {
		if !b.Member(i) {
			break
		}
		appendCell(b, i, e.plan.kinds[i], values[i])
	}
	return b.Finish(cursor, at)
}

func (e *encoder) timestamp(values []driver.Value) ([]byte, time.Time) {
	i := e.plan.selection.Timestamp
	if i < 0 || values[i] == nil {
		return nil, time.Time{}
	}
	var ok bool
	if e.cursor, ok = e.plan.time.appendCursor(e.cursor[:0], bytesOf(values[i])); !ok {
		e.builder.Fail(i, "is a zero date, or one that no calendar has")
		return nil, time.Time{}
	}
	return e.cursor, e.plan.time.instant(e.cursor, e.location)
}

package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// Read implements [observer.Source]. Where the timestamp may be NULL, the rows
// without one come last, from a second SELECT in the same snapshot.
func (s *Source) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	var r *rows
	err := s.waits.Unlocked(ctx, locked, func() error {
		c, err := s.acquire(ctx)
		if err != nil {
			return err
		}
		if r, err = c.read(ctx, q, in); err != nil {
			c.end(ctx)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (c *session) read(ctx context.Context, q observer.Query, in observer.Range) (*rows, error) {
	p, err := c.planLocked(ctx, q, in)
	if err != nil {
		return nil, err
	}
	b, err := source.NewBuilder(q, p.selection)
	if err != nil {
		return nil, err
	}
	r := &rows{
		encoder: encoder{plan: p, builder: b, location: c.source.options.Location},
		source:  c.source, session: c, stream: q.Stream, parent: ctx,
	}
	r.ctx, r.silence = source.WatchSilence(ctx, c.source.options.QueryTimeout)
	return r, nil
}

// rows streams the rows of a read.
type rows struct {
	encoder
	source  *Source
	session *session // nil while a lock is waited for
	stream  string
	parent  context.Context
	ctx     context.Context
	silence *source.Silence
	reader  *pgconn.ResultReader
	next    int  // step to run next
	handed  bool // a row was handed over
	row     *observer.Row
	err     error
	closed  bool
}

// Next implements [observer.Rows].
func (r *rows) Next() bool {
	if r.err != nil || r.closed {
		return false
	}
	// The drivers notice only when they next wait, which may be much later.
	if r.ctx.Err() != nil {
		r.err = r.source.translate(r.ctx, reading, "read rows", r.ctx.Err())
		return false
	}
	if !r.handed {
		r.err = r.source.waits.Unlocked(r.ctx, locked, r.first)
		return r.handed
	}
	var more bool
	more, r.err = r.advance()
	return more
}

// first looks for the first row. Where somebody else has locked a table, or what
// belongs to it, the connection is given back, and the next try begins anew, in
// another snapshot. Columns were told of, so the plan stays.
func (r *rows) first() error {
	more, err := r.advance()
	r.handed = more
	if locked(err) {
		r.leave()
		r.next = 0
	}
	return err
}

// advance goes to the next row, of this step or of a later one.
func (r *rows) advance() (more bool, err error) {
	for {
		switch {
		case r.reader == nil && r.next == len(r.plan.steps):
			return false, nil
		case r.reader == nil:
			if err := r.open(); err != nil {
				return false, err
			}
		case r.fetch():
			return true, nil
		default:
			if err := r.finish(); err != nil {
				return false, err
			}
		}
	}
}

// open runs the next step, and waits for the first that is heard of it. The first
// step is the first query of the transaction, and makes the snapshot: by then
// the tables are locked for us.
func (r *rows) open() error {
	if r.next == 0 {
		if err := r.begin(); err != nil {
			return err
		}
	}
	r.silence.Wait()
	defer r.silence.Got()
	s := r.plan.steps[r.next]
	r.next++
	r.reader = r.session.conn.ExecParams(r.ctx, s.sql, s.params, nil, nil, r.plan.formats(r.session.conn))
	fields := r.reader.FieldDescriptions()
	switch {
	case fields == nil:
		return r.finish()
	case !r.plan.fits(fields):
		return errChanged
	}
	r.numbered = numbered(fields)
	return nil
}

// begin opens the transaction. What the server would let us read but not lock is
// read without locks from then on.
func (r *rows) begin() (err error) {
	for {
		if r.session == nil {
			if r.session, err = r.source.acquire(r.ctx); err != nil {
				return err
			}
		}
		err = r.session.begin(r.ctx, r.stream, r.plan)
		switch {
		case len(r.plan.locks.tables) > 0 && hasState(err, undefinedTable):
			return goneFault(err)
		case len(r.plan.locks.tables) == 0 || !unlockable(err):
			return err
		}
		r.leave()
		r.plan.locks = locks{}
	}
}

// fetch waits for the next row of a step.
func (r *rows) fetch() bool {
	r.silence.Wait()
	defer r.silence.Got()
	if !r.reader.NextRow() {
		return false
	}
	r.row = r.encode(r.reader.Values())
	return true
}

// finish ends a step and says how it went.
func (r *rows) finish() error {
	_, err := r.reader.Close()
	r.reader = nil
	if err == nil {
		return nil
	}
	return r.session.overRows(r.ctx, "read rows", err, r.plan.steps[r.next-1])
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
		if _, err := r.reader.Close(); err != nil && !errors.Is(err, context.Canceled) && r.err == nil {
			r.err = r.source.translate(r.ctx, reading, "close rows", err)
		}
		r.reader = nil
	}
	r.leave()
	return nil
}

// encoder turns the values of a row, in PostgreSQL's text form, into a row.
type encoder struct {
	plan     plan
	builder  *source.Builder
	location *time.Location
	// numbered tells which columns come as numbers; text is room for one of them.
	numbered []bool
	text     []byte
	cursor   []byte
}

func (e *encoder) encode(values [][]byte) *observer.Row {
	b := e.builder
	left := source.Left(0)
	if e.plan.leaves {
		left = source.ReadLeft(values[len(values)-1])
	}
	b.Start(left)
	for n, i := range e.plan.selection.Key {
		b.KeyPart(n, e.textOf(values, i))
	}
	cursor, at := e.timestamp(values)
	for i := range e.plan.selection.Data {
		if !b.Member(i) {
			break
		}
		appendCell(b, i, e.plan.kinds[i], e.textOf(values, i))
	}
	return b.Finish(cursor, at)
}

// textOf is a value in PostgreSQL's text form, until the next call.
func (e *encoder) textOf(values [][]byte, i int) []byte {
	if !e.numbered[i] || values[i] == nil {
		return values[i]
	}
	e.text = appendMoment(e.text[:0], moment(values[i]), e.plan.kinds[i])
	return e.text
}

func (e *encoder) timestamp(values [][]byte) ([]byte, time.Time) {
	i := e.plan.selection.Timestamp
	if i < 0 || values[i] == nil {
		return nil, time.Time{}
	}
	if !e.writeCursor(values[i], e.numbered[i]) {
		e.builder.Fail(i, "is infinite or outside of the years 1 to 9999")
		return nil, time.Time{}
	}
	return e.cursor, e.plan.time.instant(e.cursor, e.location)
}

// writeCursor reports false for what has no fixed width.
func (e *encoder) writeCursor(value []byte, numbered bool) (ok bool) {
	e.cursor = e.cursor[:0]
	if !numbered {
		e.cursor, ok = e.plan.time.appendCursor(e.cursor, value)
		return ok
	}
	at := moment(value)
	if ok = isOrdinary(at); ok {
		e.cursor = appendReading(e.cursor, at)
	}
	return ok
}

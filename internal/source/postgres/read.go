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
func (s *Source) Read(ctx context.Context, q observer.Query, from string) (observer.Rows, error) {
	c, err := s.acquire(ctx)
	if err != nil {
		return nil, err
	}
	r, err := c.read(ctx, q, from)
	if err != nil {
		c.end(ctx)
		return nil, err
	}
	return r, nil
}

func (c *session) read(ctx context.Context, q observer.Query, from string) (*rows, error) {
	if err := c.begin(ctx, q.Stream); err != nil {
		return nil, err
	}
	p, err := c.plan(ctx, q, from)
	if err != nil {
		return nil, err
	}
	b, err := source.NewBuilder(q, p.selection)
	if err != nil {
		return nil, err
	}
	r := &rows{encoder: encoder{plan: p, builder: b, location: c.source.options.Location}, session: c, parent: ctx}
	r.ctx, r.silence = source.WatchSilence(ctx, c.source.options.QueryTimeout)
	return r, nil
}

// rows streams the rows of a read.
type rows struct {
	encoder
	session *session
	parent  context.Context
	ctx     context.Context
	silence *source.Silence
	reader  *pgconn.ResultReader
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
	// The drivers notice only when they next wait, which may be much later.
	if r.ctx.Err() != nil {
		r.err = r.session.source.translate(r.ctx, "read rows", r.ctx.Err())
		return false
	}
	r.silence.Wait()
	defer r.silence.Got()
	for {
		if r.reader == nil {
			if r.next == len(r.plan.steps) {
				return false
			}
			r.reader = r.session.conn.ExecParams(r.ctx, r.plan.steps[r.next].sql, r.plan.steps[r.next].params, nil, nil, nil)
			r.next++
		}
		if r.reader.NextRow() {
			r.row = r.encode(r.reader.Values())
			return true
		}
		_, err := r.reader.Close()
		r.reader = nil
		if err != nil {
			r.err = r.session.source.translate(r.ctx, "read rows", err)
			return false
		}
	}
}

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
			r.err = r.session.source.translate(r.ctx, "close rows", err)
		}
		r.reader = nil
	}
	r.session.end(r.parent)
	return nil
}

// encoder turns the values of a row, in PostgreSQL's text form, into a row.
type encoder struct {
	plan     plan
	builder  *source.Builder
	location *time.Location
	cursor   []byte
}

func (e *encoder) encode(values [][]byte) *observer.Row {
	b := e.builder
	b.Start()
	for n, i := range e.plan.selection.Key {
		b.KeyPart(n, values[i])
	}
	cursor, at := e.timestamp(values)
	for i := range e.plan.selection.Data {
		b.Member(i)
		appendCell(b, i, e.plan.kinds[i], values[i])
	}
	return b.Finish(cursor, at)
}

func (e *encoder) timestamp(values [][]byte) ([]byte, time.Time) {
	i := e.plan.selection.Timestamp
	if i < 0 || values[i] == nil {
		return nil, time.Time{}
	}
	var ok bool
	if e.cursor, ok = e.plan.time.appendCursor(e.cursor[:0], values[i]); !ok {
		e.builder.Fail(i, "is infinite or outside of the years 1 to 9999")
		return nil, time.Time{}
	}
	return e.cursor, e.plan.time.instant(e.cursor, e.location)
}

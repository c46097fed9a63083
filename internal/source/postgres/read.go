package postgres

import (
	"context"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// Read implements [observer.Source]. Where the timestamp may be NULL, the rows
// without one come last, from a second SELECT in the same snapshot.
func (s *Source) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	var stream *source.Stream
	err := s.waits.Retry(ctx, func() error {
		c, err := s.acquire(ctx)
		if err != nil {
			return err
		}
		if stream, err = c.read(ctx, q, in); err != nil {
			c.end(ctx)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return stream, nil
}

func (c *session) read(ctx context.Context, q observer.Query, in observer.Range) (*source.Stream, error) {
	p, err := c.planLocked(ctx, q, in)
	if err != nil {
		return nil, err
	}
	b, err := source.NewBuilder(q, p.selection)
	if err != nil {
		return nil, err
	}
	o := c.source.options
	r := &rows{cells: cells{plan: p, location: o.Location, ascii: c.source.ascii && c.unconverted()}, source: c.source, session: c, stream: q.Stream, parent: ctx}
	return source.NewStream(ctx, o.QueryTimeout, source.StreamOptions{
		Selection: p.selection, Ties: p.ties, Statements: len(p.steps), Result: r, Cells: &r.cells, Builder: b,
		Waits: c.source.waits, Restarter: r,
	}), nil
}

// rows are the results of a read: a [source.Result], and a [source.Restarter].
type rows struct {
	cells
	source  *Source
	session *session // nil while a lock is waited for
	stream  string
	parent  context.Context
	reader  *pgconn.ResultReader
	step    step
	// prepared says that the session has prepared the statement.
	prepared bool
	// cancel ends the statement of reader, whose context is ctx.
	ctx    context.Context
	cancel context.CancelFunc
}

// Open waits for the first answer to a statement. The
// first statement is the first query of the transaction, and makes the snapshot: by
// then the tables are locked for us, by LOCK TABLE or the planning of a single statement.
func (r *rows) Open(ctx context.Context, n int) error {
	r.step = r.plan.steps[n]
	r.ctx, r.cancel = context.WithCancel(ctx)
	formats := r.plan.formats(r.session.conn)
	began := time.Now()
	name, err := r.session.prepareRead(r.ctx, r.plan, r.step)
	r.prepared = name != ""
	switch {
	case err != nil:
		return r.refused(err)
	case r.prepared:
		r.reader = r.session.conn.ExecPrepared(r.ctx, name, r.step.params, nil, formats)
	default:
		r.reader = r.session.conn.ExecParams(r.ctx, r.step.sql, r.step.params, nil, nil, formats)
	}
	fields := r.reader.FieldDescriptions()
	if r.plan.relation.transparent && time.Since(began) > freshFor {
		r.session.kept.settled = false // It may have waited for a view that was replaced, and that sets anything.
	}
	switch {
	case fields == nil:
		return r.finish()
	case !r.plan.fits(fields):
		r.forget(errChanged)
		return errChanged
	}
	r.numbered = r.numbered[:0]
	for _, f := range fields {
		r.numbered = append(r.numbered, f.Format == pgx.BinaryFormatCode)
	}
	return nil
}

// Begin opens the transaction, where the read needs one. After a lock, the columns
// of the plan are known already, so the plan stays. What the server would let us read but not lock is
// read without locks from then on.
func (r *rows) Begin(ctx context.Context) (err error) {
	for {
		if r.session == nil {
			if r.session, err = r.source.acquire(ctx); err != nil {
				return err
			}
		}
		err = r.session.begin(ctx, r.stream, r.plan)
		r.forget(err)
		switch {
		case len(r.plan.locks.tables) > 0 && hasState(err, undefinedTable):
			return goneFault(err, undefinedTable)
		case len(r.plan.locks.tables) == 0 || !unlockable(err):
			return err
		}
		r.Leave()
		r.plan.locks = locks{}
	}
}

func (r *rows) Next(context.Context) (bool, error) {
	if r.reader == nil { // It had no columns.
		return false, nil
	}
	if !r.reader.NextRow() {
		return false, r.finish()
	}
	r.values = r.reader.Values()
	return true, nil
}

// finish ends a statement and says how it went.
func (r *rows) finish() error {
	_, err := r.reader.Close()
	r.reader = nil
	if err != nil {
		return r.refused(err)
	}
	r.cancel()
	return nil
}

// forget forgets a table whose read has failed, unless it was locked: its stamp may not say
// all.
func (r *rows) forget(err error) {
	if err != nil && !locked(err) {
		r.source.relations.forget(r.plan.relation)
	}
}

// refused says how a statement failed.
func (r *rows) refused(err error) error {
	defer r.cancel()
	if refused, ok := errors.AsType[*pgconn.PgError](err); r.prepared && ok {
		switch {
		case refused.Code == unknownName:
			r.source.unprepared.Store(true)
			return errForgotten
		case refused.Code == changedResult && refused.Routine == "RevalidateCachedQuery":
			r.forget(errChanged)
			return errChanged
		}
	}
	err = r.session.overRows(r.ctx, "read rows", err, r.step.sql)
	r.forget(err)
	for _, code := range []string{undefinedTable, undefinedColumn, undefinedSchema} {
		if (r.plan.relation.kind == 'r' || r.plan.relation.transparent) && hasState(err, code) {
			return goneFault(err, code)
		}
	}
	return err
}

func (r *rows) Failed(ctx context.Context, err error) error {
	return r.source.translate(ctx, source.Reading, "read rows", err)
}

// Close ends the read. A statement that was not read to its end costs its connection: the
// server would send the rest of it first.
func (r *rows) Close(context.Context) (err error) {
	if r.reader != nil {
		r.cancel()
		if _, err = r.reader.Close(); errors.Is(err, context.Canceled) {
			err = nil
		}
		err = r.source.translate(r.ctx, source.Reading, "close rows", err)
	}
	r.Leave()
	return err
}

func (r *rows) Leave() {
	if r.session != nil {
		r.session.end(r.parent)
		r.session = nil
	}
}

// cells are the values of a row, in PostgreSQL's text form: [source.Cells].
type cells struct {
	plan     plan
	location *time.Location
	ascii    bool // see [Source]
	values   [][]byte
	// numbered tells which columns come as numbers; text is room for one of them.
	numbered []bool
	text     []byte
	cursor   []byte
}

func (c *cells) Left() source.Left {
	if !c.plan.leaves {
		return 0
	}
	return source.ReadLeft(c.values[len(c.values)-1])
}

func (c *cells) KeyText(i int) []byte { return c.textOf(i) }

func (c *cells) Append(b *source.Builder, i int) {
	text := c.textOf(i)
	if c.ascii && slices.ContainsFunc(text, func(b byte) bool { return b >= utf8.RuneSelf }) {
		b.Null()
		b.Fail(i, "is not ASCII in a database whose encoding, SQL_ASCII, does not define other bytes; add client_encoding=UTF8 to the URL if they are UTF-8")
		return
	}
	appendCell(b, i, c.plan.kinds[i], text)
}

// textOf is a value in PostgreSQL's text form, until the next call.
func (c *cells) textOf(i int) []byte {
	if !c.numbered[i] || c.values[i] == nil {
		return c.values[i]
	}
	c.text = appendMoment(c.text[:0], moment(c.values[i]), c.plan.kinds[i])
	return c.text
}

func (c *cells) Cursor(i int) ([]byte, time.Time, string) {
	switch {
	case c.values[i] == nil:
		return nil, time.Time{}, ""
	case !c.writeCursor(c.values[i], c.numbered[i]):
		return nil, time.Time{}, "is infinite or outside of the years 1 to 9999"
	}
	return c.cursor, c.plan.time.Instant(c.cursor, c.location), ""
}

// writeCursor reports false for what has no fixed width.
func (c *cells) writeCursor(value []byte, numbered bool) (ok bool) {
	c.cursor = c.cursor[:0]
	if !numbered {
		c.cursor, ok = c.plan.time.appendCursor(c.cursor, value)
		return ok
	}
	at := moment(value)
	if ok = isOrdinary(at); ok {
		c.cursor = appendReading(c.cursor, at)
	}
	return ok
}

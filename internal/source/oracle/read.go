package oracle

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// plan prepares a read for what the query reads at this moment.
func (c *session) plan(ctx context.Context, q observer.Query, in observer.Range) (plan, error) {
	r, err := c.relation(ctx, q)
	if err != nil {
		return plan{}, err
	}
	p, err := newPlan(r, q)
	switch {
	case err != nil:
		err = source.NamePrimaryKey(err, q, func() ([]string, error) { return c.primaryKey(ctx, r) })
		return p, source.Unfit(err)
	case in.Part == observer.PartKey:
		if ok, err := c.bindable(ctx, q, p, fn.Indexes(len(p.selection.Key))); !ok {
			return p, cmp.Or(err, source.Unfit(observer.ErrNoKeyLookup))
		}
	case in.ByKey:
		indexes, _, err := c.indexes(ctx, r)
		if err != nil {
			return p, err
		}
		if p.order, err = c.keyOrder(ctx, q, p, indexes); err != nil {
			return p, err
		}
	case p.selection.Timestamp >= 0:
		if p.ties, err = c.tieOrder(ctx, q, p); err != nil {
			return p, err
		}
	}
	return p, source.Unfit(p.write(q, in))
}

// Read implements [observer.Source]. Where the timestamp may be NULL, the rows
// without one come last, from a second SELECT in the same snapshot.
func (s *Source) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	large := false
	if known, ok := s.relations.get(q); ok {
		p, err := newPlan(known, q)
		large = err == nil && p.large()
	}
	r, err := s.read(ctx, q, in, large)
	if errors.Is(err, errLarge) {
		r, err = s.read(ctx, q, in, true)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// errLarge says that rows have large objects, unlike what was expected.
var errLarge = errors.New("the rows have large objects")

func (s *Source) read(ctx context.Context, q observer.Query, in observer.Range, large bool) (*source.Stream, error) {
	pool := s.db
	if large {
		pool = s.large
	}
	var stream *source.Stream
	err := s.keep(ctx, pool, func(c *session) (err error) {
		stream, err = c.read(ctx, q, in, large)
		// The table may have changed after it was described.
		if refused(err, codeIdentifier, codeTypes, codeTable) {
			s.relations.forget(q)
			stream, err = c.read(ctx, q, in, large)
		}
		if err != nil {
			c.release()
		}
		return err
	})
	return stream, err
}

// read runs the first statement of a read. The session is the stream's if that goes
// well.
func (c *session) read(ctx context.Context, q observer.Query, in observer.Range, large bool) (*source.Stream, error) {
	p, err := c.plan(ctx, q, in)
	if err != nil {
		return nil, err
	}
	if err := source.CheckOrder(in, p.selection.OrderID(p.order.Parts, nil), p.ties); err != nil {
		return nil, err
	}
	if p.large() && !large {
		return nil, errLarge
	}
	b, err := source.NewBuilder(q, p.selection)
	if err != nil {
		return nil, source.Unfit(err)
	}
	r := &rows{cells: cells{plan: p, location: c.source.options.Location}, source: c.source, session: c}
	r.values = make([]sql.RawBytes, p.width)
	r.targets = make([]any, p.width)
	for i := range r.values {
		r.targets[i] = &r.values[i]
	}
	stream := source.NewStream(ctx, c.source.options.QueryTimeout, source.StreamOptions{
		Selection: p.selection, Ties: p.ties, Statements: len(p.steps), Result: r, Cells: &r.cells, Builder: b,
	})
	if err := stream.Start(); err != nil {
		r.borrowed = true
		_ = stream.Close() // of no use any more, whatever becomes of it
		return nil, err
	}
	return stream, nil
}

// rows are the results of a read.
type rows struct {
	cells
	source   *Source
	session  *session
	borrowed bool    // the session is not given back
	tx       *sql.Tx // nil for a read of one statement
	result   *sql.Rows
	targets  []any
}

// Open implements [source.Result]. Two statements see one snapshot only within a
// read-only transaction, which takes no grant; one sees its own anyway.
func (r *rows) Open(ctx context.Context, n int) (err error) {
	if n == 0 && len(r.plan.steps) > 1 {
		if r.tx, err = r.session.conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); err != nil {
			return r.source.translate(ctx, source.Parsing, "begin the read", err)
		}
	}
	var on source.Querier = r.session.conn
	if r.tx != nil {
		on = r.tx
	}
	s := r.plan.steps[n]
	r.result, err = on.QueryContext(ctx, s.sql, s.binds...) //nolint:rowserrcheck // Next asks for it.
	return r.Failed(ctx, err)
}

// Next implements [source.Result].
func (r *rows) Next(ctx context.Context) (bool, error) {
	if r.result.Next() {
		return true, r.Failed(ctx, r.result.Scan(r.targets...))
	}
	err := r.result.Err()
	_ = r.result.Close() // It was read to its end.
	return false, r.Failed(ctx, err)
}

// Failed implements [source.Result].
func (r *rows) Failed(ctx context.Context, err error) error {
	return r.source.translate(ctx, source.Reading, "read rows", err)
}

// Close implements [source.Result]. Where the transaction has been ended already,
// together with its context, the session is closed.
func (r *rows) Close(context.Context) error {
	if r.result != nil {
		_ = r.result.Close() // of no use any more, whatever becomes of it
	}
	if r.tx != nil {
		if r.tx.Rollback() != nil {
			r.session.discard()
		}
		r.session.unclean = false
	}
	if !r.borrowed {
		r.session.release()
	}
	return nil
}

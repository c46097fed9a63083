package oracle

import (
	"context"
	"database/sql"
	"errors"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// plan prepares a read for what the query reads at this moment.
func (c *session) plan(ctx context.Context, q observer.Query, in observer.Range) (plan, relation, error) {
	r, err := c.relation(ctx, q)
	switch {
	case err != nil && ctx.Err() != nil: // the caller's reason, no fault of the query
		return plan{}, r, err
	case err != nil:
		return plan{}, r, unfit(err)
	}
	p, err := newPlan(r, q, in)
	if err != nil {
		return p, r, unfit(err)
	}
	if !in.ByKey {
		if p.selection.Timestamp >= 0 {
			p.ties, err = c.tieOrder(ctx, q, r, p)
		}
		return p, r, err
	}
	indexes, _, err := c.indexes(ctx, r)
	if err != nil {
		return p, r, err
	}
	if p.order, err = c.keyOrder(ctx, q, r, p, indexes); err != nil || p.order.parts == nil {
		return p, r, err
	}
	return p, r, unfit(p.writeByKey(r.from, q, in))
}

// Read implements [observer.Source]. Where the timestamp may be NULL, the rows
// without one come last, from a second SELECT in the same snapshot.
func (s *Source) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	large := false
	if known, ok := s.relations.get(q); ok {
		p, err := newPlan(known, q, in)
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

func (s *Source) read(ctx context.Context, q observer.Query, in observer.Range, large bool) (*rows, error) {
	pool := s.db
	if large {
		pool = s.large
	}
	var r *rows
	err := s.keep(ctx, pool, func(ctx context.Context, c *session) (err error) {
		r, err = c.read(ctx, q, in, large)
		// The table may have changed after it was described.
		if refused(err, codeIdentifier, codeTypes, codeTable) {
			s.relations.forget(q)
			r, err = c.read(ctx, q, in, large)
		}
		if err != nil {
			c.release()
		}
		return err
	})
	return r, err
}

// read runs the first statement of a read.
func (c *session) read(ctx context.Context, q observer.Query, in observer.Range, large bool) (*rows, error) {
	p, _, err := c.plan(ctx, q, in)
	if err != nil {
		return nil, err
	}
	order := p.ties
	if in.ByKey {
		order = p.selection.OrderID(p.order.parts, nil)
	}
	if err := source.CheckOrder(in, order); err != nil {
		return nil, err
	}
	if p.large() && !large {
		return nil, errLarge
	}
	b, err := source.NewBuilder(q, p.selection)
	if err != nil {
		return nil, unfit(err)
	}
	r := &rows{encoder: encoder{plan: p, builder: b, location: c.source.options.Location}, session: c, on: c.conn}
	r.values = make([]sql.RawBytes, p.width)
	r.targets = make([]any, p.width)
	for i := range r.values {
		r.targets[i] = &r.values[i]
	}
	r.ctx, r.silence = source.WatchSilence(ctx, c.source.options.QueryTimeout)
	r.silence.Wait()
	err = r.begin()
	r.silence.Got()
	if err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

// rows streams the rows of a read.
type rows struct {
	encoder
	session *session
	on      querier
	tx      *sql.Tx // nil for a read of one statement
	ctx     context.Context
	silence *source.Silence
	result  *sql.Rows
	targets []any
	next    int // step to run next
	row     *observer.Row
	err     error
	closed  bool
}

// begin runs the first statement. Two of them see one snapshot only within a
// read-only transaction, which takes no grant; one sees its own anyway.
func (r *rows) begin() (err error) {
	if len(r.plan.steps) > 1 {
		r.tx, err = r.session.conn.BeginTx(r.ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return r.session.source.translate(r.ctx, parsing, "begin the read", err)
		}
		r.on = r.tx
	}
	return r.query()
}

func (r *rows) query() (err error) {
	s := r.plan.steps[r.next]
	r.next++
	r.result, err = r.on.QueryContext(r.ctx, s.sql, s.binds...) //nolint:rowserrcheck // Next asks for it.
	return r.session.source.translate(r.ctx, reading, "read rows", err)
}

// Next implements [observer.Rows].
func (r *rows) Next() bool {
	if r.err != nil || r.closed {
		return false
	}
	// The drivers notice only when they next wait, which may be much later.
	if r.ctx.Err() != nil {
		r.fail(r.ctx.Err())
		return false
	}
	r.silence.Wait()
	defer r.silence.Got()
	for {
		if r.result.Next() {
			if r.fail(r.result.Scan(r.targets...)); r.err != nil {
				return false
			}
			r.row = r.encode(r.values)
			return true
		}
		r.fail(r.result.Err())
		if r.err != nil || r.next == len(r.plan.steps) {
			return false
		}
		_ = r.result.Close() // was read to its end
		if r.err = r.query(); r.err != nil {
			return false
		}
	}
}

func (r *rows) fail(err error) {
	if err != nil {
		r.err = r.session.source.translate(r.ctx, reading, "read rows", err)
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

// Close implements [observer.Rows].
func (r *rows) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	r.stop()
	r.session.release()
	return nil
}

// stop ends the result and the transaction while the silence is still watched:
// both may wait for the database. Where the transaction has been ended already,
// together with its context, the session is closed.
func (r *rows) stop() {
	r.silence.Wait()
	if r.result != nil {
		_ = r.result.Close() // of no use any more, whatever becomes of it
	}
	if r.tx != nil {
		if r.tx.Rollback() != nil {
			r.session.discard()
		}
		r.session.unclean = false
	}
	r.silence.Got()
	r.silence.Stop()
}

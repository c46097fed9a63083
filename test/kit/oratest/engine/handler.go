package engine

import (
	"context"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// Execute implements [wire.Handler].
func (e *Engine) Execute(ctx context.Context, st wire.Statement) (wire.Result, error) {
	return e.session(st.Session).execute(ctx, st.SQL, st.Binds)
}

// boundValue is one value that came with a statement.
type boundValue struct {
	value value
	typ   dataType
}

// bind makes a bind of text, the only type that the product binds, or of NULL.
func bind(v wire.Value) boundValue {
	switch v := v.(type) {
	case nil:
		return boundValue{typ: varchar(1)}
	case string:
		return boundValue{text(v), varchar(len(v))}
	}
	panic(refuse(932, "VARCHAR2", "OTHER"))
}

// execute runs one statement of a session.
func (s *session) execute(ctx context.Context, sql string, binds []wire.Value) (result wire.Result, err error) {
	err = protect(func() {
		st, names := parse(sql, s.engine.options.Version)
		// SQL takes a value for each occurrence of a placeholder.
		switch {
		case len(binds) < names:
			panic(refuse(1008))
		case len(binds) > names:
			panic(refuse(1036))
		}
		c := &compiler{session: s, user: s.user}
		for _, b := range binds {
			c.binds = append(c.binds, bind(b))
		}
		r := &run{ctx: ctx, session: s, now: s.engine.now()}
		if q, ok := st.(selectStatement); ok {
			result = s.query(r, c, q.query)
		} else {
			result.Affected = s.change(r, c, st)
		}
	})
	return result, err
}

// query starts a SELECT; its rows come as they are asked for.
func (s *session) query(r *run, c *compiler, q *query) wire.Result {
	out := c.query(q)
	r.view = s.view()
	in := out.open(r)
	columns := make([]wire.Column, len(out.columns))
	for i, column := range out.columns {
		columns[i] = column.typ.column(column.name, column.nullable)
	}
	// The call ends here; what cancels it has no say in the fetches that follow.
	r.ctx = context.WithoutCancel(r.ctx)
	return wire.Result{Columns: columns, Rows: &wireRows{in: in}}
}

// wireRows are rows on their way to a client.
type wireRows struct {
	in  rows
	err error
}

// Next implements [wire.Rows].
func (w *wireRows) Next() ([]wire.Value, bool) {
	var out []wire.Value
	w.err = protect(func() {
		row := w.in.next()
		if row == nil {
			return
		}
		out = make([]wire.Value, len(row))
		for i, v := range row {
			out[i] = toWire(v)
		}
	})
	return out, out != nil && w.err == nil
}

// Err says how the rows failed, nil if they came to their end.
func (w *wireRows) Err() error { return w.err }

// Close implements [wire.Rows].
func (w *wireRows) Close() { w.in.close() }

func toWire(v value) wire.Value {
	switch v.kind {
	case kindNull:
		return nil
	case kindNumber:
		return v.decimal()
	case kindRaw:
		return []byte(v.s)
	case kindDouble:
		return v.float()
	case kindDate, kindTimestamp:
		return v.time()
	case kindText:
		return v.s
	}
	panic(unimplemented("a result of " + string(typeOf(v.kind).name)))
}

package engine

import (
	"context"
	"errors"
	"time"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// Execute implements [wire.Handler].
func (e *Engine) Execute(ctx context.Context, st wire.Statement) (wire.Result, error) {
	s := e.session(st.Session)
	return s.execute(ctx, st.SQL, binds(st))
}

// bound is one value that came with a statement.
type boundValue struct {
	value value
	typ   dataType
}

// binds reads the values of a statement by the types that they came with.
func binds(st wire.Statement) []boundValue {
	all := make([]boundValue, len(st.Binds))
	for i, b := range st.Binds {
		all[i] = fromWire(b)
		if i >= len(st.BindTypes) {
			continue
		}
		if s, ok := b.(string); ok && st.BindTypes[i] == wire.TypeNumber {
			if n, ok := parseNumber(s); ok {
				all[i] = boundValue{n, plain(typeNumber)}
			}
		}
		if t, ok := b.(time.Time); ok {
			all[i] = timeFromWire(t, st.BindTypes[i])
		}
	}
	return all
}

func fromWire(v wire.Value) boundValue {
	switch v := v.(type) {
	case string:
		return boundValue{text(v), varchar(len(v))}
	case []byte:
		return boundValue{raw(string(v)), dataType{name: typeRaw, size: len(v)}}
	case float64:
		return boundValue{double(v), plain(typeDouble)}
	case time.Time:
		return timeFromWire(v, wire.TypeTimestampTZ)
	}
	return boundValue{typ: varchar(1)}
}

func timeFromWire(t time.Time, as wire.Type) boundValue {
	switch as {
	case wire.TypeDate:
		return boundValue{wall(kindDate, t), plain(typeDate)}
	case wire.TypeTimestamp:
		return boundValue{wall(kindTimestamp, t), plain(typeTimestamp)}
	case wire.TypeTimestampLTZ:
		return boundValue{instant(kindTimestampLTZ, t, ""), plain(typeTimestampLTZ)}
	}
	return boundValue{instant(kindTimestampTZ, t, zoneName(t.Location(), t)), plain(typeTimestampTZ)}
}

// execute runs one statement of a session.
func (s *session) execute(ctx context.Context, sql string, binds []boundValue) (wire.Result, error) {
	st, names, err := parse(sql, s.engine.options.Version)
	if err != nil {
		return wire.Result{}, err
	}
	if err := countBinds(st, names, binds); err != nil {
		return wire.Result{}, err
	}
	c := &compiler{session: s, user: s.user}
	for _, b := range binds {
		c.binds, c.types = append(c.binds, b.value), append(c.types, b.typ)
	}
	r := &run{ctx: ctx, session: s, now: s.engine.now()}
	if q, ok := st.(selectStatement); ok {
		return s.query(r, c, q.query)
	}
	affected, err := s.change(r, c, st, names)
	return wire.Result{Affected: affected}, err
}

// countBinds compares the values with the placeholders: SQL takes one for each
// occurrence, PL/SQL one for each name.
func countBinds(st statement, names []string, binds []boundValue) error {
	want := len(names)
	if _, block := st.(plsqlBlock); block {
		want = len(distinctNames(names))
	}
	switch {
	case len(binds) < want:
		return refuse(1008)
	case len(binds) > want:
		return refuse(1036)
	}
	return nil
}

func distinctNames(names []string) []string {
	seen := map[string]bool{}
	var all []string
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			all = append(all, n)
		}
	}
	return all
}

// query starts a SELECT; its rows come as they are asked for.
func (s *session) query(r *run, c *compiler, q *query) (wire.Result, error) {
	var out *compiledQuery
	var in rows
	err := protect(func() {
		out = c.query(nil, q)
		r.view = s.view()
		in = out.open(r, nil)
	})
	if err != nil {
		return wire.Result{}, err
	}
	columns := make([]wire.Column, len(out.columns))
	for i, column := range out.columns {
		columns[i] = column.typ.column(column.name, column.nullable)
	}
	// The call ends here; what cancels it has no say in the fetches that follow.
	r.ctx = context.WithoutCancel(r.ctx)
	return wire.Result{Columns: columns, Rows: &wireRows{in: in, session: s}}, nil
}

func asRefusal(err error) error {
	var refusal *wire.Error
	if err == nil || errors.As(err, &refusal) {
		return err
	}
	return &wire.Error{Code: 600, Text: "internal error code: " + err.Error()}
}

// wireRows are rows on their way to a client.
type wireRows struct {
	in      rows
	session *session
	err     error
	ended   bool
}

// Next implements [wire.Rows].
func (w *wireRows) Next() ([]wire.Value, bool) {
	if w.ended {
		return nil, false
	}
	var row []value
	if w.err = protect(func() { row = w.in.next() }); row == nil {
		w.ended = true
		return nil, false
	}
	out := make([]wire.Value, len(row))
	for i, v := range row {
		out[i] = w.session.toWire(v)
	}
	return out, true
}

// Err says how the rows failed, nil if they came to their end.
func (w *wireRows) Err() error { return w.err }

// Close implements [wire.Rows].
func (w *wireRows) Close() {
	w.ended = true
	w.in.close()
}

func (s *session) toWire(v value) wire.Value {
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
	case kindTimestampTZ:
		return v.zoned()
	case kindTimestampLTZ:
		return v.time().In(s.zone)
	case kindInterval:
		return intervalText(v, 9)
	}
	return v.s
}

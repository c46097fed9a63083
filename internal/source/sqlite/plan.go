package sqlite

import (
	"context"
	"fmt"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// plan is a read that is ready to run: its names resolved, its statements
// written. They run one after the other in one snapshot.
type plan struct {
	selection source.Selection
	from      string
	table     string // empty for a query
	steps     []step
	most      int    // see [source.MaxRowBytes]
	order     string // of a read by key
	ties      string // the order of rows that share a timestamp; empty where no read goes on within them
	textOnly  bool   // the timestamp makes a text of each number
	form      form   // of the timestamps; empty for not known
}

// step is a statement. bounded is the same one, with lengths looked at, for where a
// row has turned out to be large.
type step struct {
	sql, bounded string
	args         []any
}

// text joins the statements for people.
func (p plan) text() string { return source.Texts(p.steps, func(s step) string { return s.sql }) }

func (s session) plan(ctx context.Context, q observer.Query, in observer.Range) (plan, error) {
	r, err := s.describe(ctx, q)
	if err != nil {
		return plan{}, err
	}
	if in.ByKey {
		p, err := s.planByKey(ctx, r, q, in)
		if err == nil {
			err = source.CheckOrder(in, p.order)
		}
		return p, err
	}
	p, err := planFor(r, q, in)
	if err == nil {
		err = source.CheckOrder(in, p.ties)
	}
	return p, source.Unfit(s.namePrimaryKey(ctx, err, r, q))
}

func planFor(r relation, q observer.Query, in observer.Range) (plan, error) {
	selection, err := source.Select(q, r.columns, r.name)
	if err != nil {
		return plan{}, err
	}
	p := plan{selection: selection, from: r.from, table: r.name, most: source.MaxRowBytes(q)}
	if in.Part == observer.PartKey {
		p.form = formOf(q.Form)
		if !r.bindable(selection) {
			return p, observer.ErrNoKeyLookup
		}
		err = p.add(in, func(w source.Statements) (string, []int) { return w.OfKey(q, selection) })
		return p, err
	}
	if selection.Timestamp < 0 {
		err = p.add(in, func(w source.Statements) (string, []int) { return w.All(selection), nil })
		return p, err
	}
	p.textOnly = r.name != "" && !r.view && affinityOf(selection.Columns[selection.Timestamp].Type) == affinityText
	p.form = formOf(q.Form)
	if ties := selection.TieOrder(); r.bindable(selection) {
		p.ties = selection.OrderID(ties, nil)
	}
	switch {
	case in.Part == observer.PartUndated:
		err = p.add(in, func(w source.Statements) (string, []int) { return w.Nulls(selection, in) })
		return p, err
	case in.Part == observer.PartStray && p.form != "":
		err = p.add(in, func(w source.Statements) (string, []int) { return strays(w, selection, p.form, in) })
		return p, err
	case in.Part == observer.PartStray:
		return p, nil // All forms have their place.
	}
	nulls := source.NullsOf(q, selection, in)
	if p.form != "" && nulls == source.NullsInRange && selection.Columns[selection.Timestamp].Nullable {
		nulls = source.NullsApart // They are not within.
	}
	if nulls == source.NullsApart { // SQLite sorts NULL first.
		err = p.add(in, func(w source.Statements) (string, []int) { return w.Nulls(selection, observer.Range{}) })
		if err != nil {
			return p, err
		}
	}
	err = p.add(in, func(w source.Statements) (string, []int) { return w.Range(selection, in, nulls != source.NullsInRange) })
	return p, err
}

// strays selects the rows that are not of a form. They are few, so it is the index on
// the timestamp that has to serve, and not one on the key.
func strays(w source.Statements, s source.Selection, f form, in observer.Range) (string, []int) {
	w.Opaque = func(condition string) string { return "+(" + condition + ")" }
	order := make([]string, 0, len(s.Key))
	for _, part := range s.TieOrder() {
		order = append(order, "+q."+source.Quote(s.Columns[s.Key[part]].Name))
	}
	ts := "q." + source.Quote(s.TimestampName())
	return w.Apart(s, in, "("+f.without(ts)+")", append(order, ts)...)
}

// add adds a statement, with the bounds of the range that it has: as it is and, for
// large rows, bounded.
func (p *plan) add(in observer.Range, write func(w source.Statements) (text string, parts []int)) (err error) {
	w := p.statements()
	text, parts := write(w)
	w.Size, w.MaxLength = size, p.most
	bounded, _ := write(w)
	s := step{sql: text, bounded: bounded}
	s.args, err = p.args(in, parts)
	p.steps = append(p.steps, s)
	return err
}

// args are the bounds of a statement, see [source.Statements.Range].
func (p plan) args(in observer.Range, parts []int) ([]any, error) {
	key := func(c source.Column, part string) (any, bool) { return bindOf(c, part), true }
	return source.Bounds(p.selection, in, parts, parseCursor, key)
}

// statements has the driver leave the text of columns alone that are declared as
// DATE, DATETIME or TIMESTAMP, which it would parse. The unary plus makes an
// expression, which has no declared type; WHERE and ORDER BY name the bare columns.
func (p plan) statements() source.Statements {
	return source.Statements{
		From: p.from, Rows: true, Within: p.form.within,
		Column: func(_ source.Column, name string) string { return "+" + name },
	}
}

// sample selects the newest texts, for their layout, without those too long for a timestamp.
func (p plan) sample() string {
	ts, text := "q."+source.Quote(p.selection.TimestampName()), spans[len(spans)-1]
	return fmt.Sprintf("SELECT +%[1]s\nFROM %[2]s q\nWHERE octet_length(%[1]s) <= %[6]d AND %[1]s >= %[3]s AND %[1]s < %[4]s AND %[5]s\nORDER BY %[1]s DESC\nLIMIT 100",
		ts, p.from, literal(text.from), literal(text.before), text.readable(ts), source.ShortValue)
}

package sqlite

import (
	"context"
	"fmt"
	"slices"

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
// row has turned out to be large, and plain that of [source.Statements.Plain].
type step struct {
	sql, bounded, plain string
	args                []any
}

func (s session) plan(ctx context.Context, q observer.Query, in observer.Range) (plan, error) {
	r, err := s.describe(ctx, q)
	if err != nil {
		return plan{}, err
	}
	if in.ByKey {
		p, err := s.planByKey(ctx, r, q, in)
		if err == nil {
			err = source.CheckOrder(in, p.order, p.ties)
		}
		return p, err
	}
	p, err := planFor(r, q, in)
	if err == nil {
		err = source.CheckOrder(in, p.order, p.ties)
	}
	return p, source.Unfit(s.namePrimaryKey(ctx, err, r, q))
}

func planFor(r relation, q observer.Query, in observer.Range) (plan, error) {
	selection, err := source.Select(q, r.columns, r.name)
	if err != nil {
		return plan{}, err
	}
	p := plan{selection: selection, from: r.from, table: r.name, most: source.MaxRowBytes(q)}
	if in.Part == observer.PartKey && !r.bindable(selection) {
		return p, observer.ErrNoKeyLookup
	}
	p.form = formOf(q.Form)
	w := p.statements(q, in)
	writers := w.Writers()
	if in.Part != observer.PartKey && selection.Timestamp >= 0 {
		p.textOnly = r.name != "" && !r.view && affinityOf(selection.Columns[selection.Timestamp].Type) == affinityText
		if r.bindable(selection) {
			p.ties = selection.OrderID(selection.TieOrder(), nil)
		}
		switch {
		case in.Part == observer.PartStray && p.form == "":
			return p, nil // All forms have their place.
		case in.Part == observer.PartStray:
			writers = []source.Writer{p.strays}
		}
	}
	slices.Reverse(writers) // SQLite sorts NULL first.
	return p, p.add(w, writers...)
}

// strays selects the rows that are not of the form. They are few, so it is the index on
// the timestamp that has to serve, and not one on the key.
func (p plan) strays(w source.Statements) (statement string, parts []int) {
	ts := "q." + source.Quote(p.selection.TimestampName())
	conditions := []string{"(" + p.form.without(ts) + ")"}
	if w.In.Key != "" {
		conditions = append(conditions, "+("+w.FromKey(&parts)+")")
	}
	order := ""
	for _, part := range p.selection.TieOrder() {
		order += "+q." + source.Quote(p.selection.Columns[p.selection.Key[part]].Name) + ", "
	}
	return w.Select(conditions, order+ts, w.In.Limit), parts
}

// add adds statements, with the bounds of the range that they have: as they are, for
// large rows bounded, and plain.
func (p *plan) add(w source.Statements, writers ...source.Writer) error {
	for _, write := range writers {
		w.Dialect = dialect{}
		text, parts := write(w)
		w.Dialect = dialect{bounded: true}
		bounded, _ := write(w)
		plain, _ := write(w.Plain())
		args, err := source.Bounds(p.selection, w.In, parts, parseCursor, bindOf)
		p.steps = append(p.steps, step{sql: text, bounded: bounded, plain: plain, args: args})
		if err != nil {
			return err
		}
	}
	return nil
}

// statements are those of the plan in no dialect yet.
func (p plan) statements(q observer.Query, in observer.Range) source.Statements {
	w := source.Statements{Query: q, Selection: p.selection, In: in, From: p.from, Rows: true}
	if p.selection.Timestamp >= 0 {
		w.Within = p.form.within("q."+source.Quote(p.selection.TimestampName()), in)
	}
	return w
}

// dialect has the driver leave the text of columns alone that are declared as
// DATE, DATETIME or TIMESTAMP, which it would parse. The unary plus makes an
// expression, which has no declared type; WHERE and ORDER BY name the bare columns.
type dialect struct {
	source.Standard
	bounded bool
}

// Column implements [source.Dialect].
func (dialect) Column(_ source.Column, qualified string) string { return "+" + qualified }

// sample selects the newest texts, for their layout, without those too long for a timestamp.
func (p plan) sample() string {
	ts, text := "q."+source.Quote(p.selection.TimestampName()), spans[len(spans)-1]
	return fmt.Sprintf("SELECT +%[1]s\nFROM %[2]s q\nWHERE octet_length(%[1]s) <= %[6]d AND %[1]s >= %[3]s AND %[1]s < %[4]s AND %[5]s\nORDER BY %[1]s DESC\nLIMIT 100",
		ts, p.from, literal(text.from), literal(text.before), text.readable(ts), source.ShortValue)
}

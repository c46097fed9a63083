package mysql

import (
	"context"
	"database/sql/driver"
	"strings"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// plan is a read that is ready to run: its names resolved, its statements
// written. They run one after the other in one snapshot.
type plan struct {
	relation  relation
	selection source.Selection
	kinds     []kind // of the selected columns
	leaves    bool   // see [source.Statements.Leaves]
	time      timeKind
	steps     []step
	order     keyIndex // for a read by key
	ties      string   // the order of rows that share a timestamp; empty where no read goes on within them
}

// items is how many a row of the result has.
func (p plan) items() int {
	if p.leaves {
		return len(p.kinds) + 1
	}
	return len(p.kinds)
}

// step is a statement as it is sent, and as people are shown it: with ? in the
// place of a cursor.
type step struct{ sql, text string }

// text joins the statements for people.
func (p plan) text() string {
	texts := make([]string, len(p.steps))
	for i, s := range p.steps {
		texts[i] = s.text
	}
	return strings.Join(texts, ";\n")
}

func (c *session) plan(ctx context.Context, q observer.Query, in observer.Range) (plan, error) {
	if err := source.CheckQuery(q); err != nil {
		return plan{}, unfit(err)
	}
	r, err := c.describe(ctx, q)
	if err != nil {
		return plan{}, err
	}
	p := plan{relation: r}
	if err := p.resolve(q, in); err != nil {
		return plan{}, unfit(err)
	}
	if in.ByKey {
		indexes, err := c.indexes(ctx, r)
		if err != nil {
			return plan{}, err
		}
		if p.order = keyOrder(r, p.selection, indexes); p.order.parts != nil {
			err = p.writeByKey(q, in)
		}
		return p, unfit(err)
	}
	return p, nil
}

// unfit is a query that no database could run, or not this one.
func unfit(err error) error {
	if err == nil {
		return nil
	}
	return &observer.Fault{Class: observer.ClassQuery, Err: err}
}

func (p *plan) resolve(q observer.Query, in observer.Range) error {
	s, err := source.Select(q, p.relation.columns, p.relation.name)
	if err != nil {
		return err
	}
	p.selection = s
	p.leaves = p.dialect(q).Leaves(s)
	for _, column := range s.Columns {
		p.kinds = append(p.kinds, kindOf(column.Type))
	}
	if s.Timestamp >= 0 {
		if p.time, err = timeKindOf(s.Columns[s.Timestamp], p.kinds[s.Timestamp]); err != nil {
			return err
		}
	}
	if in.ByKey {
		return nil // [plan.writeByKey] writes it.
	}
	if p.relation.sortsFully(s) {
		p.ties = p.orderID(s.TieOrder())
	}
	return p.write(q, in)
}

// write writes the statements twice: as they are sent, with the bounds in them,
// and for people.
func (p *plan) write(q observer.Query, in observer.Range) error {
	shown, parts := p.statements(q, in, func(int) string { return "?" })
	bounds, err := p.literals(in, parts)
	if err != nil {
		return err
	}
	sent, _ := p.statements(q, in, func(n int) string { return bounds[n-1] })
	for i := range sent {
		p.steps = append(p.steps, step{sent[i], shown[i]})
	}
	return nil
}

func (p *plan) statements(q observer.Query, in observer.Range, bound func(n int) string) (statements []string, parts []int) {
	s, w := p.selection, p.dialect(q)
	w.Bound, w.KeyBound = bound, func(n int, _ source.Column) string { return bound(n) }
	if s.Timestamp < 0 {
		return []string{w.All(s)}, nil
	}
	if in.Part == observer.PartUndated {
		text, parts := w.Nulls(s, in)
		return []string{text}, parts
	}
	nulls := source.NullsOf(q, s, in)
	text, parts := w.Range(s, in, nulls != source.NullsInRange)
	statements = []string{text}
	if nulls == source.NullsApart {
		text, _ := w.Nulls(s, observer.Range{})
		statements = append(statements, text)
	}
	return statements, parts
}

// literals are the bounds of a statement, see [source.Statements.Range]. What they
// may be is checked, so they need no quoting.
func (p *plan) literals(in observer.Range, parts []int) ([]string, error) {
	cursor := func(bound string) (string, bool) { return "'" + bound + "'", p.time.fits(bound) }
	return source.Bounds(p.selection, in, parts, cursor, keyBound)
}

func (p *plan) dialect(q observer.Query) source.Statements {
	return source.Statements{
		From: p.relation.from, Quote: quote, NullByKey: true,
		Column:    func(c source.Column, qualified string) string { return kindOf(c.Type).selected(qualified) },
		Size:      p.relation.size,
		MaxLength: source.MaxRowBytes(q),
	}
}

// check compares the columns of a result with those of the catalogue, between
// whose reading an ALTER TABLE may have come that the server says nothing of: one
// that gives columns new names only, or of a table without snapshots. The columns
// of views and queries are expressions, of which the two may differ always.
func (p *plan) check(result driver.Rows) error {
	typed, ok := result.(driver.RowsColumnTypeDatabaseTypeName)
	if !ok || !p.relation.base {
		return nil
	}
	for i, k := range p.kinds {
		if name := typed.ColumnTypeDatabaseTypeName(i); name != "" && !k.arrivesAs(kindOf(catalogued(name))) {
			return errAltered()
		}
	}
	return nil
}

// catalogued is the catalogue's name of a type, of which the driver has another.
func catalogued(name string) string {
	name = strings.ToLower(name)
	if plain, unsigned := strings.CutPrefix(name, "unsigned "); unsigned {
		return plain + " unsigned"
	}
	return name
}

// quote writes an identifier, whatever the server's sql_mode.
func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

package mysql

import (
	"context"
	"strings"

	"github.com/observerd/observerd/internal/fn"
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
	order     source.KeyIndex // for a read by key
	ties      string          // the order of rows that share a timestamp; empty where no read goes on within them
}

// items is how many a row of the result has.
func (p plan) items() int {
	if p.leaves {
		return len(p.kinds) + 1
	}
	return len(p.kinds)
}

// step is a statement as it is sent, and as people are shown it: with ? in the
// place of a cursor. plain is that of [source.Statements.Plain].
type step struct{ sql, text, plain string }

func (c *session) plan(ctx context.Context, q observer.Query, in observer.Range) (plan, error) {
	if err := source.CheckQuery(q); err != nil {
		return plan{}, source.Unfit(err)
	}
	r, err := c.describe(ctx, q)
	if err != nil {
		return plan{}, err
	}
	p := plan{relation: r}
	if err := p.resolve(q); err != nil {
		err = source.NamePrimaryKey(err, q, func() ([]string, error) { return c.primaryKey(ctx, r) })
		return plan{}, source.Unfit(err)
	}
	if in.ByKey {
		indexes, err := c.indexes(ctx, r)
		if err != nil {
			return plan{}, err
		}
		p.order = keyOrder(r, p.selection, indexes)
	}
	if in.Part == observer.PartKey && !r.bindable(p.selection) {
		return plan{}, source.Unfit(observer.ErrNoKeyLookup)
	}
	return p, source.Unfit(p.write(q, in))
}

// resolve finds the names of the query.
func (p *plan) resolve(q observer.Query) error {
	s, err := source.Select(q, p.relation.columns, p.relation.name)
	if err != nil {
		return err
	}
	p.selection = s
	p.kinds = fn.Each(s.Columns, func(c source.Column) kind { return kindOf(c.Type) })
	if p.relation.sortsFully(s) {
		p.ties = p.orderID(s.TieOrder())
	}
	if s.Timestamp >= 0 {
		p.time, err = timeKindOf(s.Columns[s.Timestamp], p.kinds[s.Timestamp])
	}
	return err
}

// write writes each statement as it is sent, with the bounds in it, and for people.
func (p *plan) write(q observer.Query, in observer.Range) error {
	w := source.Statements{
		Dialect: dialect{relation: p.relation}, Query: q, Selection: p.selection, In: in, Order: p.order.Parts,
		From: p.relation.from, NullByKey: true,
	}
	if p.order.Parts != nil {
		w.Behind = " FORCE INDEX (" + quote(p.order.Name) + ")"
	}
	p.leaves = w.Leaves()
	for _, write := range w.Writers() {
		shown, parts := write(w)
		bounds, err := source.Bounds(p.selection, in, parts, p.time.literal, keyBound)
		if err != nil {
			return err
		}
		bound := w
		bound.Dialect = dialect{relation: p.relation, bounds: bounds}
		sent, _ := write(bound)
		plain, _ := write(w.Plain())
		p.steps = append(p.steps, step{sent, shown, plain})
	}
	return nil
}

// dialect is that of reads of a relation. Without bounds, it shows ? in their places.
type dialect struct {
	source.Standard
	relation relation
	bounds   []string
}

// Quote implements [source.Dialect].
func (dialect) Quote(name string) string { return quote(name) }

// Column implements [source.Dialect].
func (dialect) Column(c source.Column, qualified string) string {
	return kindOf(c.Type).selected(qualified)
}

// Bound implements [source.Dialect].
func (d dialect) Bound(n, _ int, _ source.Column) string {
	if d.bounds == nil {
		return "?"
	}
	return d.bounds[n-1]
}

// check compares the columns of a result with those of the catalogue, between
// whose reading an ALTER TABLE may have come that the server says nothing of: one
// that gives columns new names only, or of a table without snapshots. The columns
// of views and queries are expressions, of which the two may differ always.
func (p *plan) check(result driverRows) error {
	if !p.relation.base {
		return nil
	}
	for i, k := range p.kinds {
		if name := result.ColumnTypeDatabaseTypeName(i); name != "" && !k.arrivesAs(kindOf(catalogued(name))) {
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

package mysql

import (
	"context"
	"database/sql/driver"
	"fmt"
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
	time      timeKind
	steps     []step
	order     keyIndex // for a read by key
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
	for _, column := range s.Columns {
		p.kinds = append(p.kinds, kindOf(column.Type))
	}
	if s.Timestamp >= 0 {
		if p.time, err = timeKindOf(s.Columns[s.Timestamp], p.kinds[s.Timestamp]); err != nil {
			return err
		}
	}
	for _, bound := range []string{in.From, in.Before} {
		if bound != "" && p.selection.Timestamp >= 0 && !p.time.fits(bound) {
			return fmt.Errorf("the cursor does not fit column %s: has its type changed?", s.TimestampName())
		}
	}
	p.write(q, in)
	return nil
}

// write writes the statements twice: as they are sent, with the bounds in them
// (what a cursor may be was checked, so it needs no quoting), and for people.
func (p *plan) write(q observer.Query, in observer.Range) {
	var bounds []string
	for _, bound := range []string{in.From, in.Before} {
		if bound != "" {
			bounds = append(bounds, "'"+bound+"'")
		}
	}
	sent := p.statements(q, in, func(n int) string { return bounds[n-1] })
	shown := p.statements(q, in, func(int) string { return "?" })
	for i := range sent {
		p.steps = append(p.steps, step{sent[i], shown[i]})
	}
}

func (p *plan) statements(q observer.Query, in observer.Range, bound func(n int) string) []string {
	s, w := p.selection, p.dialect()
	w.Bound = bound
	if s.Timestamp < 0 {
		return []string{w.All(s)}
	}
	nulls := source.NullsOf(q, s, in)
	statements := []string{w.Range(s, in, nulls != source.NullsInRange)}
	if nulls == source.NullsApart {
		statements = append(statements, w.Nulls(s))
	}
	return statements
}

func (p *plan) dialect() source.Statements {
	return source.Statements{
		From: p.relation.from, Quote: quote,
		Column: func(c source.Column, qualified string) string { return kindOf(c.Type).selected(qualified) },
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

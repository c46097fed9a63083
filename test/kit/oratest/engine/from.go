package engine

import (
	"errors"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// from adds an item of FROM to a block, and returns the conditions that it
// brings: those of a view that was merged.
func (c *compiler) from(bp *blockPlan, sc *scope, item fromItem) []*node {
	if item.sub != nil {
		return c.subquery(bp, sc, item, item.sub)
	}
	o := c.object(item)
	s := &source{alias: item.alias}
	switch {
	case o.view != nil:
		return c.viewSource(bp, sc, item, o)
	case o.virtual != nil:
		s.slot = bp.add(&access{virtual: o.virtual})
		for i, column := range o.virtual.columns {
			s.columns = append(s.columns, sourceColumn{name: column.name, typ: column.typ, nullable: true, index: i})
		}
	case o.table != nil:
		s.slot = bp.add(&access{table: o.table})
		for i, column := range o.table.def().columns {
			if !column.dropped {
				s.columns = append(s.columns, sourceColumn{column.name, column.typ, column.nullable, i})
			}
		}
	default:
		panic(refuseAt(item.pos, 942))
	}
	sc.sources = append(sc.sources, s)
	return nil
}

// object finds an item of FROM that the user may read.
func (c *compiler) object(item fromItem) (o *object) {
	e := c.session.engine
	err := protect(func() {
		o = e.resolve(c.user, item.schema, item.table)
		e.may(c.user, o, "SELECT", "READ")
	})
	var refusal *wire.Error
	if errors.As(err, &refusal) {
		panic(refuseAt(item.pos, refusal.Code))
	}
	return o
}

// viewSource reads a view with its owner's rights.
func (c *compiler) viewSource(bp *blockPlan, sc *scope, item fromItem, o *object) []*node {
	if c.nesting++; c.nesting > 32 {
		panic(refuse(1731))
	}
	user := c.user
	c.user = o.owner
	defer func() {
		c.user = user
		c.nesting--
	}()
	return c.subquery(bp, sc, item, o.view.query)
}

// subquery adds a query in parentheses, merged into the block where that
// changes nothing.
func (c *compiler) subquery(bp *blockPlan, sc *scope, item fromItem, q *query) []*node {
	s := &source{alias: item.alias}
	defer func() { sc.sources = append(sc.sources, s) }()
	if q.mergeable() {
		b := q.block
		inner := &scope{}
		var conditions []*node
		for _, f := range b.from {
			conditions = append(conditions, c.from(bp, inner, f)...)
		}
		if b.where != nil {
			conditions = append(conditions, c.conjuncts(inner, b.where)...)
		}
		for _, it := range c.expand(inner, b.items) {
			n := c.item(inner, it)
			s.merged = append(s.merged, n)
			s.columns = append(s.columns, sourceColumn{name: it.alias, typ: n.typ, nullable: n.nullable})
		}
		return conditions
	}
	out := c.query(q)
	s.slot = bp.add(&access{query: out})
	for i, column := range out.columns {
		s.columns = append(s.columns, sourceColumn{
			name: column.name, typ: column.typ, nullable: column.nullable, index: i,
		})
	}
	return nil
}

// mergeable says that the rows of a query are the same when its conditions are
// written into the block around it.
func (q *query) mergeable() bool {
	return len(q.order) == 0 && q.fetch == nil && !q.block.grouped && !q.block.subqueries && !q.block.rownum
}

package engine

// from adds an item of FROM to a block, and returns the conditions that it
// brings: those of ON, and those of a view that was merged.
func (c *compiler) from(bp *blockPlan, sc *scope, item fromItem) []*node {
	var conditions []*node
	switch {
	case item.function != nil:
		c.tableFunction(bp, sc, item)
	case item.sub != nil:
		conditions = c.subquery(bp, sc, item, item.sub, nil)
	default:
		conditions = c.namedSource(bp, sc, item)
	}
	if item.on == nil {
		return conditions
	}
	on := c.conjuncts(sc, item.on)
	if !item.outer {
		return append(conditions, on...)
	}
	a := bp.accesses[len(bp.accesses)-1]
	a.outer, a.on = true, on
	s := sc.sources[len(sc.sources)-1]
	for i := range s.columns {
		s.columns[i].nullable = true
	}
	return conditions
}

// namedSource is a table, a view, a synonym, or a name of WITH.
func (c *compiler) namedSource(bp *blockPlan, sc *scope, item fromItem) []*node {
	if item.schema == "" {
		for i := len(c.with) - 1; i >= 0; i-- {
			if c.with[i].name == item.table {
				return c.withSource(bp, sc, item, i)
			}
		}
	}
	o, err := c.session.engine.resolve(c.session, c.user, item.schema, item.table)
	if err == nil {
		err = c.session.engine.mayRead(c.session, c.user, o)
	}
	if err != nil {
		panic(refuseAt(item.pos, codeOf(err)))
	}
	s := &source{owner: o.owner, table: item.table, alias: item.alias}
	switch {
	case o.view != nil:
		return c.viewSource(bp, sc, item, o)
	case o.virtual != nil:
		s.slot = bp.addVirtual(o.virtual)
		for i, column := range o.virtual.columns {
			s.columns = append(s.columns, sourceColumn{name: column.name, typ: column.typ, nullable: true, index: i})
		}
	case o.table != nil:
		s.base = o.table
		s.slot = bp.addTable(o.table, item.alias)
		for i, column := range o.table.def().columns {
			if !column.dropped {
				s.columns = append(s.columns, sourceColumn{column.name, column.typ, column.nullable, i, column.missing})
			}
		}
	default:
		panic(refuseAt(item.pos, 942))
	}
	sc.sources = append(sc.sources, s)
	return nil
}

// withSource reads the i-th name of WITH.
func (c *compiler) withSource(bp *blockPlan, sc *scope, item fromItem, i int) []*node {
	all := c.with
	c.with = all[:i]
	defer func() { c.with = all }()
	return c.subquery(bp, sc, item, all[i].sub, nil)
}

// viewSource reads a view with its owner's rights.
func (c *compiler) viewSource(bp *blockPlan, sc *scope, item fromItem, o *object) []*node {
	if c.nesting++; c.nesting > 32 {
		c.fail(1731)
	}
	user, with := c.user, c.with
	c.user, c.with = o.owner, nil
	defer func() {
		c.user, c.with = user, with
		c.nesting--
	}()
	return c.subquery(bp, sc, item, o.view.query, o.view.columns)
}

// subquery adds a query in parentheses, merged into the block where that
// changes nothing.
func (c *compiler) subquery(bp *blockPlan, sc *scope, item fromItem, q *query, names []string) []*node {
	s := &source{alias: item.alias}
	defer func() { sc.sources = append(sc.sources, s) }()
	if !item.outer && mergeable(q) {
		b := q.blocks[0]
		inner := &scope{parent: sc.parent}
		var conditions []*node
		for _, f := range b.from {
			conditions = append(conditions, c.from(bp, inner, f)...)
		}
		if b.where != nil {
			conditions = append(conditions, c.conjuncts(inner, b.where)...)
		}
		for i, it := range c.expand(inner, b.items) {
			n := c.item(inner, it)
			s.merged = append(s.merged, n)
			s.columns = append(s.columns, sourceColumn{name: renamed(names, i, it.alias), typ: n.typ, nullable: n.nullable})
		}
		sc.correlated = sc.correlated || inner.correlated
		return conditions
	}
	parent := sc.parent
	if parent == nil {
		parent = &scope{boundary: true}
	}
	out := c.query(parent, q)
	s.slot = bp.add(&access{query: out, alias: item.alias})
	for i, column := range out.columns {
		s.columns = append(s.columns, sourceColumn{
			name: renamed(names, i, column.name), typ: column.typ, nullable: column.nullable, index: i,
		})
	}
	return nil
}

func renamed(names []string, i int, name string) string {
	if i < len(names) {
		return names[i]
	}
	return name
}

// mergeable says that the rows of a query are the same when its conditions are
// written into the block around it.
func mergeable(q *query) bool {
	if len(q.blocks) != 1 || len(q.order) > 0 || q.fetch != nil || q.offset != nil || len(q.with) > 0 || q.forUpdate {
		return false
	}
	b := q.blocks[0]
	if b.distinct || len(b.group) > 0 || b.having != nil || mentions(b.where, "ROWNUM") {
		return false
	}
	for _, item := range b.items {
		if hasAggregate(item.x) || mentions(item.x, "ROWNUM") || !plainExpr(item.x) {
			return false
		}
	}
	for _, f := range b.from {
		if f.outer || f.function != nil || f.on != nil && mentions(f.on, "ROWNUM") {
			return false
		}
	}
	return true
}

// plainExpr says that an expression has no subquery in it.
func plainExpr(x expr) bool {
	plain := true
	visit(x, func(x expr) {
		switch x := x.(type) {
		case subqueryExpr, existsExpr:
			plain = false
		case inExpr:
			plain = plain && x.sub == nil
		}
	})
	return plain
}

func mentions(x expr, name string) bool {
	found := false
	visit(x, func(x expr) {
		if n, ok := x.(nameExpr); ok && len(n.parts) == 1 && n.parts[0].text == name {
			found = true
		}
	})
	return found
}

// visit calls f with an expression and all of its parts.
func visit(x expr, f func(expr)) {
	if x == nil {
		return
	}
	f(x)
	var parts []expr
	switch x := x.(type) {
	case unaryExpr:
		parts = []expr{x.x}
	case binaryExpr:
		parts = []expr{x.l, x.r}
	case callExpr:
		parts = x.args
	case caseExpr:
		parts = []expr{x.operand, x.other}
		for _, w := range x.whens {
			parts = append(parts, w[0], w[1])
		}
	case inExpr:
		parts = append([]expr{x.x}, x.list...)
	case likeExpr:
		parts = []expr{x.x, x.pattern, x.escape}
	case nullExpr:
		parts = []expr{x.x}
	case castExpr:
		parts = []expr{x.x}
	case zoneExpr:
		parts = []expr{x.x, x.zone}
	case extractExpr:
		parts = []expr{x.x}
	}
	for _, p := range parts {
		visit(p, f)
	}
}

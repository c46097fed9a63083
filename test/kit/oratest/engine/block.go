package engine

import "slices"

// blockPlan is one SELECT … FROM … WHERE that is ready to run.
type blockPlan struct {
	accesses []*access
	// always are the conditions that read no source, late those that read
	// ROWNUM. stop is set for ROWNUM <= n.
	always, late []*node
	stop         *node
	items        []*node
	grouping     *grouping // nil without aggregates
	sort         []sortKey
}

// compileBlock compiles a SELECT; order is the ORDER BY of its query.
func (c *compiler) compileBlock(b *block, order []orderItem) *compiledQuery {
	bp := &blockPlan{}
	sc := &scope{}
	var conditions []*node
	for _, item := range b.from {
		conditions = append(conditions, c.from(bp, sc, item)...)
	}
	if b.where != nil {
		conditions = append(conditions, c.conjuncts(sc, b.where)...)
	}
	out := &compiledQuery{}
	items := c.expand(sc, b.items)
	if b.grouped {
		bp.grouping = &grouping{}
		sc.grouping = bp.grouping
	}
	for _, item := range items {
		n := c.item(sc, item)
		bp.items = append(bp.items, n)
		out.columns = append(out.columns, outColumn{item.alias, n.typ, n.nullable})
	}
	bp.orderBy(c, sc, out.columns, order)
	bp.distribute(conditions)
	bp.choose()
	out.plan = bp.describe()
	out.open = bp.open
	return out
}

// item compiles one expression of the select list.
func (c *compiler) item(sc *scope, item selectItem) *node {
	n := c.expr(sc, item.x)
	if n.condition {
		panic(refuse(923))
	}
	if n.typ.name == "" {
		copied := *n
		copied.typ = varchar(1)
		return &copied
	}
	return n
}

// expand replaces * by the columns, and gives each item its name.
func (c *compiler) expand(sc *scope, items []selectItem) []selectItem {
	var all []selectItem
	for _, item := range items {
		if _, star := item.x.(starExpr); !star {
			if name, column := item.x.(nameExpr); column && item.alias == "" {
				item.alias = name.parts[len(name.parts)-1].text
			} else if item.alias == "" {
				item.alias = item.heading
			}
			all = append(all, item)
			continue
		}
		if len(items) > 1 {
			panic(refuse(923))
		}
		for _, s := range sc.sources {
			for i, column := range s.columns {
				all = append(all, selectItem{x: resolved{s, i}, alias: column.name})
			}
		}
	}
	return all
}

// resolved is a column that * stands for.
type resolved struct {
	source *source
	index  int
}

// orderBy compiles ORDER BY: a name of the select list, or any expression.
func (bp *blockPlan) orderBy(c *compiler, sc *scope, columns []outColumn, order []orderItem) {
	for _, o := range order {
		k := sortKey{descending: o.descending}
		switch x := o.x.(type) {
		case literalExpr:
			panic(unimplemented("ORDER BY the number of an item"))
		case nameExpr:
			if len(x.parts) == 1 {
				for i, column := range columns {
					if column.name == x.parts[0].text {
						k.node = bp.items[i]
						break
					}
				}
			}
		}
		if k.node == nil {
			k.node = c.value(sc, o.x)
		}
		if k.node.typ.lob() {
			panic(refuse(932, "-", "CLOB"))
		}
		if !bp.sorts(k.node) {
			bp.sort = append(bp.sort, k)
		}
	}
}

// sorts says that the order has a column already.
func (bp *blockPlan) sorts(n *node) bool {
	return n.column != nil && slices.ContainsFunc(bp.sort, func(k sortKey) bool {
		return k.node.column != nil && *k.node.column == *n.column
	})
}

// conjuncts splits a condition at its ANDs.
func (c *compiler) conjuncts(sc *scope, x expr) []*node {
	if b, ok := x.(binaryExpr); ok && b.op == "AND" {
		return append(c.conjuncts(sc, b.l), c.conjuncts(sc, b.r)...)
	}
	return []*node{c.condition(sc, x)}
}

// distribute gives each condition to the first source at which it can be
// evaluated.
func (bp *blockPlan) distribute(conditions []*node) {
	for _, n := range conditions {
		switch {
		case n.rownum:
			bp.late = append(bp.late, n)
			bp.stopKey(n)
		case n.slots == 0:
			bp.always = append(bp.always, n)
		default:
			last := 0
			for slot := range bp.accesses {
				if n.slots&(1<<slot) != 0 {
					last = slot
				}
			}
			bp.accesses[last].filters = append(bp.accesses[last].filters, n)
		}
	}
}

// stopKey notes a condition ROWNUM <= n, after which no row is looked for.
func (bp *blockPlan) stopKey(n *node) {
	cmp := n.comparison
	if cmp == nil || cmp.right == nil || !cmp.left.rownum || cmp.right.rownum || cmp.right.slots != 0 {
		return
	}
	if cmp.op == "<=" || cmp.op == "=" {
		bp.stop = cmp.right
	}
}

package engine

// in compiles x IN (…) as the comparisons that it stands for, or as a look into
// the result of a subquery.
func (c *compiler) in(sc *scope, x inExpr) *node {
	if x.sub != nil {
		return c.inSubquery(sc, x)
	}
	// Before 23ai a list has a thousand expressions at most.
	if len(x.list) > 1000 && c.session.engine.options.Version < 23 {
		panic(refuse(1795))
	}
	var n *node
	left := c.value(sc, x.x)
	for _, item := range x.list {
		equal := c.comparison("=", left, c.value(sc, item))
		if n == nil {
			n = equal
		} else {
			n = logical("OR", n, equal)
		}
	}
	return n
}

func (c *compiler) inSubquery(sc *scope, x inExpr) *node {
	left, q := c.value(sc, x.x), c.nested(x.sub)
	compatible(left.typ, q.columns[0].typ)
	set := once(func(f *frame) *valueSet { return readSet(f, q) })
	n := &node{typ: plain(typeNumber), condition: true, nullable: true, eval: func(f *frame) value {
		v, all := left.eval(f), set(f)
		switch {
		case len(all.keys) == 0 && !all.null:
			return truth(false)
		case v.isNull():
			return null
		case all.keys[v]:
			return truth(true)
		case all.null:
			return null
		}
		return truth(false)
	}}
	return n.inherit(left)
}

// valueSet is what a subquery of IN returned.
type valueSet struct {
	keys map[value]bool
	null bool
}

func readSet(f *frame, q *compiledQuery) *valueSet {
	set := &valueSet{keys: map[value]bool{}}
	rows := q.open(f.run)
	defer rows.close()
	for row := rows.next(); row != nil; row = rows.next() {
		if row[0].isNull() {
			set.null = true
		} else {
			set.keys[row[0]] = true
		}
	}
	return set
}

// once keeps a result for an execution.
func once[T any](read func(*frame) T) func(*frame) T {
	var last *run
	var result T
	return func(f *frame) T {
		if last != f.run {
			last, result = f.run, read(f)
		}
		return result
	}
}

// nested compiles a subquery of one column within an expression.
func (c *compiler) nested(q *query) *compiledQuery {
	out := c.query(q)
	if len(out.columns) != 1 {
		panic(refuse(913))
	}
	return out
}

// scalar compiles a subquery that stands for one value.
func (c *compiler) scalar(x subqueryExpr) *node {
	q := c.nested(x.sub)
	return &node{typ: q.columns[0].typ, nullable: true, eval: once(func(f *frame) value {
		rows := q.open(f.run)
		defer rows.close()
		row := rows.next()
		if row == nil {
			return null
		}
		v := row[0]
		if rows.next() != nil {
			panic(refuse(1427))
		}
		return v
	})}
}

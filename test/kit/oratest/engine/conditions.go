package engine

import "math"

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
	left := c.value(sc, x.x)
	q, inner := c.nested(sc, x.sub)
	if len(q.columns) != 1 {
		panic(refuse(913))
	}
	comparable(left.typ, q.columns[0].typ)
	n := (&node{typ: plain(typeNumber), condition: true, nullable: true, outer: inner.correlated}).inherit(left)
	n.slots |= inner.reads()
	set := memo(inner, func(f *frame) *valueSet { return readSet(f, q) })
	n.eval = func(f *frame) value {
		v := left.eval(f)
		all := set(f)
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
	}
	return n
}

// valueSet is what a subquery of IN returned.
type valueSet struct {
	keys map[value]bool
	null bool
}

func readSet(f *frame, q *compiledQuery) *valueSet {
	set := &valueSet{keys: map[value]bool{}}
	rows := q.open(f.run, f)
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

// memo keeps the result of a subquery that reads nothing of its surroundings,
// for the execution.
func memo[T any](sc *scope, read func(*frame) T) func(*frame) T {
	var last *run
	var result T
	return func(f *frame) T {
		if last == f.run && !sc.correlated {
			return result
		}
		r := read(f)
		last, result = f.run, r
		return r
	}
}

// nested compiles a subquery within an expression.
func (c *compiler) nested(sc *scope, q *query) (*compiledQuery, *scope) {
	if g := sc.grouping; g != nil && !g.inside {
		g.inside = true
		defer func() { g.inside = false }()
	}
	boundary := &scope{parent: sc, boundary: true}
	return c.query(boundary, q), boundary
}

// reads says which sources of the surrounding block a subquery may read: all of
// them, where it reads one.
func (sc *scope) reads() uint64 {
	if sc.correlated {
		return math.MaxUint64
	}
	return 0
}

// scalar compiles a subquery that stands for one value.
func (c *compiler) scalar(sc *scope, x subqueryExpr) *node {
	q, inner := c.nested(sc, x.sub)
	if len(q.columns) != 1 {
		panic(refuse(913))
	}
	read := memo(inner, func(f *frame) value {
		rows := q.open(f.run, f)
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
	})
	return &node{typ: q.columns[0].typ, nullable: true, outer: inner.correlated, slots: inner.reads(), eval: read}
}

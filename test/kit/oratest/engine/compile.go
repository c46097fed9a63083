package engine

import (
	"context"
	"fmt"
	"time"
)

// run is one execution of a statement.
type run struct {
	ctx     context.Context
	session *session
	now     time.Time
	view    view
}

// frame holds the rows at which the expressions of one block are evaluated.
type frame struct {
	run      *run
	rows     [][]value
	versions []*version
	rownum   int64
	groups   []value // results of the aggregates
}

// node is an expression that is ready to be evaluated.
type node struct {
	typ  dataType
	eval func(f *frame) value
	// condition says that the value is true (1), false (0) or unknown (NULL).
	condition bool
	nullable  bool
	// slots are the sources of its block that it reads.
	slots     uint64
	rownum    bool
	aggregate bool
	// column is set for a bare column of a table.
	column *columnRef
	// comparison is set for conditions that an index could serve.
	comparison *comparison
	// literal is set for constants that are known when the statement is read.
	literal *value
}

type columnRef struct {
	slot, index int
}

// comparison is left op right after their conversions; a side that was
// converted is no longer a bare column. IS NULL has no right.
type comparison struct {
	op          string
	left, right *node
}

// fixed says that the node has one value for a whole execution, given the rows
// of the sources in known.
func (n *node) fixed(known uint64) bool {
	return n.slots&^known == 0 && !n.rownum && !n.aggregate
}

// inherit notes what a node made of others reads.
func (n *node) inherit(from ...*node) *node {
	for _, o := range from {
		n.slots |= o.slots
		n.rownum = n.rownum || o.rownum
		n.aggregate = n.aggregate || o.aggregate
	}
	return n
}

// scope is what names mean within a block. A subquery does not see the blocks around it.
type scope struct {
	sources []*source
	// grouping is set while the items of a block with aggregates are compiled.
	grouping *grouping
}

// source is one item of FROM as names see it.
type source struct {
	alias   string
	columns []sourceColumn
	slot    int
	// merged holds the expressions of the columns where a subquery or a view
	// was merged into its block.
	merged []*node
}

type sourceColumn struct {
	name     string
	typ      dataType
	nullable bool
	index    int // in the row
}

// compiler turns parsed statements into what can be executed. Like the parser
// it refuses by a panic.
type compiler struct {
	session *session
	binds   []boundValue
	// block is the PL/SQL block whose variables can be named, or nil.
	block *blockRun
	// user is whose rights count: the session's, or the owner's of a view.
	user string
	// nesting bounds views that are made of each other.
	nesting int
}

func constant(v value, typ dataType) *node {
	return &node{typ: typ, nullable: v.isNull(), literal: &v, eval: func(*frame) value { return v }}
}

// value compiles an expression that has to be a value.
func (c *compiler) value(sc *scope, x expr) *node {
	n := c.expr(sc, x)
	if n.condition {
		panic(refuse(907))
	}
	return n
}

// condition compiles an expression that has to be a condition.
func (c *compiler) condition(sc *scope, x expr) *node {
	n := c.expr(sc, x)
	if !n.condition {
		panic(refuse(920))
	}
	return n
}

func (c *compiler) values(sc *scope, all []expr) []*node {
	nodes := make([]*node, len(all))
	for i, x := range all {
		nodes[i] = c.value(sc, x)
	}
	return nodes
}

func (c *compiler) expr(sc *scope, x expr) *node {
	switch x := x.(type) {
	case literalExpr:
		return constant(x.value, x.typ)
	case bindExpr:
		n := constant(c.binds[x.index].value, c.binds[x.index].typ)
		n.literal = nil
		n.nullable = true
		return n
	case nameExpr:
		return c.name(sc, x)
	case negationExpr:
		in := c.to(c.value(sc, x.x), kindNumber)
		return derived(plain(typeNumber), in, negate)
	case binaryExpr:
		return c.binary(sc, x)
	case callExpr:
		return c.call(sc, x)
	case caseExpr:
		return c.caseOf(sc, x)
	case inExpr:
		return c.in(sc, x)
	case nullExpr:
		return c.isNull(sc, x)
	case subqueryExpr:
		return c.scalar(x)
	case castExpr:
		return c.cast(sc, x)
	case zoneExpr:
		return c.atZone(sc, x)
	case resolved:
		if g := sc.grouping; g != nil && !g.inside {
			g.refuse(0)
		}
		return x.source.node(x.index)
	case starExpr:
		panic(refuse(936))
	}
	panic(unimplemented(fmt.Sprintf("%T", x)))
}

package engine

import "strings"

// planNode is one step of a plan, as EXPLAIN PLAN names it.
type planNode struct {
	operation, options, object string
	rows                       int64
	children                   []*planNode
}

// describe is the plan of a block, its outermost step first.
func (bp *blockPlan) describe() *planNode {
	var plan *planNode
	for _, a := range bp.accesses {
		step := a.describe()
		if plan == nil {
			plan = step
		} else {
			plan = &planNode{operation: "NESTED LOOPS", children: []*planNode{plan, step}}
		}
	}
	if bp.grouping != nil {
		plan = &planNode{operation: "SORT", options: "AGGREGATE", children: []*planNode{plan}}
	}
	if bp.stop != nil {
		plan = &planNode{operation: "COUNT", options: "STOPKEY", children: []*planNode{plan}}
	}
	if len(bp.sort) > 0 {
		plan = &planNode{operation: "SORT", options: "ORDER BY", children: []*planNode{plan}}
	}
	return plan
}

func (a *access) describe() *planNode {
	switch {
	case a.query != nil:
		return &planNode{operation: "VIEW", children: []*planNode{a.query.plan}}
	case a.virtual != nil && a.virtual.name == "DUAL":
		return &planNode{operation: "FAST DUAL", rows: 1}
	case a.virtual != nil:
		return &planNode{operation: "FIXED TABLE", options: "FULL", object: a.virtual.name, rows: 100}
	}
	rows := a.table.cardinality()
	if a.index == nil {
		return &planNode{operation: a.operation(), options: "FULL", object: a.table.name, rows: rows}
	}
	step := &planNode{operation: "INDEX", options: "RANGE SCAN", object: a.index.name, rows: max(rows/20, 1)}
	switch {
	case len(a.equal) == len(a.index.columns) && a.index.unique:
		step.options, step.rows = "UNIQUE SCAN", 1
	case len(a.equal) == 0 && a.low == nil && a.high == nil && !a.nothing:
		step.options, step.rows = "FULL SCAN", rows
	}
	return &planNode{
		operation: a.operation(), options: "BY INDEX ROWID", object: a.table.name,
		rows: step.rows, children: []*planNode{step},
	}
}

func (a *access) operation() string {
	if a.table.materialized {
		return "MAT_VIEW ACCESS"
	}
	return "TABLE ACCESS"
}

// cardinality is how many rows the optimizer believes in.
func (t *table) cardinality() int64 {
	if t.def().analyzed >= 0 {
		return t.def().analyzed
	}
	return int64(len(t.live()))
}

// lines writes a plan with a line for each step, deeper ones further right.
func (p *planNode) lines(depth int) []string {
	line := strings.Repeat(" ", depth) + strings.TrimSpace(p.operation+" "+p.options)
	if p.object != "" {
		line += " " + p.object
	}
	all := []string{line}
	for _, child := range p.children {
		all = append(all, child.lines(depth+1)...)
	}
	return all
}

func (p *planNode) String() string { return strings.Join(p.lines(0), "\n") }

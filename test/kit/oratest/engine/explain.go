package engine

import (
	"fmt"
	"strings"
)

// planRow is a row of PLAN_TABLE, which each session has for itself.
type planRow struct {
	statement                  string
	planID                     int
	id, parent, depth          int
	operation, options, object string
	owner                      string
	cost, rows                 int64
}

const planColumns = "STATEMENT_ID PLAN_ID:n TIMESTAMP:d REMARKS OPERATION OPTIONS OBJECT_OWNER OBJECT_NAME OBJECT_TYPE OPTIMIZER " +
	"ID:n PARENT_ID:n DEPTH:n POSITION:n COST:n CARDINALITY:n BYTES:n ACCESS_PREDICATES:x FILTER_PREDICATES:x"

func (e *Engine) definePlanTable() {
	e.system("PLAN_TABLE$", "PLAN_TABLE", planColumns, true, func(r *run) [][]value {
		var all [][]value
		for _, p := range r.session.plan {
			parent := null
			if p.parent >= 0 {
				parent = integer(int64(p.parent))
			}
			all = append(all, row(p.statement, p.planID, wall(kindDate, r.now), null, p.operation, p.options, p.owner, p.object, null, "ALL_ROWS",
				p.id, parent, p.depth, 1, p.cost, p.rows, p.rows*20, null, null))
		}
		return all
	})
}

// explain runs EXPLAIN PLAN, which writes into PLAN_TABLE.
func (s *session) explain(r *run, c *compiler, st explainStatement) error {
	q, ok := st.inner.(selectStatement)
	if !ok {
		return refuse(3001)
	}
	var out *compiledQuery
	if err := protect(func() { out = c.query(nil, q.query) }); err != nil {
		return err
	}
	_, err := s.write(r, func(*transaction) (int, error) {
		s.planID++
		s.addPlan(out.plan, st.id)
		return 1, nil
	})
	return err
}

func (s *session) addPlan(p *planNode, statement string) {
	top := &planNode{operation: "SELECT STATEMENT", children: []*planNode{p}}
	top.total()
	id := 0
	var walk func(p *planNode, parent, depth int)
	walk = func(p *planNode, parent, depth int) {
		line := planRow{
			statement: statement, planID: s.planID, id: id, parent: parent, depth: depth,
			operation: p.operation, options: p.options, object: p.object, cost: p.cost, rows: p.rows,
		}
		if p.object != "" {
			line.owner = s.schema
		}
		s.plan = append(s.plan, line)
		me := id
		for _, child := range p.children {
			id++
			walk(child, me, depth+1)
		}
	}
	walk(top, -1, 0)
}

// tableFunction is TABLE(DBMS_XPLAN.DISPLAY) in FROM.
func (c *compiler) tableFunction(bp *blockPlan, sc *scope, item fromItem) {
	var parts []token
	switch x := item.function.(type) {
	case nameExpr:
		parts = x.parts
	case callExpr:
		parts = x.name
	}
	if len(parts) < 2 || parts[len(parts)-2].text != "DBMS_XPLAN" || parts[len(parts)-1].text != "DISPLAY" {
		panic(refuseAt(item.pos, 904, "TABLE"))
	}
	v := &virtual{name: "DISPLAY", columns: columnsOf("PLAN_TABLE_OUTPUT:x"), public: true, rows: func(r *run) [][]value {
		return r.session.display()
	}}
	s := &source{alias: item.alias, slot: bp.addVirtual(v), columns: []sourceColumn{{name: "PLAN_TABLE_OUTPUT", typ: varchar(4000), nullable: true}}}
	sc.sources = append(sc.sources, s)
}

// display writes the last plan of the session as DBMS_XPLAN does.
func (s *session) display() [][]value {
	lines := []string{"Plan hash value: 0", "", strings.Repeat("-", 78),
		fmt.Sprintf("| Id  | %-34s | %-16s | Rows  | Cost  |", "Operation", "Name"), strings.Repeat("-", 78)}
	for _, p := range s.plan {
		if p.planID == s.planID {
			operation := strings.Repeat(" ", p.depth) + strings.TrimSpace(p.operation+" "+p.options)
			lines = append(lines, fmt.Sprintf("| %3d | %-34s | %-16s | %5d | %5d |", p.id, operation, p.object, p.rows, p.cost))
		}
	}
	lines = append(lines, strings.Repeat("-", 78))
	var all [][]value
	for _, l := range lines {
		all = append(all, row(l))
	}
	return all
}

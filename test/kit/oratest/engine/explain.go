package engine

// planRow is a row of PLAN_TABLE, which each session has for itself.
type planRow struct {
	statement                         string
	id, depth                         int
	operation, options, owner, object string
	rows                              int64
}

func (e *Engine) definePlanTable() {
	const columns = "STATEMENT_ID ID:n DEPTH:n OPERATION OPTIONS OBJECT_OWNER OBJECT_NAME CARDINALITY:n"
	e.system("PLAN_TABLE$", "PLAN_TABLE", columns, true, func(r *run) [][]value {
		var all [][]value
		for _, p := range r.session.plan {
			all = append(all, row(p.statement, p.id, p.depth, p.operation, p.options, p.owner, p.object, p.rows))
		}
		return all
	})
}

// explain runs EXPLAIN PLAN, which writes into PLAN_TABLE.
func (s *session) explain(r *run, c *compiler, st explainStatement) {
	q, ok := st.inner.(selectStatement)
	if !ok {
		panic(unimplemented("EXPLAIN PLAN of more than a SELECT"))
	}
	out := c.query(q.query)
	s.write(r, func(*transaction) int {
		s.addPlan(out.plan, st.id)
		return 1
	})
}

func (s *session) addPlan(p *planNode, statement string) {
	id := 0
	var walk func(p *planNode, depth int)
	walk = func(p *planNode, depth int) {
		line := planRow{
			statement: statement, id: id, depth: depth,
			operation: p.operation, options: p.options, object: p.object, rows: p.rows,
		}
		if p.object != "" {
			line.owner = s.user
		}
		s.plan = append(s.plan, line)
		for _, child := range p.children {
			id++
			walk(child, depth+1)
		}
	}
	walk(&planNode{operation: "SELECT STATEMENT", children: []*planNode{p}}, 0)
}

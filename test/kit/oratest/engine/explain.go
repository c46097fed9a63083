package engine

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

package engine

// rows are rows as they are produced. A row is valid until the next one is
// asked for; nil ends them.
type rows interface {
	next() []value
	close()
}

// outColumn is a column of a query's result.
type outColumn struct {
	name     string
	typ      dataType
	nullable bool
}

// compiledQuery is a SELECT that is ready to run, any number of times.
type compiledQuery struct {
	columns []outColumn
	open    func(r *run) rows
	plan    *planNode
}

// query compiles a SELECT.
func (c *compiler) query(q *query) *compiledQuery {
	out := c.compileBlock(q.block, q.order)
	if q.fetch != nil {
		out = c.limited(out, q.fetch)
	}
	return out
}

// limited is FETCH FIRST.
func (c *compiler) limited(q *compiledQuery, limit expr) *compiledQuery {
	plan := &planNode{operation: "VIEW", children: []*planNode{{
		operation: "WINDOW", options: "NOSORT STOPKEY", children: []*planNode{q.plan}}}}
	return &compiledQuery{columns: q.columns, plan: plan, open: func(r *run) rows {
		most, _ := c.evaluate(&frame{run: r}, limit).int64()
		return &limitedRows{q.open(r), most}
	}}
}

type limitedRows struct {
	rows
	left int64
}

func (l *limitedRows) next() []value {
	if l.left <= 0 {
		return nil
	}
	l.left--
	return l.rows.next()
}

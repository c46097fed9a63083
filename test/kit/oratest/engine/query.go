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
	start   func(r *run, parent *frame) rows
	plan    *planNode
}

func (q *compiledQuery) open(r *run, parent *frame) rows { return q.start(r, parent) }

// query compiles a SELECT within a scope.
func (c *compiler) query(parent *scope, q *query) *compiledQuery {
	out := c.block(parent, q.block, q.order)
	if q.fetch != nil {
		out = c.limited(out, q.fetch)
	}
	return out
}

// limited is FETCH FIRST.
func (c *compiler) limited(q *compiledQuery, limit expr) *compiledQuery {
	fetch := c.to(c.value(&scope{}, limit), kindNumber)
	out := *q
	out.plan = &planNode{operation: "VIEW", children: []*planNode{{
		operation: "WINDOW", options: "NOSORT STOPKEY", children: []*planNode{q.plan}}}}
	out.start = func(r *run, f *frame) rows {
		most := fetch.eval(&frame{run: r, parent: f})
		l := &limitedRows{}
		l.left, _ = most.int64()
		l.rows = q.open(r, f)
		return l
	}
	return &out
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

package engine

import "slices"

// rows are rows as they are produced. A row is valid until the next one is
// asked for; nil ends them.
type rows interface {
	next() ([]value, error)
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
	start   func(r *run, parent *frame) (rows, error)
	plan    *planNode
	// tables are those whose rows FOR UPDATE would lock.
	forUpdate bool
}

func (q *compiledQuery) open(r *run, parent *frame) (rows, error) { return q.start(r, parent) }

// query compiles a SELECT within a scope.
func (c *compiler) query(parent *scope, q *query) *compiledQuery {
	if len(q.with) > 0 {
		outer := c.with
		c.with = append(slices.Clip(c.with), q.with...)
		defer func() { c.with = outer }()
	}
	var out *compiledQuery
	if len(q.blocks) == 1 {
		out = c.block(parent, q.blocks[0], q.order)
	} else {
		out = c.union(parent, q)
	}
	out.forUpdate = q.forUpdate
	if q.fetch != nil || q.offset != nil {
		out = c.limited(out, q)
	}
	return out
}

func (c *compiler) union(parent *scope, q *query) *compiledQuery {
	parts := make([]*compiledQuery, len(q.blocks))
	plan := &planNode{operation: "UNION-ALL"}
	for i, b := range q.blocks {
		parts[i] = c.block(parent, b, nil)
		if len(parts[i].columns) != len(parts[0].columns) {
			c.fail(1789)
		}
		for k, column := range parts[i].columns {
			first := &parts[0].columns[k]
			switch {
			case first.typ.name == "":
				first.typ = column.typ
			case column.typ.name != "" && column.typ.kind() != first.typ.kind():
				c.fail(1790)
			}
			first.typ.size = max(first.typ.size, column.typ.size)
			first.nullable = first.nullable || column.nullable
		}
		plan.children = append(plan.children, parts[i].plan)
	}
	out := &compiledQuery{columns: parts[0].columns, plan: plan}
	out.start = func(r *run, f *frame) (rows, error) { return &chain{parts: parts, run: r, parent: f}, nil }
	if q.distinct {
		out = unique(out)
	}
	if len(q.order) > 0 {
		out = c.sortResult(out, q.order)
	}
	return out
}

// chain is UNION ALL.
type chain struct {
	parts  []*compiledQuery
	run    *run
	parent *frame
	now    rows
}

func (u *chain) next() ([]value, error) {
	for {
		if u.now == nil {
			if len(u.parts) == 0 {
				return nil, nil
			}
			var err error
			if u.now, err = u.parts[0].open(u.run, u.parent); err != nil {
				return nil, err
			}
			u.parts = u.parts[1:]
		}
		row, err := u.now.next()
		if row != nil || err != nil {
			return row, err
		}
		u.close()
	}
}

func (u *chain) close() {
	if u.now != nil {
		u.now.close()
		u.now = nil
	}
}

// unique drops repeated rows.
func unique(q *compiledQuery) *compiledQuery {
	out := *q
	out.plan = &planNode{operation: "HASH", options: "UNIQUE", children: []*planNode{q.plan}}
	out.start = func(r *run, f *frame) (rows, error) {
		in, err := q.open(r, f)
		return &distinct{rows: in, seen: map[string]bool{}}, err
	}
	return &out
}

type distinct struct {
	rows
	seen map[string]bool
}

func (d *distinct) next() ([]value, error) {
	for {
		row, err := d.rows.next()
		if row == nil || err != nil {
			return nil, err
		}
		if k := keyOfRow(row); !d.seen[k] {
			d.seen[k] = true
			return row, nil
		}
	}
}

// sortResult orders a result by its own columns, by name or by number.
func (c *compiler) sortResult(q *compiledQuery, by []orderItem) *compiledQuery {
	keys := make([]sortKey, len(by))
	for i, o := range by {
		at := -1
		switch x := o.x.(type) {
		case literalExpr:
			if x.value.kind == kindNumber {
				n, _ := x.value.int64()
				at = int(n) - 1
			}
		case nameExpr:
			for k, column := range q.columns {
				if column.name == x.parts[len(x.parts)-1].text {
					at = k
				}
			}
			if at < 0 {
				panic(invalid(x.parts))
			}
		}
		if at < 0 || at >= len(q.columns) {
			c.fail(1785)
		}
		keys[i] = sortKey{descending: o.descending, nullsFirst: o.nullsFirst, position: at}
	}
	out := *q
	out.plan = &planNode{operation: "SORT", options: "ORDER BY", children: []*planNode{q.plan}}
	out.start = func(r *run, f *frame) (rows, error) {
		in, err := q.open(r, f)
		if err != nil {
			return nil, err
		}
		return sortRows(in, keys)
	}
	return &out
}

// limited is OFFSET and FETCH FIRST.
func (c *compiler) limited(q *compiledQuery, limit *query) *compiledQuery {
	empty := &scope{}
	offset, fetch := constant(integer(0), plain(typeNumber)), constant(null, dataType{})
	if limit.offset != nil {
		offset = c.to(c.value(empty, limit.offset), kindNumber)
	}
	if limit.fetch != nil {
		fetch = c.to(c.value(empty, limit.fetch), kindNumber)
	}
	out := *q
	out.plan = &planNode{operation: "VIEW", children: []*planNode{{
		operation: "WINDOW", options: "NOSORT STOPKEY", children: []*planNode{q.plan}}}}
	out.start = func(r *run, f *frame) (rows, error) {
		here := &frame{run: r, parent: f}
		skip, err := offset.eval(here)
		if err != nil {
			return nil, err
		}
		most, err := fetch.eval(here)
		if err != nil {
			return nil, err
		}
		l := &limitedRows{left: -1}
		l.skip, _ = skip.int64()
		if !most.isNull() {
			l.left, _ = most.int64()
			l.left = max(l.left, 0)
		}
		l.rows, err = q.open(r, f)
		return l, err
	}
	return &out
}

type limitedRows struct {
	rows
	skip, left int64 // left < 0 is no limit
}

func (l *limitedRows) next() ([]value, error) {
	for ; l.skip > 0; l.skip-- {
		if row, err := l.rows.next(); row == nil || err != nil {
			return nil, err
		}
	}
	if l.left == 0 {
		return nil, nil
	}
	l.left--
	return l.rows.next()
}

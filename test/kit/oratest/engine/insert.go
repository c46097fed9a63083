package engine

import "slices"

// insertion is where the values of a row go.
type insertion struct {
	table      *table
	definition *tableDefinition
	positions  []int
}

// insert runs an INSERT of values or of a SELECT.
func (s *session) insert(r *run, c *compiler, st insertStatement) int {
	t := s.target(c, st.schema, st.table, "INSERT")
	in := &insertion{table: t, definition: t.def()}
	in.positions = in.definition.positions(st.columns)
	if st.columns == nil {
		for i, column := range in.definition.columns {
			if !column.dropped {
				in.positions = append(in.positions, i)
			}
		}
	}
	return s.write(r, func(tx *transaction) int {
		if st.query != nil {
			return s.insertQuery(r, c, tx, in, st.query)
		}
		f := &frame{run: r}
		in.count(len(st.values))
		values := make([]value, len(st.values))
		for i, x := range st.values {
			values[i] = c.evaluate(f, x)
		}
		s.insertRow(f, c, tx, in, values)
		return 1
	})
}

func (in *insertion) count(n int) {
	switch {
	case n < len(in.positions):
		panic(refuse(947))
	case n > len(in.positions):
		panic(refuse(913))
	}
}

// evaluate compiles and evaluates an expression that reads no table of its own.
func (c *compiler) evaluate(f *frame, x expr) value { return c.value(&scope{}, x).eval(f) }

// insertRow adds a row of values for the positions, and of the defaults of the other
// columns.
func (s *session) insertRow(f *frame, c *compiler, tx *transaction, in *insertion, given []value) {
	values := make([]value, len(in.definition.columns))
	for i, column := range in.definition.columns {
		if at := slices.Index(in.positions, i); at >= 0 {
			values[i] = given[at]
		} else if column.def != nil && !column.dropped {
			values[i] = c.evaluate(f, column.def)
		}
	}
	s.fit(in.table, in.definition, values, 1400)
	in.table.insert(tx, values, 0)
}

func (s *session) insertQuery(r *run, c *compiler, tx *transaction, in *insertion, q *query) int {
	out := c.query(q)
	in.count(len(out.columns))
	source := out.open(r)
	defer source.close()
	f := &frame{run: r}
	count := 0
	for row := source.next(); row != nil; row = source.next() {
		s.insertRow(f, c, tx, in, row)
		count++
	}
	return count
}

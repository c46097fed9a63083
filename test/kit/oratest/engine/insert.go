package engine

import "slices"

// insert runs an INSERT of values or of a SELECT.
func (s *session) insert(r *run, c *compiler, st insertStatement) (int, error) {
	o, err := s.target(c, st.schema, st.table, "INSERT")
	if err != nil {
		return 0, err
	}
	in, err := newInsertion(o, st.columns)
	if err != nil {
		return 0, err
	}
	return s.write(r, func(tx *transaction) (int, error) {
		if st.query != nil {
			return s.insertQuery(r, c, tx, in, st.query)
		}
		for _, exprs := range st.rows {
			if err := s.insertValues(r, c, tx, in, exprs); err != nil {
				return 0, err
			}
		}
		return len(st.rows), nil
	})
}

// insertion is where the values of a row go.
type insertion struct {
	table      *table
	definition *tableDefinition
	positions  []int
}

func newInsertion(o *object, columns []string) (*insertion, error) {
	in := &insertion{table: o.table, definition: o.table.def()}
	if columns == nil {
		for i, c := range in.definition.columns {
			if !c.dropped {
				in.positions = append(in.positions, i)
			}
		}
	}
	for _, name := range columns {
		i := in.definition.column(name)
		if i < 0 {
			return nil, refuse(904, `"`+name+`"`)
		}
		if slices.Contains(in.positions, i) {
			return nil, refuse(957)
		}
		in.positions = append(in.positions, i)
	}
	return in, nil
}

func (in *insertion) count(n int) error {
	switch {
	case n < len(in.positions):
		return refuse(947)
	case n > len(in.positions):
		return refuse(913)
	}
	return nil
}

func (s *session) insertValues(r *run, c *compiler, tx *transaction, in *insertion, exprs []expr) error {
	if err := in.count(len(exprs)); err != nil {
		return err
	}
	f := &frame{run: r}
	values := make([]value, len(in.definition.columns))
	given := make([]bool, len(values))
	for i, x := range exprs {
		values[in.positions[i]], given[in.positions[i]] = c.evaluate(f, x), true
	}
	return s.insertRow(f, c, tx, in, values, given)
}

// evaluate compiles and evaluates an expression that reads no table of its own.
func (c *compiler) evaluate(f *frame, x expr) value { return c.value(&scope{}, x).eval(f) }

// insertRow fills in the defaults of columns that were not named.
func (s *session) insertRow(f *frame, c *compiler, tx *transaction, in *insertion, values []value, given []bool) error {
	for i, column := range in.definition.columns {
		if given[i] || column.def == nil || column.dropped {
			continue
		}
		values[i] = c.evaluate(f, column.def)
	}
	s.fit(in.table, in.definition, values, 1400)
	return in.table.insert(tx, values, 0)
}

func (s *session) insertQuery(r *run, c *compiler, tx *transaction, in *insertion, q *query) (int, error) {
	out := c.query(nil, q)
	if err := in.count(len(out.columns)); err != nil {
		return 0, err
	}
	source := out.open(r, nil)
	defer source.close()
	f := &frame{run: r}
	given := make([]bool, len(in.definition.columns))
	for _, p := range in.positions {
		given[p] = true
	}
	for count := 0; ; count++ {
		row := source.next()
		if row == nil {
			return count, nil
		}
		values := make([]value, len(in.definition.columns))
		for i, p := range in.positions {
			values[p] = row[i]
		}
		if err := s.insertRow(f, c, tx, in, values, given); err != nil {
			return 0, err
		}
	}
}

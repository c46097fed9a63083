package engine

import "slices"

// insert runs an INSERT: of values, of several tables at once, or of a SELECT.
func (s *session) insert(r *run, c *compiler, st insertStatement) (int, error) {
	targets := make([]*insertion, len(st.targets))
	for i, t := range st.targets {
		o, err := s.target(c, t.schema, t.table, "INSERT")
		if err != nil {
			return 0, err
		}
		if targets[i], err = newInsertion(o, t.columns); err != nil {
			return 0, err
		}
	}
	return s.write(r, func(tx *transaction) (int, error) {
		if st.query != nil && st.targets[0].rows == nil {
			return s.insertQuery(r, c, tx, targets[0], st.query)
		}
		count := 0
		for i, t := range st.targets {
			for _, exprs := range t.rows {
				if err := s.insertValues(r, c, tx, targets[i], exprs); err != nil {
					return 0, err
				}
				count++
			}
		}
		return count, nil
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
		if x == nil {
			continue
		}
		v, err := c.evaluate(f, x)
		if err != nil {
			return err
		}
		values[in.positions[i]], given[in.positions[i]] = v, true
	}
	return s.insertRow(f, c, tx, in, values, given)
}

// evaluate compiles and evaluates an expression that reads no table of its own.
func (c *compiler) evaluate(f *frame, x expr) (v value, err error) {
	var n *node
	if err := protect(func() { n = c.value(&scope{}, x) }); err != nil {
		return null, err
	}
	return n.eval(f)
}

// insertRow fills in the defaults of columns that were not named.
func (s *session) insertRow(f *frame, c *compiler, tx *transaction, in *insertion, values []value, given []bool) error {
	for i, column := range in.definition.columns {
		if given[i] || column.def == nil || column.dropped {
			continue
		}
		v, err := c.evaluate(f, column.def)
		if err != nil {
			return err
		}
		values[i] = v
	}
	if err := s.fit(in.table, in.definition, values, 1400); err != nil {
		return err
	}
	return in.table.insert(tx, values, 0)
}

func (s *session) insertQuery(r *run, c *compiler, tx *transaction, in *insertion, q *query) (int, error) {
	var out *compiledQuery
	if err := protect(func() { out = c.query(nil, q) }); err != nil {
		return 0, err
	}
	if err := in.count(len(out.columns)); err != nil {
		return 0, err
	}
	source, err := out.open(r, nil)
	if err != nil {
		return 0, err
	}
	defer source.close()
	f := &frame{run: r}
	given := make([]bool, len(in.definition.columns))
	for _, p := range in.positions {
		given[p] = true
	}
	for count := 0; ; count++ {
		row, err := source.next()
		if row == nil || err != nil {
			return count, err
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

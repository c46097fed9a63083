package engine

import "slices"

// sortKey is one column of ORDER BY.
type sortKey struct {
	node                   *node
	descending, nullsFirst bool
	// position is that of the key in the rows, of which the first visible
	// columns are the result; 0 for all of them.
	position, visible int
}

func (k sortKey) compare(a, b value) int {
	switch {
	case a.isNull() && b.isNull():
		return 0
	case a.isNull() != b.isNull():
		if a.isNull() == k.nullsFirst {
			return -1
		}
		return 1
	case k.descending:
		return -compare(a, b)
	}
	return compare(a, b)
}

// sortRows reads all rows and returns them in order.
func sortRows(in rows, keys []sortKey) (rows, error) {
	defer in.close()
	var all [][]value
	for {
		row, err := in.next()
		if err != nil {
			return nil, err
		}
		if row == nil {
			break
		}
		all = append(all, slices.Clone(row))
	}
	slices.SortStableFunc(all, func(a, b []value) int {
		for _, k := range keys {
			if d := k.compare(a[k.position], b[k.position]); d != 0 {
				return d
			}
		}
		return 0
	})
	return &sorted{all: all, visible: keys[0].visible}, nil
}

type sorted struct {
	all     [][]value
	visible int
}

func (s *sorted) next() ([]value, error) {
	if len(s.all) == 0 {
		return nil, nil
	}
	row := s.all[0]
	s.all = s.all[1:]
	if s.visible > 0 {
		row = row[:s.visible]
	}
	return row, nil
}

func (s *sorted) close() { s.all = nil }

// group is one group of GROUP BY: its first row stands for the grouped
// expressions.
type group struct {
	rows         [][]value
	versions     []*version
	accumulators []accumulator
}

// gather reads all rows into groups, and returns one row for each.
func (bp *blockPlan) gather(j *joiner) (rows, error) {
	defer j.close()
	groups := map[string]*group{}
	var order []*group
	if len(bp.keys) == 0 {
		// Without GROUP BY there is one group, even of no rows.
		order = append(order, &group{rows: make([][]value, len(j.frame.rows)), versions: make([]*version, len(j.frame.rows)),
			accumulators: make([]accumulator, len(bp.grouping.all))})
		groups[""] = order[0]
	}
	for {
		ok, err := j.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		g, err := bp.groupOf(j.frame, groups)
		if err != nil {
			return nil, err
		}
		if g.accumulators == nil {
			g.accumulators = make([]accumulator, len(bp.grouping.all))
			order = append(order, g)
		}
		for i, a := range bp.grouping.all {
			if err := a.add(&g.accumulators[i], j.frame); err != nil {
				return nil, err
			}
		}
	}
	return bp.results(j.frame, order)
}

func (bp *blockPlan) groupOf(f *frame, groups map[string]*group) (*group, error) {
	keys := make([]value, len(bp.keys))
	for i, n := range bp.keys {
		var err error
		if keys[i], err = n.eval(f); err != nil {
			return nil, err
		}
	}
	name := ""
	if len(keys) > 0 {
		name = keyOfRow(keys)
	}
	g := groups[name]
	if g == nil {
		g = &group{rows: make([][]value, len(f.rows)), versions: slices.Clone(f.versions)}
		for i, row := range f.rows {
			g.rows[i] = slices.Clone(row)
		}
		groups[name] = g
	}
	return g, nil
}

func (bp *blockPlan) results(f *frame, groups []*group) (rows, error) {
	out := &sorted{}
	for _, g := range groups {
		f.rows, f.versions = g.rows, g.versions
		f.groups = make([]value, len(bp.grouping.all))
		for i, a := range bp.grouping.all {
			f.groups[i] = a.result(&g.accumulators[i])
		}
		if bp.having != nil {
			v, err := bp.having.eval(f)
			if err != nil {
				return nil, err
			}
			if !v.isTrue() {
				continue
			}
		}
		row := make([]value, len(bp.items)+len(bp.sort))
		if err := bp.project(f, row); err != nil {
			return nil, err
		}
		out.all = append(out.all, row)
	}
	return out, nil
}

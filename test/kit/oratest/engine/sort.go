package engine

import "slices"

// sortKey is one column of ORDER BY.
type sortKey struct {
	node       *node
	descending bool
	// position is that of the key in the rows, of which the first visible
	// columns are the result; 0 for all of them.
	position, visible int
}

func (k sortKey) compare(a, b value) int {
	switch {
	case a.isNull() && b.isNull():
		return 0
	case a.isNull() != b.isNull():
		if a.isNull() == k.descending {
			return -1
		}
		return 1
	case k.descending:
		return -compare(a, b)
	}
	return compare(a, b)
}

// sortRows reads all rows and returns them in order.
func sortRows(in rows, keys []sortKey) rows {
	defer in.close()
	var all [][]value
	for row := in.next(); row != nil; row = in.next() {
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
	return &sorted{all: all, visible: keys[0].visible}
}

type sorted struct {
	all     [][]value
	visible int
}

func (s *sorted) next() []value {
	if len(s.all) == 0 {
		return nil
	}
	row := s.all[0]
	s.all = s.all[1:]
	if s.visible > 0 {
		row = row[:s.visible]
	}
	return row
}

func (s *sorted) close() { s.all = nil }

// gather reads all rows into the aggregates, and returns the one row of those.
func (bp *blockPlan) gather(j *joiner) rows {
	defer j.close()
	accumulators := make([]accumulator, len(bp.grouping.all))
	for j.next() {
		for i, a := range bp.grouping.all {
			a.add(&accumulators[i], j.frame)
		}
	}
	j.frame.groups = make([]value, len(accumulators))
	for i, a := range bp.grouping.all {
		j.frame.groups[i] = a.result(&accumulators[i])
	}
	row := make([]value, len(bp.items)+len(bp.sort))
	bp.project(j.frame, row)
	return &sorted{all: [][]value{row}, visible: len(bp.items)}
}

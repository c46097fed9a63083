package engine

import "slices"

// sortKey is one column of ORDER BY.
type sortKey struct {
	node       *node
	descending bool
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

// sorted reads all rows, which have the sort's columns behind the visible ones, and returns
// them in order.
func (bp *blockPlan) sorted(in rows) rows {
	defer in.close()
	var all [][]value
	for row := in.next(); row != nil; row = in.next() {
		all = append(all, slices.Clone(row))
	}
	visible := len(bp.items)
	slices.SortStableFunc(all, func(a, b []value) int {
		for i, k := range bp.sort {
			if d := k.compare(a[visible+i], b[visible+i]); d != 0 {
				return d
			}
		}
		return 0
	})
	return &sorted{all: all, visible: visible}
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
	return row[:s.visible]
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

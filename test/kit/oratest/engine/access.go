package engine

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// access is how a block reads one source.
type access struct {
	table   *table
	virtual *virtual
	query   *compiledQuery
	// filters are conditions that can be evaluated once the source has a row.
	filters []*node
	// index is what serves, or nil; equal, low and high are its bounds.
	index        *index
	equal        []*node
	low, high    *node
	above, below bool
	notNull      bool
	// nothing says that the column behind equal is NULL.
	nothing bool
}

func (bp *blockPlan) add(a *access) int {
	if len(bp.accesses) == 64 {
		panic(unimplemented("more than 64 tables"))
	}
	bp.accesses = append(bp.accesses, a)
	return len(bp.accesses) - 1
}

// choose finds the index for each table, and whether one of them spares the
// sort.
func (bp *blockPlan) choose() {
	for slot, a := range bp.accesses {
		if a.table == nil {
			continue
		}
		best, none := 0, *a
		for _, x := range a.table.def().indexes {
			if !x.ordered() {
				continue
			}
			try := none
			score := try.match(x, slot)
			if slot == 0 && bp.orderedBy(&try) {
				score += 2
			}
			if score > best {
				best = score
				*a = try
			}
		}
	}
	if len(bp.accesses) > 0 && bp.accesses[0].index != nil && bp.orderedBy(bp.accesses[0]) {
		bp.sort = nil
	}
}

// match sets the bounds that the conditions give for an index, and says how
// much they help; 0 for not at all.
func (a *access) match(x *index, slot int) int {
	conditions := a.filters
	a.index = x
	for _, position := range x.columns {
		n := bound(conditions, slot, position, "=")
		if n == nil {
			break
		}
		a.equal = append(slices.Clip(a.equal), n)
	}
	score := 4 * len(a.equal)
	if len(a.equal) == len(x.columns) {
		if x.unique {
			score += 4
		}
		return score
	}
	position := x.columns[len(a.equal)]
	if n := bound(conditions, slot, position, ">"); n != nil {
		a.low, a.above = n, true
	} else if n := bound(conditions, slot, position, ">="); n != nil {
		a.low = n
	}
	if n := bound(conditions, slot, position, "<"); n != nil {
		a.high, a.below = n, true
	}
	if a.low != nil || a.high != nil {
		return score + 3
	}
	if bound(conditions, slot, position, "IS NULL") != nil && (len(a.equal) > 0 || x.total(a.table)) {
		a.nothing = true
		return score + 3
	}
	a.notNull = bound(conditions, slot, position, "IS NOT NULL") != nil
	return score
}

// bound finds a condition that compares a bare column with something that is
// known before the source is read.
func bound(conditions []*node, slot, position int, op string) *node {
	known := uint64(1)<<slot - 1
	for _, n := range conditions {
		cmp := n.comparison
		if cmp == nil {
			continue
		}
		if is(cmp.left, slot, position) && cmp.op == op {
			if cmp.right == nil {
				return cmp.left
			}
			if cmp.right.fixed(known) {
				return cmp.blanks(cmp.right, cmp.left.typ.size)
			}
		}
	}
	return nil
}

// blanks brings a bound to the length of the CHAR column that it is compared
// with, where blanks at the end do not matter.
func (cmp *comparison) blanks(n *node, size int) *node {
	if !cmp.left.typ.padded() || !cmp.right.typ.padded() {
		return n
	}
	return derived(n.typ, n, func(v value) value {
		v.s = strings.TrimRight(v.s, " ")
		v.s += strings.Repeat(" ", max(size-utf8.RuneCountInString(v.s), 0))
		return v
	})
}

func is(n *node, slot, position int) bool {
	return n.column != nil && n.column.slot == slot && n.column.index == position
}

// orderedBy says whether the index of an access returns the rows in the order
// of the block: the sort's columns follow the ones that are equal for all rows,
// all ascending, and no row is missing from the index.
func (bp *blockPlan) orderedBy(a *access) bool {
	if len(bp.sort) == 0 || bp.grouping != nil || a.index == nil || !a.complete() {
		return false
	}
	next := a.index.columns[len(a.equal):]
	for i, k := range bp.sort {
		if k.descending || i >= len(next) || !is(k.node, 0, next[i]) {
			return false
		}
	}
	return true
}

// complete says that all rows of the table that can match are in the index: a
// key of nothing but NULL is not.
func (a *access) complete() bool {
	return len(a.equal) > 0 || a.bounded() || a.index.total(a.table)
}

// bounded says that keys whose next column is NULL are left out.
func (a *access) bounded() bool { return a.low != nil || a.high != nil || a.notNull }

// total says that the index has all rows, since its key is never NULL
// throughout.
func (x *index) total(t *table) bool {
	return slices.ContainsFunc(x.columns, func(c int) bool { return !t.def().columns[c].nullable })
}

package engine

import (
	"slices"
	"sort"
)

// index is a B-tree for all that can be seen of it: the versions in the order of their
// keys. Its table's lock guards the fields that change.
type index struct {
	owner, name string
	columns     []int // positions in the table
	descending  []bool
	unique      bool
	primary     bool // of the primary key
	storage     indexStorage

	entries []*version
	// shared says that a reader may hold entries, which are copied before a change.
	shared bool
}

// indexStorage is what CREATE INDEX says behind the columns, as the catalogue shows
// it. The zero value is a B-tree of the whole table.
type indexStorage struct {
	reverse, bitmap, local, invisible, unusable bool
	// rows says that the index holds the rows of its table.
	rows bool
}

// kind is INDEX_TYPE of the catalogue.
func (s indexStorage) kind() string {
	switch {
	case s.rows:
		return "IOT - TOP"
	case s.bitmap:
		return "BITMAP"
	case s.reverse:
		return "NORMAL/REV"
	}
	return "NORMAL"
}

// ordered says that the optimizer may read the index for its order. One with a descending
// column is there for the catalogue alone.
func (x *index) ordered() bool {
	s := x.storage
	return !s.reverse && !s.bitmap && !s.local && !s.invisible && !s.unusable && !slices.Contains(x.descending, true)
}

// compareKeys orders versions by their keys, and equal keys by their rows.
func (x *index) compareKeys(a, b *version) int {
	for _, c := range x.columns {
		if d := compareNullsLast(cell(a.values, c), cell(b.values, c)); d != 0 {
			return d
		}
	}
	return order(int64(a.id), int64(b.id))
}

// own makes room for n more entries, where no reader sees them.
func (x *index) own(n int) {
	if x.shared {
		x.entries, x.shared = append(make([]*version, 0, len(x.entries)+max(n, len(x.entries)/4)), x.entries...), false
	}
}

func (x *index) insert(v *version) {
	x.own(1)
	i := sort.Search(len(x.entries), func(i int) bool { return x.compareKeys(x.entries[i], v) > 0 })
	x.entries = slices.Insert(x.entries, i, v)
}

// load adds many versions at once.
func (x *index) load(versions []*version) {
	x.own(len(versions))
	x.entries = append(x.entries, versions...)
	slices.SortFunc(x.entries, x.compareKeys)
}

// equal returns the versions that have the key of values.
func (x *index) equal(values []value) []*version {
	s := &span{}
	for _, c := range x.columns {
		s.equal = append(s.equal, cell(values, c))
	}
	return x.within(s)
}

// comparePrefix compares the first columns of a version's key with a prefix.
func (x *index) comparePrefix(v *version, prefix []value) int {
	for i := range prefix {
		if d := compareNullsLast(cell(v.values, x.columns[i]), prefix[i]); d != 0 {
			return d
		}
	}
	return 0
}

// span is a part of an index: the keys that begin with all of equal, and in the
// next column lie between low and high. A NULL bound is none.
type span struct {
	equal     []value
	low, high value
	// above and below say that the bound itself is outside.
	above, below bool
	// notNull leaves out keys that are NULL in that next column, nothing leaves
	// out all others.
	notNull, nothing bool
}

// place says where a version lies: before the span (-1), in it, or behind it.
func (x *index) place(v *version, s *span) int {
	if d := x.comparePrefix(v, s.equal); d != 0 {
		return d
	}
	n := len(s.equal)
	if n == len(x.columns) || s.low.isNull() && s.high.isNull() && !s.notNull && !s.nothing {
		return 0
	}
	key := cell(v.values, x.columns[n])
	switch {
	case key.isNull() && s.nothing:
		return 0
	case key.isNull():
		return 1
	case s.nothing:
		return -1
	}
	if !s.low.isNull() {
		if d := compare(key, s.low); d < 0 || d == 0 && s.above {
			return -1
		}
	}
	if !s.high.isNull() {
		if d := compare(key, s.high); d > 0 || d == 0 && s.below {
			return 1
		}
	}
	return 0
}

// within returns the entries of a span, in their order.
func (x *index) within(s *span) []*version {
	from := sort.Search(len(x.entries), func(i int) bool { return x.place(x.entries[i], s) >= 0 })
	to := from + sort.Search(len(x.entries)-from, func(i int) bool { return x.place(x.entries[from+i], s) > 0 })
	return x.entries[from:to:to]
}

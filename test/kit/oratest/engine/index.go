package engine

import (
	"slices"
	"sort"
)

// youngLimit is how many entries an index sorts in by moving others.
const youngLimit = 1024

// index is a B-tree for all that can be seen of it: sorted runs that never
// change, so that a reader needs no lock, and a short one for new entries,
// which is copied before a change if a reader may hold it. Its table's lock
// guards the fields that change.
type index struct {
	owner, name string
	id          int
	columns     []int // positions in the table
	descending  []bool
	unique      bool
	storage     indexStorage
	// constraint is the name of the constraint that the index serves, or "".
	constraint string

	runs   [][]*version
	young  []*version
	shared bool // a reader may hold young
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

// ordered says that the optimizer may read the index for its order.
func (s indexStorage) ordered() bool {
	return !s.reverse && !s.bitmap && !s.local && !s.invisible && !s.unusable
}

// compareKeys orders versions by their keys, and equal keys by their rows.
func (x *index) compareKeys(a, b *version) int {
	for i, c := range x.columns {
		if d := compareNullsLast(at(a.values, c), at(b.values, c)); d != 0 {
			if x.descending[i] {
				return -d
			}
			return d
		}
	}
	return order(int64(a.id), int64(b.id))
}

// at is a value of a row, which is shorter than its table where columns were
// added later.
func at(values []value, i int) value {
	if i < len(values) {
		return values[i]
	}
	return null
}

func (x *index) insert(v *version) {
	if x.shared {
		x.young, x.shared = slices.Clone(x.young), false
	}
	i := sort.Search(len(x.young), func(i int) bool { return x.compareKeys(x.young[i], v) > 0 })
	x.young = slices.Insert(x.young, i, v)
	if len(x.young) >= youngLimit {
		x.push(x.young)
		x.young = nil
	}
}

// push adds a sorted run, and merges runs so that only a few remain.
func (x *index) push(run []*version) {
	for n := len(x.runs); n > 0 && len(x.runs[n-1]) <= 2*len(run); n = len(x.runs) {
		run = x.merge(x.runs[n-1], run)
		x.runs = x.runs[:n-1]
	}
	x.runs = append(slices.Clip(x.runs), run)
}

func (x *index) merge(a, b []*version) []*version {
	all := make([]*version, 0, len(a)+len(b))
	if len(a) > 0 && len(b) > 0 && x.compareKeys(a[len(a)-1], b[0]) <= 0 {
		return append(append(all, a...), b...)
	}
	for len(a) > 0 && len(b) > 0 {
		if x.compareKeys(a[0], b[0]) <= 0 {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}

// load adds many versions at once.
func (x *index) load(versions []*version) {
	run := slices.Clone(versions)
	if !slices.IsSortedFunc(run, x.compareKeys) {
		slices.SortFunc(run, x.compareKeys)
	}
	x.push(run)
}

// slices returns the runs as they are now.
func (x *index) sorted() [][]*version {
	x.shared = true
	if len(x.young) == 0 {
		return slices.Clone(x.runs)
	}
	return append(slices.Clone(x.runs), x.young)
}

// equal calls f with each version that has the key of values, of which no
// column is NULL.
func (x *index) equal(values []value, f func(*version) bool) {
	key := make([]value, len(x.columns))
	for i, c := range x.columns {
		key[i] = at(values, c)
	}
	for _, run := range append(slices.Clip(x.runs), x.young) {
		i := sort.Search(len(run), func(i int) bool { return x.comparePrefix(run[i], key) >= 0 })
		for ; i < len(run) && x.comparePrefix(run[i], key) == 0; i++ {
			if !f(run[i]) {
				return
			}
		}
	}
}

// comparePrefix compares the first columns of a version's key with a prefix.
func (x *index) comparePrefix(v *version, prefix []value) int {
	for i := range prefix {
		if d := compareNullsLast(at(v.values, x.columns[i]), prefix[i]); d != 0 {
			if x.descending[i] {
				return -d
			}
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
	backwards    bool
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
	sign := 1
	if x.descending[n] {
		sign = -1
	}
	key := at(v.values, x.columns[n])
	switch {
	case key.isNull() && s.nothing:
		return 0
	case key.isNull():
		return sign
	case s.nothing:
		return -sign
	}
	if !s.low.isNull() {
		if d := compare(key, s.low); d < 0 || d == 0 && s.above {
			return -sign
		}
	}
	if !s.high.isNull() {
		if d := compare(key, s.high); d > 0 || d == 0 && s.below {
			return sign
		}
	}
	return 0
}

// walk reads a span of an index in order, run by run side by side.
type walk struct {
	runs      [][]*version // what is left of each, within the span
	index     *index
	backwards bool
}

func (x *index) walk(s *span) *walk {
	w := &walk{index: x, backwards: s.backwards}
	for _, run := range x.sorted() {
		from := sort.Search(len(run), func(i int) bool { return x.place(run[i], s) >= 0 })
		to := from + sort.Search(len(run)-from, func(i int) bool { return x.place(run[from+i], s) > 0 })
		if from < to {
			w.runs = append(w.runs, run[from:to])
		}
	}
	return w
}

// next returns nil at the end.
func (w *walk) next() *version {
	best := -1
	var found *version
	for i, run := range w.runs {
		v := run[0]
		if w.backwards {
			v = run[len(run)-1]
		}
		if found == nil || (w.index.compareKeys(v, found) < 0) != w.backwards {
			best, found = i, v
		}
	}
	if best < 0 {
		return nil
	}
	run := w.runs[best]
	if w.backwards {
		run = run[:len(run)-1]
	} else {
		run = run[1:]
	}
	if len(run) == 0 {
		w.runs = slices.Delete(w.runs, best, best+1)
	} else {
		w.runs[best] = run
	}
	return found
}

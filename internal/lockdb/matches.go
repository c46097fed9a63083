package lockdb

import (
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/observer"
)

// matches brings the rows that a look-up finds, in any order, in that of its keys.
type matches struct {
	keys []string
	rows []observer.Observed
	// order are the places of the keys in ascending order, next the one in it that follows the
	// last match: rows mostly come in the order of an index.
	order []int
	next  int
}

func (m *matches) reset(keys []string) {
	m.keys, m.next = keys, 0
	m.rows, m.order = slices.Grow(m.rows[:0], len(keys))[:len(keys)], slices.Grow(m.order[:0], len(keys))[:len(keys)]
	clear(m.rows)
	for i := range m.order {
		m.order[i] = i
	}
	if !slices.IsSorted(keys) {
		slices.SortFunc(m.order, func(a, b int) int { return strings.Compare(keys[a], keys[b]) })
	}
}

// key is the one at a place of the order; empty behind the last.
func (m *matches) key(at int) string {
	if at == len(m.order) {
		return ""
	}
	return m.keys[m.order[at]]
}

// note takes a row if its key was asked for.
func (m *matches) note(o observer.Observed) {
	if m.key(m.next) != o.Key {
		m.next, _ = slices.BinarySearchFunc(m.order, o.Key, func(at int, key string) int { return strings.Compare(m.keys[at], key) })
	}
	for ; m.key(m.next) == o.Key; m.next++ {
		m.rows[m.order[m.next]] = o
	}
}

// missing are the keys of which no row was found.
func (m *matches) missing() (keys []string) {
	for _, at := range m.order {
		if m.rows[at].Version == 0 && m.keys[at] != "" {
			keys = append(keys, m.keys[at])
		}
	}
	return slices.Compact(keys)
}

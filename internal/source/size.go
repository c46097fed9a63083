package source

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/observer"
)

// defaultMaxRowBytes is what [observer.Query.MaxRowBytes] means by 0.
const defaultMaxRowBytes = 1 << 20

// MaxRowBytes is the most that the JSON of a row may have, and so the values in it.
func MaxRowBytes(q observer.Query) int { return cmp.Or(max(q.MaxRowBytes, 0), defaultMaxRowBytes) }

// ShortValue is how long a value may be that is read whatever else the row has: by
// its declared type, or as a part of the key or the timestamp, which identify a row
// that is too large.
const ShortValue = 8 << 10

// WhiteSpace is how many times as long a document may be as its JSON in an event,
// which has no white space.
const WhiteSpace = 4

// summed is how many columns share a sum of their lengths where the database cannot
// name one, see [Statements.Laterals]. The sum is written for each of them, so that the
// statement would grow with the square of their number.
const summed = 16

// Left says what of a row is left behind in its database, because it is too long to
// be read. It is the value of an item behind those of the columns, see
// [Statements.Leaves].
type Left int

// The parts of a row. They are added.
const (
	LeftData Left = 1 << iota
	LeftKey
	LeftTimestamp
)

// ReadLeft reads the item as text.
func ReadLeft(text []byte) Left { return Left(Number(text)) }

// sizes are what a select list says of the lengths of values.
type sizes struct {
	// fits is for each column the condition under which it is read; empty without one.
	fits []string
	// over are the conditions under which parts of the row are left behind.
	over map[Left][]string
	// join follows FROM.
	join string
}

// sizes bounds the long columns of the data by the sum of their lengths, and those of
// the key and the timestamp one by one. The sum is looked at only where one of the
// columns is longer than its share, unless it has a name: that is computed once a row.
func (w Statements) sizes() sizes {
	s, most := w.Selection, MaxRowBytes(w.Query)
	z := sizes{fits: make([]string, len(s.Columns)), over: make(map[Left][]string)}
	var data []int
	for i, c := range s.Columns {
		fits, length := w.Size(c, w.qualified(c.Name), ShortValue)
		part := LeftData
		switch {
		case length == "":
			continue
		case slices.Contains(s.Key, i):
			part = LeftKey
		case i == s.Timestamp:
			part = LeftTimestamp
		}
		if part == LeftData {
			data = append(data, i)
			continue
		}
		z.fits[i] = fits
		z.over[part] = append(z.over[part], "NOT ("+fits+")")
	}
	groups := summed
	if w.Laterals {
		groups = max(groups, len(data))
	}
	for group := range slices.Chunk(data, groups) {
		fits, lengths := make([]string, len(group)), make([]string, len(group))
		for n, i := range group {
			c := s.Columns[i]
			fits[n], lengths[n] = w.Size(c, w.qualified(c.Name), most/len(data))
			lengths[n] = "COALESCE(" + lengths[n] + ", 0)"
		}
		sum, named := strings.Join(lengths, w.operator("+", Column{})), len(group) > summed
		if named {
			z.join, sum = Lateral(sum+" AS bytes", "s"), "s.bytes"
		}
		within := fmt.Sprintf("%s%s%d", sum, w.operator("<=", Column{}), most)
		over := fmt.Sprintf("%s%s%d", sum, w.operator(">", Column{}), most)
		if !named {
			over = "NOT (" + strings.Join(fits, " AND ") + ") AND " + over
		}
		for n, i := range group {
			z.fits[i] = within
			if !named {
				z.fits[i] = fits[n] + " OR " + within
			}
		}
		z.over[LeftData] = append(z.over[LeftData], over)
	}
	return z
}

// left writes the item that says what is left behind; empty where nothing can be.
func (w Statements) left(z sizes) string {
	var terms []string
	for _, part := range []Left{LeftData, LeftKey, LeftTimestamp} {
		if over := z.over[part]; len(over) > 0 {
			terms = append(terms, fmt.Sprintf("CASE WHEN %s THEN %d ELSE 0 END", strings.Join(over, " OR "), part))
		}
	}
	return strings.Join(terms, w.operator("+", Column{}))
}

// Leaves reports whether rows have an item behind those of their columns, which says
// what is left behind.
func (w Statements) Leaves() bool { return !w.Lengths && w.left(w.sizes()) != "" }

// items writes the select list.
func (w Statements) items(z sizes) []string {
	var items []string
	for i, c := range w.Selection.Columns {
		item := w.Column(c, w.qualified(c.Name))
		if z.fits[i] != "" {
			item = "CASE WHEN " + z.fits[i] + " THEN " + item + " END"
		}
		items = append(items, w.Item(i, c, item))
	}
	if left := w.left(z); left != "" && !w.Lengths {
		items = append(items, left)
	}
	return items
}

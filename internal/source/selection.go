package source

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
)

// Selection is a query whose names were found among the columns.
type Selection struct {
	// Columns are those to select: the Data first columns make the event's
	// data, the others are read for the key or the timestamp alone.
	Columns []Column
	Data    int
	// Key are the indexes of the key's columns in Columns, in the key's order.
	Key []int
	// Timestamp is the index of the timestamp in Columns, or -1.
	Timestamp int
	hashKey   *observer.HashKey
}

// CheckQuery reports what makes a query unfit for any database. A name with a
// NUL is refused here, since a database would silently cut it off there.
func CheckQuery(q observer.Query) error {
	if (q.Table == "") == (q.SQL == "") {
		return errors.New("exactly one of table and query must be set")
	}
	names := append([]string{q.Table, q.SQL, q.Timestamp}, q.Key...)
	for _, name := range append(names, q.Columns...) {
		if strings.ContainsRune(name, 0) {
			return errors.New("a name of the query contains a NUL character")
		}
	}
	return nil
}

// Select finds the columns that q names. in is where they were looked for, for
// the message of a [MissingError].
func Select(q observer.Query, columns []Column, in string) (Selection, error) {
	if name, twice := duplicate(columns); twice {
		return Selection{}, fmt.Errorf("the query returns two columns named %q", name)
	}
	if len(q.Key) == 0 {
		return Selection{}, errors.New("the key has no column")
	}
	columns, err := redacted(q, columns, in)
	if err != nil {
		return Selection{}, err
	}
	s := Selection{Timestamp: -1, hashKey: q.HashKey}
	for _, name := range q.Columns {
		if _, err := s.add(name, columns, in); err != nil {
			return Selection{}, err
		}
	}
	if len(q.Columns) == 0 {
		s.Columns = slices.DeleteFunc(slices.Clone(columns), func(c Column) bool { return c.Redact == observer.RedactDrop })
	}
	if err := s.sort(q.Order); err != nil {
		return Selection{}, err
	}
	s.Data = len(s.Columns)
	for _, name := range q.Key {
		i, err := s.add(name, columns, in)
		if err != nil {
			return Selection{}, err
		}
		s.Key = append(s.Key, i)
	}
	if q.Timestamp == "" {
		return s, nil
	}
	s.Timestamp, err = s.add(q.Timestamp, columns, in)
	return s, err
}

// sort puts the columns in the order of a stream, those that are new to it last.
func (s *Selection) sort(order string) error {
	names, err := observer.DecodeOrder(order)
	places := make(map[string]int, len(names))
	for i, name := range names {
		places[name] = i - len(names)
	}
	slices.SortStableFunc(s.Columns, func(a, b Column) int { return places[a.Name] - places[b.Name] })
	return err
}

// redacted returns the columns with what becomes of them.
func redacted(q observer.Query, columns []Column, in string) ([]Column, error) {
	if len(q.Redact) == 0 {
		return columns, nil
	}
	all := slices.Clone(columns)
	for _, name := range slices.Sorted(maps.Keys(q.Redact)) {
		column, err := find(name, columns, in)
		if err != nil {
			return nil, err
		}
		r := q.Redact[name]
		switch {
		case r == observer.RedactHash && q.HashKey == nil:
			return nil, fmt.Errorf("there is no key to hash column %s by", column.Name)
		case r != observer.RedactHash && slices.ContainsFunc(q.Key, func(name string) bool { k, err := find(name, columns, in); return err == nil && k.Name == column.Name }):
			return nil, fmt.Errorf("column %s is of the key, which tells rows apart, and cannot be redacted by %s; set hash at redact, or other columns at key", column.Name, r)
		}
		i := slices.IndexFunc(all, func(c Column) bool { return c.Name == column.Name })
		all[i].Redact = r
	}
	return all, nil
}

// add returns the index of the column, which is appended unless it is there.
func (s *Selection) add(name string, columns []Column, in string) (int, error) {
	column, err := find(name, columns, in)
	if err != nil {
		return 0, err
	}
	if i := slices.IndexFunc(s.Columns, func(c Column) bool { return c.Name == column.Name }); i >= 0 {
		return i, nil
	}
	s.Columns = append(s.Columns, column)
	return len(s.Columns) - 1, nil
}

// find prefers the exact name and accepts another case when it is unambiguous:
// databases fold the case of unquoted names, each in its own direction.
func find(name string, columns []Column, in string) (Column, error) {
	if exact, ok := fn.Find(columns, func(c Column) bool { return c.Name == name }); ok {
		return exact, nil
	}
	folded := fn.Only(columns, func(c Column) bool { return strings.EqualFold(c.Name, name) })
	if len(folded) == 1 {
		return folded[0], nil
	}
	names := fn.Each(columns, func(c Column) string { return c.Name })
	return Column{}, Missing("column", name, in, names).Fault()
}

func duplicate(columns []Column) (string, bool) {
	seen := make(map[string]bool, len(columns))
	for _, c := range columns {
		if seen[c.Name] {
			return c.Name, true
		}
		seen[c.Name] = true
	}
	return "", false
}

// ErrNoTimestamp says that a query has no timestamp to write a cursor of.
var ErrNoTimestamp = errors.New("the query has no timestamp")

// lengths are the modifiers of a type, as in "timestamp(6) with time zone".
var lengths = regexp.MustCompile(`\s*\([^)]*\)`)

// WithoutLengths is a type without them.
func WithoutLengths(name string) string { return lengths.ReplaceAllString(name, "") }

// Members are the columns of the data for [observer.Rows].
func (s Selection) Members() []observer.Column {
	return fn.Each(s.Columns[:s.Data], func(c Column) observer.Column { return c.plain().Redacted(c.Redact) })
}

// KeyColumns are the columns of the key for [observer.Rows].
func (s Selection) KeyColumns() []observer.KeyColumn {
	return fn.Each(s.Key, func(i int) observer.KeyColumn {
		c := s.Columns[i]
		if c.Redact == observer.RedactHash {
			return observer.KeyColumn{Column: c.plain()}.Hashed(s.hashKey)
		}
		return observer.KeyColumn{Column: c.plain(), Rule: c.KeyRule, Width: c.KeyWidth, Encoding: c.Encoding}
	})
}

// EventMembers are the columns in the data of an event.
func (s Selection) EventMembers() []events.Member {
	var members []events.Member
	for i, c := range s.Columns {
		if inKey := slices.Contains(s.Key, i); i < s.Data || inKey {
			members = append(members, c.member(inKey))
		}
	}
	return members
}

func (c Column) member(inKey bool) events.Member {
	m := events.Member{Name: c.Name, Description: c.Type, Encoding: c.Encoding, Nullable: c.Nullable, Key: inKey}
	switch c.Redact {
	case observer.RedactHash:
		m.Encoding = events.EncodingHash
	case observer.RedactMask:
		m.Encoding, m.Nullable = events.EncodingMask, false
	case observer.RedactDrop:
	}
	return m
}

// plain is a column without the lengths of its type.
func (c Column) plain() observer.Column {
	return observer.Column{Name: c.Name, Type: WithoutLengths(c.Type)}
}

// keyHashed reports whether a column of the key is hashed. A read cannot go on from such
// a key, and no other text of it leaves the source.
func (s Selection) keyHashed() bool {
	return slices.ContainsFunc(s.Key, func(i int) bool { return s.Columns[i].Redact == observer.RedactHash })
}

// KeyOrder returns the parts of the key, by their place in Key, in the order of an
// index that begins with them; nil for none, and for a hashed key. indexes are the
// columns of each.
func (s Selection) KeyOrder(indexes [][]string) []int {
	if s.keyHashed() {
		return nil
	}
	key := s.KeyNames()
	for _, columns := range indexes {
		if len(columns) < len(key) {
			continue
		}
		order := make([]int, 0, len(key))
		for _, name := range columns[:len(key)] {
			if n := slices.Index(key, name); n >= 0 && !slices.Contains(order, n) {
				order = append(order, n)
			}
		}
		if len(order) == len(key) {
			return order
		}
	}
	return nil
}

// KeyIndex is an index by which a table is read, and the parts of the key in its
// order; nil for none.
type KeyIndex struct {
	Name  string
	Parts []int
}

// TieOrder returns the parts of the key by which rows that share a timestamp are
// ordered, by their place in Key; empty for none.
func (s Selection) TieOrder() []int {
	return fn.Only(fn.Indexes(len(s.Key)), func(part int) bool { return s.Key[part] != s.Timestamp })
}

// OrderID identifies the order of parts of the key by the columns in it; empty for
// none, and for a hashed key. more is what else decides on the order of a column, such
// as its collation; nil for nothing.
func (s Selection) OrderID(parts []int, more func(c Column) string) string {
	if s.keyHashed() {
		return ""
	}
	columns := make([]string, len(parts))
	for i, part := range parts {
		c := s.Columns[s.Key[part]]
		columns[i] = Quote(c.Name) + " " + c.Type
		if more != nil {
			columns[i] += " " + more(c)
		}
	}
	return strings.Join(columns, ", ")
}

// CheckOrder fails unless a read that goes on from a key, or is by key, is in the
// order that it is asked for. byKey and ties identify the orders of keys in which it would be,
// by key or by timestamps; empty for one in which no read goes on.
func CheckOrder(in observer.Range, byKey, ties string) error {
	id := ties
	if in.ByKey {
		id = byKey
	}
	other := id == "" || in.Order != "" && in.Order != id
	switch {
	case in.Part == observer.PartKey: // It has no order.
		return nil
	case in.ByKey && other:
		return ErrNoKeyOrder
	case in.Key != "" && other:
		return errOtherTies
	}
	return nil
}

// SplitKey returns the parts of a key that was read; nil for the empty key.
func (s Selection) SplitKey(key string) ([]string, error) {
	if key == "" {
		return nil, nil
	}
	parts := observer.SplitKey(key, len(s.Key))
	if len(parts) != len(s.Key) {
		return nil, fmt.Errorf("the key to go on from has %d parts, not %d: has the key been changed?", len(parts), len(s.Key))
	}
	return parts, nil
}

// KeyNullable reports whether a column of the key may hold NULL.
func (s Selection) KeyNullable() bool {
	return slices.ContainsFunc(s.Key, func(i int) bool { return s.Columns[i].Nullable })
}

// ErrNoKeyOrder says that no index serves the key any more, or one of another order
// than that in which rows were to be read. The next poll looks again.
var ErrNoKeyOrder = &observer.Fault{Class: observer.ClassRetry, Err: errors.New("no index serves the key any more, or another one does; the next poll looks again")}

// errOtherTies says that rows of one timestamp come in another order than that in
// which some of them were read.
var errOtherTies = &observer.Fault{Class: observer.ClassRetry, Err: errors.New("rows of one timestamp come in another order of their keys than a moment ago, as after an ALTER TABLE; the next poll begins with the first of them")}

// KeyNames returns the names of the key's columns.
func (s Selection) KeyNames() []string {
	return fn.Each(s.Key, func(i int) string { return s.Columns[i].Name })
}

// TimestampName returns the name of the timestamp, or "".
func (s Selection) TimestampName() string {
	if s.Timestamp < 0 {
		return ""
	}
	return s.Columns[s.Timestamp].Name
}

// Quote writes an identifier as PostgreSQL, SQLite and Oracle read it.
func Quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

package source

import (
	"slices"
	"strconv"
	"strings"

	"github.com/observerd/observerd/internal/observer"
)

// Statements writes the SELECTs of one read in the dialect of a database. All
// of them see one snapshot.
type Statements struct {
	// From is what follows FROM: a quoted table, or a query in parentheses. Its
	// alias is q.
	From string
	// Quote writes an identifier; nil means [Quote].
	Quote func(name string) string
	// Column writes what is selected for a column, of which it is given the
	// qualified name; nil means that name. It is used nowhere else: an
	// expression in WHERE or ORDER BY would keep the index from serving.
	Column func(c Column, qualified string) string
	// Size writes, for a column whose values may be long, the condition that one is
	// not longer than most, and its length: no more than what it adds to the JSON of
	// the row. Both are empty for a column whose type keeps it shorter than
	// [ShortValue], and NULL for NULL. The condition may hold for a value that is
	// longer by a constant factor. nil means that all columns are short.
	Size func(c Column, qualified string, most int) (fits, length string)
	// MaxLength is how long the long columns of a row may be together; what is longer
	// is left behind.
	MaxLength int
	// Sum names an expression over a row, and writes what follows FROM for that; nil
	// where the database cannot do so.
	Sum func(expression string) (join, name string)
	// Arithmetic writes an operator of numbers; nil means the operator itself.
	Arithmetic func(operator string) string
	// Item writes the n-th item of the select list, from 0. nil means the value alone,
	// and one item more, see [Statements.Leaves].
	Item func(n int, c Column, value string) string
	// Lateral follows the alias of From.
	Lateral string
	// Bound writes the n-th bound, from 1, as a value of the timestamp's type.
	// nil means $1, $2.
	Bound func(n int) string
	// KeyBound writes the n-th bound, from 1, as a value of a column of the key. nil
	// means $1, $2.
	KeyBound func(n int, c Column) string
	// Operator writes an operator, such as >=, that has the column on its left; nil
	// means the operator itself.
	Operator func(operator string, c Column) string
	// Within are more conditions of a read in the order of timestamps, whose bounds are
	// those of in; nil means none. timestamp is the qualified name.
	Within func(timestamp string, in observer.Range) []string
	// Opaque writes the condition from which [Statements.Apart] begins so that no index
	// serves it; nil means as it is.
	Opaque func(condition string) string
	// Rows says that the database compares rows, and that an index serves that:
	// (a, b) >= ($1, $2). Its operator is that of the first column.
	Rows bool
	// NullsLast says that NULL comes behind all values.
	NullsLast bool
	// NullByKey says that rows without a timestamp are to be ordered by the key alone for
	// an index on both to serve; PostgreSQL does not see that they share one.
	NullByKey bool
	// KeyHint is written behind the alias of a read by key.
	KeyHint string
	// Limit ends a statement that has an order after so many rows; nil means
	// LIMIT.
	Limit func(statement string, rows int) string
}

// HasUndated reports whether there may be rows without a timestamp that the query asks
// for.
func HasUndated(q observer.Query, s Selection) bool {
	return s.Timestamp >= 0 && s.Columns[s.Timestamp].Nullable && q.NullTimestamp != observer.NullSkip
}

// Nulls says where the rows without a timestamp come from.
type Nulls int

// The places of rows without a timestamp.
const (
	// NullsNowhere is a read without them.
	NullsNowhere Nulls = iota
	// NullsInRange lets the statement of the range return them.
	NullsInRange
	// NullsApart selects them by a statement of their own.
	NullsApart
)

// NullsOf says where they come from in a read. A range without bounds returns
// them along with the rest, unless it is limited: the limit is not theirs.
func NullsOf(q observer.Query, s Selection, r observer.Range) Nulls {
	switch {
	case !s.Columns[s.Timestamp].Nullable:
		return NullsInRange // There are none, and it is no condition less.
	case q.NullTimestamp == observer.NullSkip || r.Before != "" || r.Part != observer.PartAll:
		return NullsNowhere
	case r.From == "" && r.Limit == 0:
		return NullsInRange
	}
	return NullsApart
}

// Writer writes a statement of a read in a dialect. It returns what the bounds are, see
// [Statements.Range].
type Writer func(w Statements) (statement string, parts []int)

// Writers are those of a read, in the order in which they run. order is that of the
// index for a read by key, nil for none: then there are no statements. Rows without a
// timestamp come last.
func Writers(q observer.Query, s Selection, in observer.Range, order []int) []Writer {
	undated := func(from observer.Range) Writer {
		return func(w Statements) (string, []int) { return w.Nulls(s, from) }
	}
	switch {
	case in.Part == observer.PartKey:
		return []Writer{func(w Statements) (string, []int) { return w.OfKey(q, s) }}
	case in.ByKey && order == nil:
		return nil
	case in.ByKey:
		return []Writer{func(w Statements) (string, []int) { return w.ByKey(q, s, in, order) }}
	case s.Timestamp < 0:
		return []Writer{func(w Statements) (string, []int) { return w.All(s), nil }}
	case in.Part == observer.PartUndated:
		return []Writer{undated(in)}
	}
	nulls := NullsOf(q, s, in)
	writers := []Writer{func(w Statements) (string, []int) { return w.Range(s, in, nulls != NullsInRange) }}
	if nulls == NullsApart {
		writers = append(writers, undated(observer.Range{}))
	}
	return writers
}

// Texts joins statements for people.
func Texts[S any](steps []S, text func(S) string) string {
	texts := make([]string, len(steps))
	for i, s := range steps {
		texts[i] = text(s)
	}
	return strings.Join(texts, ";\n")
}

// What a bound of a range is, if it is no part of a key.
const (
	// BoundFrom is that of Range.From in package observer.
	BoundFrom = -1
	// BoundBefore is that of Range.Before.
	BoundBefore = -2
)

// Range selects the rows of a range that have a timestamp, and without bounds
// those that have none where notNull is false. It orders by the qualified
// columns: an alias that was converted to text would sort the whole table,
// however good the index. It returns what the bounds are, in their order: parts of
// the key, [BoundFrom] or [BoundBefore].
func (w Statements) Range(s Selection, r observer.Range, notNull bool) (statement string, parts []int) {
	var b strings.Builder
	w.head(&b, s)
	bound := w.binder(s, &parts)
	ts := term{name: w.qualified(s.TimestampName()), column: s.Columns[s.Timestamp], part: BoundFrom}
	terms := append([]term{ts}, w.terms(s, s.TieOrder())...)
	var conditions []string
	switch {
	case r.From != "" && r.Key != "":
		conditions = append(conditions, w.atLeast(terms, bound))
	case r.From != "":
		conditions = append(conditions, w.compare(ts, ">=", bound))
	}
	if r.Before != "" {
		conditions = append(conditions, w.compare(term{name: ts.name, column: ts.column, part: BoundBefore}, "<", bound))
	}
	if w.Within != nil {
		conditions = append(conditions, w.Within(ts.name, r)...)
	}
	if len(conditions) == 0 && notNull {
		conditions = append(conditions, ts.name+" IS NOT NULL")
	}
	if len(conditions) > 0 {
		b.WriteString("\nWHERE " + strings.Join(conditions, " AND "))
	}
	b.WriteString("\nORDER BY " + names(terms))
	return w.limit(b.String(), r.Limit), parts
}

// Nulls selects the rows without a timestamp, in the order of their keys and from a
// key on. It is a statement of its own because `OR … IS NULL` in the other makes SQLite
// scan the whole index. It returns which parts of the key are bound.
func (w Statements) Nulls(s Selection, r observer.Range) (statement string, parts []int) {
	ts, key := w.qualified(s.TimestampName()), names(w.terms(s, s.TieOrder()))
	if w.NullByKey && key != "" {
		return w.Apart(s, r, ts+" IS NULL", key)
	}
	return w.Apart(s, r, ts+" IS NULL", ts, key)
}

// Apart is Nulls for rows that meet a condition, in an order.
func (w Statements) Apart(s Selection, r observer.Range, condition string, order ...string) (statement string, parts []int) {
	var b strings.Builder
	w.head(&b, s)
	b.WriteString("\nWHERE " + condition)
	if r.Key != "" {
		from := w.atLeast(w.terms(s, s.TieOrder()), w.binder(s, &parts))
		if w.Opaque != nil {
			from = w.Opaque(from)
		}
		b.WriteString(" AND " + from)
	}
	order = slices.DeleteFunc(order, func(term string) bool { return term == "" })
	b.WriteString("\nORDER BY " + strings.Join(order, ", "))
	return w.limit(b.String(), r.Limit), parts
}

// ByKey selects every row in the order of an index, see [Selection.KeyOrder], and
// from the key of the range on where that has one. It returns which parts of the key
// are bound, in the order of the bounds. Rows without a timestamp are left out where
// the query skips them.
func (w Statements) ByKey(q observer.Query, s Selection, in observer.Range, order []int) (statement string, parts []int) {
	var b strings.Builder
	w.head(&b, s)
	if w.KeyHint != "" {
		b.WriteString(" " + w.KeyHint)
	}
	terms := w.terms(s, order)
	conditions := w.asked(q, s)
	if in.Key != "" {
		conditions = append(conditions, w.atLeast(terms, w.binder(s, &parts)))
	}
	if len(conditions) > 0 {
		b.WriteString("\nWHERE " + strings.Join(conditions, " AND "))
	}
	b.WriteString("\nORDER BY " + names(terms))
	return b.String(), parts
}

// OfKey selects the rows of one key, see [observer.PartKey]. It returns which parts of
// the key are bound, in the order of the bounds.
func (w Statements) OfKey(q observer.Query, s Selection) (statement string, parts []int) {
	var b strings.Builder
	w.head(&b, s)
	conditions := w.asked(q, s)
	bound := w.binder(s, &parts)
	for part, i := range s.Key {
		c := s.Columns[i]
		conditions = append(conditions, w.compare(term{name: w.qualified(c.Name), column: c, part: part}, "=", bound))
	}
	b.WriteString("\nWHERE " + strings.Join(conditions, " AND "))
	return b.String(), parts
}

// asked leaves out rows without a timestamp where the query skips them.
func (w Statements) asked(q observer.Query, s Selection) (conditions []string) {
	if s.Timestamp >= 0 && NullsOf(q, s, observer.Range{}) == NullsNowhere {
		conditions = append(conditions, w.qualified(s.TimestampName())+" IS NOT NULL")
	}
	return conditions
}

// term is a column of an order, and what it is compared with.
type term struct {
	name   string
	column Column
	part   int
	// behind says that NULL comes behind all values of it.
	behind bool
}

// compare compares the column of the term with its bound.
func (w Statements) compare(t term, operator string, bound func(part int) string) string {
	return t.name + w.operator(operator, t.column) + bound(t.part)
}

// terms are those of parts of the key.
func (w Statements) terms(s Selection, order []int) []term {
	terms := make([]term, len(order))
	for i, part := range order {
		c := s.Columns[s.Key[part]]
		terms[i] = term{w.qualified(c.Name), c, part, w.NullsLast && c.Nullable}
	}
	return terms
}

func names(terms []term) string {
	all := make([]string, len(terms))
	for i, t := range terms {
		all[i] = t.name
	}
	return strings.Join(all, ", ")
}

// atLeast compares the columns of an order with a place in it. Without a comparison
// of rows the first column is compared alone as well, with which Oracle begins in the
// index; MySQL makes a place in it of all of them.
func (w Statements) atLeast(terms []term, bound func(part int) string) string {
	first := terms[0]
	behind := slices.ContainsFunc(terms, func(t term) bool { return t.behind })
	if len(terms) > 1 && w.Rows && !behind {
		bounds := make([]string, len(terms))
		for i, t := range terms {
			bounds[i] = bound(t.part)
		}
		return "(" + names(terms) + ")" + w.operator(">=", first.column) + "(" + strings.Join(bounds, ", ") + ")"
	}
	null := ""
	if first.behind {
		null = " OR " + first.name + " IS NULL"
	}
	if len(terms) == 1 {
		condition := w.compare(first, ">=", bound)
		if first.behind {
			condition = "(" + condition + null + ")"
		}
		return condition
	}
	condition := ""
	if !first.behind {
		condition = w.compare(first, ">=", bound) + " AND "
	}
	return condition + "(" + w.compare(first, ">", bound) + null +
		" OR " + w.compare(first, "=", bound) + " AND " + w.atLeast(terms[1:], bound) + ")"
}

// All selects every row, in any order.
func (w Statements) All(s Selection) string {
	var b strings.Builder
	w.head(&b, s)
	return b.String()
}

func (w Statements) head(b *strings.Builder, s Selection) {
	z := w.sizes(s)
	b.WriteString("SELECT " + strings.Join(w.items(s, z), ", "))
	// Not every database allows AS before the alias of a table.
	b.WriteString("\nFROM " + w.From + " q" + w.Lateral + z.join)
}

func (w Statements) qualified(name string) string {
	if w.Quote == nil {
		return "q." + Quote(name)
	}
	return "q." + w.Quote(name)
}

func (w Statements) operator(operator string, left Column) string {
	if w.Operator != nil {
		operator = w.Operator(operator, left)
	}
	return " " + operator + " "
}

// binder returns what writes the next bound of a statement, and adds to parts what that
// is.
func (w Statements) binder(s Selection, parts *[]int) func(part int) string {
	return func(part int) string {
		*parts = append(*parts, part)
		n := len(*parts)
		switch {
		case part < 0 && w.Bound != nil:
			return w.Bound(n)
		case part >= 0 && w.KeyBound != nil:
			return w.KeyBound(n, s.Columns[s.Key[part]])
		}
		return "$" + strconv.Itoa(n)
	}
}

func (w Statements) limit(statement string, rows int) string {
	switch {
	case rows <= 0:
		return statement
	case w.Limit == nil:
		return statement + "\nLIMIT " + strconv.Itoa(rows)
	}
	return w.Limit(statement, rows)
}

// Subquery puts a configured SELECT in parentheses. The line break ends a
// comment on its last line; a closing semicolon is dropped.
func Subquery(sql string) string {
	return "(" + strings.TrimRight(sql, "; \t\r\n") + "\n)"
}

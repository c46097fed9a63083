package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
)

// Statements writes the SELECTs of one read in the dialect of a database. All
// of them see one snapshot.
type Statements struct {
	Dialect
	Query     observer.Query
	Selection Selection
	In        observer.Range
	// Order is that of the parts of the key in the index for a read by key; nil for none.
	Order []int
	// From is what follows FROM: a quoted table, or a query in parentheses. Its
	// alias is q, which Behind follows.
	From, Behind string
	// Within are more conditions of a read in the order of timestamps.
	Within []string
	// Laterals says that the database names expressions over a row, see [Lateral].
	Laterals bool
	// Lengths says that the items of long columns bring their lengths along, so that no
	// item more says what is left behind.
	Lengths bool
	// Rows says that the database compares rows, and that an index serves that:
	// (a, b) >= ($1, $2). Its operator is that of the first column.
	Rows bool
	// NullsLast says that NULL comes behind all values.
	NullsLast bool
	// NullByKey says that rows without a timestamp are to be ordered by the key alone for
	// an index on both to serve; PostgreSQL does not see that they share one.
	NullByKey bool
}

// Dialect writes what each database writes in its own way; [Standard] is that of most.
type Dialect interface {
	// Quote writes an identifier.
	Quote(name string) string
	// Column writes what is selected for a column, of which it is given the qualified
	// name. It is used nowhere else: an expression in WHERE or ORDER BY would keep the
	// index from serving.
	Column(c Column, qualified string) string
	// Item writes the n-th item of the select list, from 0.
	Item(n int, c Column, value string) string
	// Size writes, for a column whose values may be long, the condition that one is
	// not longer than most, and its length: no more than what it adds to the JSON of
	// the row. Both are empty for a column whose type keeps it shorter than
	// [ShortValue], and NULL for NULL. The condition may hold for a value that is
	// longer by a constant factor.
	Size(c Column, qualified string, most int) (fits, length string)
	// Operator writes an operator, such as >=, that has the column on its left, or a
	// number where the column has no name.
	Operator(operator string, left Column) string
	// Bound writes the n-th bound, from 1, as a value of the column. part is that of the
	// key, or [BoundFrom] or [BoundBefore].
	Bound(n, part int, c Column) string
	// Limit ends a statement that has an order after so many rows.
	Limit(statement string, rows int) string
}

// Standard is a [Dialect] in which all columns are short.
type Standard struct{}

// Quote implements [Dialect].
func (Standard) Quote(name string) string { return Quote(name) }

// Column implements [Dialect].
func (Standard) Column(_ Column, qualified string) string { return qualified }

// Item implements [Dialect].
func (Standard) Item(_ int, _ Column, value string) string { return value }

// Size implements [Dialect].
func (Standard) Size(Column, string, int) (fits, length string) { return "", "" }

// Operator implements [Dialect].
func (Standard) Operator(operator string, _ Column) string { return operator }

// Bound implements [Dialect].
func (Standard) Bound(n, _ int, _ Column) string { return fmt.Sprintf("$%d", n) }

// Limit implements [Dialect].
func (Standard) Limit(statement string, rows int) string {
	return fmt.Sprintf("%s\nLIMIT %d", statement, rows)
}

// HasUndated reports whether there may be rows without a timestamp that the query asks
// for.
func HasUndated(q observer.Query, s Selection) bool {
	return s.Timestamp >= 0 && s.Columns[s.Timestamp].Nullable && q.NullTimestamp != observer.NullSkip
}

// undated says whether rows without a timestamp come along with those of the range, or
// apart from them. A range without bounds returns them along with the rest, unless it is
// limited: the limit is not theirs.
func (w Statements) undated() (along, apart bool) {
	nullable := w.Selection.Columns[w.Selection.Timestamp].Nullable
	asked := HasUndated(w.Query, w.Selection) && w.In.Before == "" && w.In.Part == observer.PartAll
	// Where there are none, it is no condition less.
	along = !nullable || asked && w.In.From == "" && w.In.Limit == 0 && len(w.Within) == 0
	return along, asked && !along
}

// Writer writes a statement of a read. It returns what the bounds are, in their order:
// parts of the key, [BoundFrom] or [BoundBefore].
type Writer func(w Statements) (statement string, parts []int)

// Writers are those of the read, in the order in which they run. There are none for a
// read by key without an order. Rows without a timestamp come last.
func (w Statements) Writers() []Writer {
	switch {
	case w.In.Part == observer.PartKey:
		return []Writer{Statements.OfKey}
	case w.In.ByKey && w.Order == nil:
		return nil
	case w.In.ByKey:
		return []Writer{Statements.ByKey}
	case w.Selection.Timestamp < 0:
		return []Writer{Statements.All}
	case w.In.Part == observer.PartUndated:
		return []Writer{Statements.Nulls}
	}
	if _, apart := w.undated(); apart {
		return []Writer{Statements.Range, Statements.Nulls}
	}
	return []Writer{Statements.Range}
}

// SQL is the text of the statements of a read, for people.
type SQL struct {
	// Full is what is sent, and Plain what [Statements.Plain] makes of it.
	Full, Plain string
}

// Texts joins statements for people.
func Texts[S any](steps []S, text func(S) (full, plain string)) SQL {
	full, plain := make([]string, len(steps)), make([]string, len(steps))
	for i, s := range steps {
		full[i], plain[i] = text(s)
	}
	return SQL{Full: strings.Join(full, ";\n"), Plain: strings.Join(plain, ";\n")}
}

// Plain returns statements that select columns by their names alone, as a person would:
// not converted, and however long a value is.
func (w Statements) Plain() Statements {
	w.Dialect = plain{w.Dialect}
	return w
}

type plain struct{ Dialect }

// Column implements [Dialect].
func (plain) Column(_ Column, qualified string) string { return qualified }

// Item implements [Dialect].
func (plain) Item(_ int, _ Column, value string) string { return value }

// Size implements [Dialect].
func (plain) Size(Column, string, int) (fits, length string) { return "", "" }

// What a bound of a range is, if it is no part of a key.
const (
	// BoundFrom is that of Range.From in package observer.
	BoundFrom = -1
	// BoundBefore is that of Range.Before.
	BoundBefore = -2
)

// Range selects the rows of a range that have a timestamp, and those that have none where
// they come along. It orders by the qualified columns: an alias that was converted to text
// would sort the whole table, however good the index.
func (w Statements) Range() (statement string, parts []int) {
	ts := w.term(w.Selection.Timestamp, BoundFrom)
	terms := append([]term{ts}, w.terms(w.Selection.TieOrder())...)
	var conditions []string
	switch {
	case w.In.From != "" && w.In.Key != "":
		conditions = append(conditions, w.atLeast(terms, &parts))
	case w.In.From != "":
		conditions = append(conditions, w.compare(ts, ">=", &parts))
	}
	if w.In.Before != "" {
		conditions = append(conditions, w.compare(w.term(w.Selection.Timestamp, BoundBefore), "<", &parts))
	}
	conditions = append(conditions, w.Within...)
	if along, _ := w.undated(); len(conditions) == 0 && !along {
		conditions = append(conditions, ts.name+" IS NOT NULL")
	}
	return w.Select(conditions, names(terms), w.In.Limit), parts
}

// Nulls selects the rows without a timestamp, in the order of their keys, and from a
// key on where they are the part that is read. It is a statement of its own because
// `OR … IS NULL` in the other makes SQLite scan the whole index.
func (w Statements) Nulls() (statement string, parts []int) {
	if w.In.Part != observer.PartUndated {
		w.In = observer.Range{}
	}
	ts, key := w.qualified(w.Selection.TimestampName()), names(w.terms(w.Selection.TieOrder()))
	order := ts + ", " + key
	switch {
	case key == "":
		order = ts
	case w.NullByKey:
		order = key
	}
	conditions := []string{ts + " IS NULL"}
	if w.In.Key != "" {
		conditions = append(conditions, w.FromKey(&parts))
	}
	return w.Select(conditions, order, w.In.Limit), parts
}

// FromKey is the condition for rows of one timestamp, or without one, from a key on.
func (w Statements) FromKey(parts *[]int) string {
	return w.atLeast(w.terms(w.Selection.TieOrder()), parts)
}

// ByKey selects every row in the order of an index, see [Selection.KeyOrder], and
// from the key of the range on where that has one. Rows without a timestamp are left out
// where the query skips them.
func (w Statements) ByKey() (statement string, parts []int) {
	terms, conditions := w.terms(w.Order), w.asked()
	if w.In.Key != "" {
		conditions = append(conditions, w.atLeast(terms, &parts))
	}
	return w.Select(conditions, names(terms), 0), parts
}

// OfKey selects the rows of one key, see [observer.PartKey].
func (w Statements) OfKey() (statement string, parts []int) {
	conditions := w.asked()
	for part, i := range w.Selection.Key {
		conditions = append(conditions, w.compare(w.term(i, part), "=", &parts))
	}
	return w.Select(conditions, "", 0), parts
}

// asked leaves out rows without a timestamp where the query skips them.
func (w Statements) asked() (conditions []string) {
	s := w.Selection
	if s.Timestamp >= 0 && s.Columns[s.Timestamp].Nullable && w.Query.NullTimestamp == observer.NullSkip {
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

func (w Statements) term(i, part int) term {
	c := w.Selection.Columns[i]
	return term{name: w.qualified(c.Name), column: c, part: part, behind: part >= 0 && w.NullsLast && c.Nullable}
}

// terms are those of parts of the key.
func (w Statements) terms(order []int) []term {
	return fn.Each(order, func(part int) term { return w.term(w.Selection.Key[part], part) })
}

func names(terms []term) string {
	return strings.Join(fn.Each(terms, func(t term) string { return t.name }), ", ")
}

// compare compares the column of the term with its bound.
func (w Statements) compare(t term, operator string, parts *[]int) string {
	return t.name + w.operator(operator, t.column) + w.bound(t, parts)
}

func (w Statements) operator(operator string, left Column) string {
	return " " + w.Operator(operator, left) + " "
}

// bound writes the next bound, and adds to parts what that is.
func (w Statements) bound(t term, parts *[]int) string {
	*parts = append(*parts, t.part)
	return w.Bound(len(*parts), t.part, t.column)
}

// atLeast compares the columns of an order with a place in it. Without a comparison
// of rows the first column is compared alone as well, with which Oracle begins in the
// index; MySQL makes a place in it of all of them.
func (w Statements) atLeast(terms []term, parts *[]int) string {
	first := terms[0]
	behind := slices.ContainsFunc(terms, func(t term) bool { return t.behind })
	if len(terms) > 1 && w.Rows && !behind {
		bounds := fn.Each(terms, func(t term) string { return w.bound(t, parts) })
		return "(" + names(terms) + ")" + w.operator(">=", first.column) + "(" + strings.Join(bounds, ", ") + ")"
	}
	null := ""
	if first.behind {
		null = " OR " + first.name + " IS NULL"
	}
	if len(terms) == 1 {
		condition := w.compare(first, ">=", parts)
		if first.behind {
			condition = "(" + condition + null + ")"
		}
		return condition
	}
	condition := ""
	if !first.behind {
		condition = w.compare(first, ">=", parts) + " AND "
	}
	return condition + "(" + w.compare(first, ">", parts) + null +
		" OR " + w.compare(first, "=", parts) + " AND " + w.atLeast(terms[1:], parts) + ")"
}

// All selects every row, in any order.
func (w Statements) All() (statement string, parts []int) { return w.Select(nil, "", 0), nil }

// Select selects the rows that meet all conditions, in an order and no more than the limit; 0 means
// all.
func (w Statements) Select(conditions []string, order string, limit int) string {
	z := w.sizes()
	// Not every database allows AS before the alias of a table.
	text := "SELECT " + strings.Join(w.items(z), ", ") + "\nFROM " + w.From + " q" + w.Behind + z.join
	if len(conditions) > 0 {
		text += "\nWHERE " + strings.Join(conditions, " AND ")
	}
	if order != "" {
		text += "\nORDER BY " + order
	}
	if limit > 0 {
		return w.Limit(text, limit)
	}
	return text
}

func (w Statements) qualified(name string) string { return "q." + w.Quote(name) }

// Subquery puts a configured SELECT in parentheses. The line break ends a
// comment on its last line; a closing semicolon is dropped.
func Subquery(sql string) string { return "(" + strings.TrimRight(sql, "; \t\r\n") + "\n)" }

// Lateral names expressions over a row. OFFSET 0 keeps the server from putting them
// where they are named. It costs half a microsecond a row.
func Lateral(items, alias string) string {
	return "\nCROSS JOIN LATERAL (SELECT " + items + " OFFSET 0) " + alias
}

package source

import "strings"

// Statements writes the SELECTs of one read. All of them see one snapshot.
type Statements struct {
	// From is what follows FROM: a quoted table, or a query in parentheses.
	From string
	// Prefix is put before every selected column, and before none elsewhere.
	Prefix string
	// Placeholder stands for the cursor.
	Placeholder string
}

// Range selects the rows at or after the cursor, or all rows when it is empty.
// It orders by the qualified columns: an alias that was converted to text would
// sort the whole table, however good the index.
func (w Statements) Range(s Selection, from, notNull bool) string {
	var b strings.Builder
	w.head(&b, s)
	ts := "q." + Quote(s.TimestampName())
	switch {
	case from:
		b.WriteString("\nWHERE " + ts + " >= " + w.Placeholder)
	case notNull:
		b.WriteString("\nWHERE " + ts + " IS NOT NULL")
	}
	b.WriteString("\nORDER BY " + ts)
	for _, k := range s.Key {
		if k != s.Timestamp {
			b.WriteString(", q." + Quote(s.Columns[k].Name))
		}
	}
	return b.String()
}

// Nulls selects the rows without a timestamp. It is a statement of its own
// because `OR … IS NULL` in the other makes SQLite scan the whole index.
func (w Statements) Nulls(s Selection) string {
	var b strings.Builder
	w.head(&b, s)
	b.WriteString("\nWHERE q." + Quote(s.TimestampName()) + " IS NULL")
	return b.String()
}

// All selects every row, in any order.
func (w Statements) All(s Selection) string {
	var b strings.Builder
	w.head(&b, s)
	return b.String()
}

func (w Statements) head(b *strings.Builder, s Selection) {
	b.WriteString("SELECT ")
	for i, c := range s.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(w.Prefix + "q." + Quote(c.Name))
	}
	b.WriteString("\nFROM " + w.From + " AS q")
}

// Subquery puts a configured SELECT in parentheses. The line break ends a
// comment on its last line; a closing semicolon is dropped.
func Subquery(sql string) string {
	return "(" + strings.TrimRight(sql, "; \t\r\n") + "\n)"
}

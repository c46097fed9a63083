package source

import (
	"slices"
	"strings"
	"unicode"
)

// Table is a table or view that the account of a source may read, as `init` has to know
// it.
type Table struct {
	// Schema is empty where Name alone finds the table.
	Schema, Name string
	View         bool
	// Rows is an estimate. It is -1 where the database has none, and no more than
	// [ManyRows] where it is counted.
	Rows int64
	// Key are the columns of the primary key, in its order; nil for none.
	Key []string
	// Times are the columns that may say when a row was written, in the order of the
	// table.
	Times []TimeColumn
}

// TimeColumn is a column that may say when a row was written.
type TimeColumn struct {
	// Name as the catalogue spells it, Type as the database prints it.
	Name, Type string
	// Nullable says that the column may hold NULL, Date that it has no time of day.
	Nullable, Date bool
	// Default says that rows are written with a time that the database sets, OnUpdate that
	// it sets it with each change, Trigger that a trigger names the column, and Indexed
	// that an index begins with it. Each is Unknown where it is not seen, as of a view.
	Default, OnUpdate, Trigger, Indexed Answer
}

// Kept reports whether the database itself is seen to set the column.
func (c TimeColumn) Kept() bool { return c.Default == Yes || c.OnUpdate == Yes || c.Trigger == Yes }

// Kept says of a timestamp what [Description.TimestampKept] does.
func (t Table) Kept(timestamp string) Answer {
	for _, c := range t.Times {
		switch {
		case c.Name != timestamp:
		case c.Kept(), c.Indexed == Yes:
			return Yes
		case c.Default == No && c.Indexed == No:
			return No
		}
	}
	return Unknown
}

// FullName is the table as an observer names it.
func (t Table) FullName() string {
	if t.Schema == "" {
		return t.Name
	}
	return t.Schema + "." + t.Name
}

// ManyRows is from how many rows on a table is not counted to its end.
const ManyRows = 100_000

// Meaning is what the name of a column says of a time in it.
type Meaning int

// The meanings. Business is every other, such as a due date.
const (
	Business Meaning = iota
	Created
	Changed
)

// MeaningOf reads the name of a column.
func MeaningOf(name string) Meaning {
	meaning := Business
	for _, word := range words(name) {
		switch {
		case slices.Contains([]string{"updated", "update", "upd", "modified", "modification", "mod", "changed", "change", "mtime", "lastmodified", "lastupdated"}, word):
			return Changed
		case slices.Contains([]string{"created", "create", "creation", "inserted", "insert", "added", "ctime"}, word):
			meaning = Created
		}
	}
	return meaning
}

// words are those of last_updated, LastUpdated and LAST-UPDATED, in small letters.
func words(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		if unicode.IsUpper(r) && lower {
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return !unicode.IsLetter(r) })
}

// Add adds a column that may say when a row was written. What keeps those of a view is
// that of the tables behind it, which is not seen.
func (t *Table) Add(c TimeColumn) {
	if t.View {
		c.Default, c.OnUpdate, c.Trigger, c.Indexed = Unknown, Unknown, Unknown, Unknown
	}
	t.Times = append(t.Times, c)
}

// Package sourcetest is the contract of [observer.Source] as a test suite. Each
// kind of source runs it against a real database of its kind.
package sourcetest

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// Source is what every kind of source offers: the polled part, and the part
// for `validate` and `poll --dry-run`.
type Source = source.Database

// Fixture is an empty database, seen from both sides.
type Fixture struct {
	// Source reads the database. Unreachable reads one that is not there.
	Source, Unreachable Source
	// In returns a source of the same database whose timestamps are of a zone.
	In func(*time.Location) Source
	// Exec runs a statement as the program that owns the database.
	Exec func(sql string)
	// Begin opens a transaction of the owner, beside Exec's. exec runs a
	// statement in it.
	Begin func() (exec func(sql string), commit func())
	// Lock locks the table orders so that no session can read it, until unlock. nil
	// means that this database has no such lock.
	Lock func() (unlock func())
	// Explain returns the plan of a SELECT as text.
	Explain func(sql string) string
	// Sort is what such a plan says where it sorts the whole result.
	Sort string
	// Placeholder stands for the cursor in the source's SQL.
	Placeholder string
	// Now is an expression for the database's time in a column {timestamp}.
	Now string
	// Write is a SELECT that would delete all rows of the table orders.
	Write string
	// OneWriter says that only one transaction may write at a time.
	OneWriter bool
	// Kept makes tables, by their names, with columns id and stamp, which the database
	// itself sets or a trigger names.
	Kept map[string]string
	// Hides says that the catalogue has no table that the account may not read.
	Hides bool
	// Exact says that the source can see open transactions.
	Exact bool
	// Types replace {text}, {long} (text of any length), {name} (text that is short enough for an index),
	// {integer}, {decimal}, {float} (of single precision, where there is such), {double}, {bytes} and {timestamp} in
	// the statements of the suite, and {date}, if there is a type without a time of day.
	Types map[string]string
	// Decimal returns the JSON of an exact number in a column {decimal}.
	Decimal func(text string) string
	// Poison is a literal for a column {text} that no event can hold.
	Poison string
	// Wider are the types whose text may depend on the width of a column.
	Wider []Wider
	// KeyFamilies are types of keys among which AlterKey changes that of the column k of the
	// table changing: between types, and with columns beside k, ref, note and updated_at.
	KeyFamilies []KeyFamily
	AlterKey    func(from, to string, extra []string) []string
	// BadTime is a literal for a column {timestamp} without an instant.
	BadTime string
	// Capitals says that names without quotes come back in capitals.
	Capitals bool
	// FullNulls says that the index does not lead to rows without a timestamp.
	FullNulls bool
	// Timeless is the fault of a row whose timestamp has no instant, behind the name of
	// the column.
	Timeless string
	// Stray is a literal for a column {timestamp} that is not in the form of the others;
	// empty for a database whose types have one form.
	Stray string
	// Odd are kinds of odd rows that no other database has.
	Odd []Odd
	// Query runs a SELECT as the program that owns the database and returns its rows as
	// text, NULL as the empty one. Its session is in UTC.
	Query func(sql string) [][]string
	// Edges are the types of the database, with values at their edges.
	Edges []Edge
	// UnkeyedTime says that no read can continue from a key that is a {timestamp}.
	UnkeyedTime bool
	// Classless reports whether a value, in a column of that declaration, may have the key
	// of one of another class, so that its type is not known once it has gone; nil for
	// never.
	Classless func(column string, s Said) bool
	// EmptyIsNull says that the empty text is NULL.
	EmptyIsNull bool
}

// folds are the names of the members in the data of an event.
var folds = regexp.MustCompile(`"[A-Z][A-Z0-9_]*":`)

// exec runs statements in which the names of types are replaced.
func (f Fixture) exec(statements ...string) {
	for _, sql := range statements {
		f.Exec(f.types(sql))
	}
}

func (f Fixture) types(sql string) string {
	// What comes between ADD and the name of a column.
	if _, ok := f.Types["column"]; !ok {
		sql = strings.ReplaceAll(sql, "{column}", "COLUMN")
	}
	for name, replacement := range f.Types {
		sql = strings.ReplaceAll(sql, "{"+name+"}", replacement)
	}
	return sql
}

// row is a copy of an [observer.Row].
type row struct {
	key, cursor string
	data        string // for which the query asks
	full        string // with the key
	sent        string // the same, with the names as they are
	micros      int64  // since 1970
	err         error
}

// read reads a query to its end.
func (f Fixture) read(t *testing.T, q observer.Query, from string) []row {
	t.Helper()
	return f.readIn(t, q, observer.Range{From: from})
}

// drained are the rows of a query that were read to their end, for what they say of all.
func (f Fixture) drained(t *testing.T, q observer.Query) observer.Rows {
	t.Helper()
	rows, err := f.Source.Read(t.Context(), q, observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	drain(t, rows)
	return rows
}

// drain reads rows to their end and closes them.
func drain(t *testing.T, rows observer.Rows) []row {
	t.Helper()
	var all []row
	for rows.Next() {
		r := rows.Row()
		all = append(all, row{r.Key, r.Cursor, string(r.AskedData()), string(r.Data), string(r.Data), r.Time.UnixMicro(), r.Err})
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("Rows.Err: %v", err)
	}
	if err := rows.Close(); err != nil {
		t.Fatalf("Rows.Close: %v", err)
	}
	return all
}

func keys(rows []row) string { return strings.Join(keyList(rows), " ") }

func keyList(rows []row) []string { return fn.Each(rows, func(r row) string { return r.key }) }

// orders is the query of most tests.
func orders() observer.Query {
	return observer.Query{Stream: "orders", Table: "orders", Key: []string{"order_id"}, Timestamp: "updated_at"}
}

// ordersTable makes its table, ordersIndex what serves its order.
const ordersTable = "CREATE TABLE orders (order_id {integer} PRIMARY KEY, status {text}, updated_at {timestamp} NOT NULL)"
const ordersIndex = "CREATE INDEX orders_by_time ON orders (updated_at, order_id)"

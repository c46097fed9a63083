// Package sourcetest is the contract of [observer.Source] as a test suite. Each
// kind of source runs it against a real database of its kind.
package sourcetest

import (
	"context"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// Source is what every kind of source offers: the polled part, and the part
// for `validate` and `poll --dry-run`.
type Source interface {
	observer.Source
	Describe(ctx context.Context, q observer.Query) (source.Description, error)
	SQL(ctx context.Context, q observer.Query, from string) (string, error)
	Close() error
}

// Fixture is an empty database, seen from both sides.
type Fixture struct {
	// Source reads the database. Unreachable reads one that is not there.
	Source, Unreachable Source
	// Exec runs a statement as the program that owns the database.
	Exec func(sql string)
	// Begin opens a transaction of the owner, beside Exec's. exec runs a
	// statement in it.
	Begin func() (exec func(sql string), commit func())
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
	// Exact says that the source can see open transactions.
	Exact bool
	// Types replace {text}, {integer}, {decimal}, {bytes} and {timestamp} in
	// the statements of the suite.
	Types map[string]string
	// Decimal returns the JSON of an exact number in a column {decimal}.
	Decimal func(text string) string
	// Poison is a literal for a column {text} that no event can hold.
	Poison string
	// BadTime is a literal for a column {timestamp} without an instant.
	BadTime string
}

// exec runs statements in which the names of types are replaced.
func (f Fixture) exec(statements ...string) {
	for _, sql := range statements {
		f.Exec(f.types(sql))
	}
}

func (f Fixture) types(sql string) string {
	for name, replacement := range f.Types {
		sql = strings.ReplaceAll(sql, "{"+name+"}", replacement)
	}
	return sql
}

// row is a copy of an [observer.Row].
type row struct {
	key, cursor, data string
	unix              int64
	err               error
}

// read reads a query to its end.
func (f Fixture) read(t *testing.T, q observer.Query, from string) []row {
	t.Helper()
	rows, err := f.Source.Read(t.Context(), q, from)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	var all []row
	for rows.Next() {
		r := rows.Row()
		all = append(all, row{r.Key, r.Cursor, string(r.Data), r.Time.Unix(), r.Err})
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("Rows.Err: %v", err)
	}
	if err := rows.Close(); err != nil {
		t.Fatalf("Rows.Close: %v", err)
	}
	return all
}

func keys(rows []row) string {
	var all []string
	for _, r := range rows {
		all = append(all, r.key)
	}
	return strings.Join(all, " ")
}

// orders is the query of most tests.
func orders() observer.Query {
	return observer.Query{Stream: "orders", Table: "orders", Key: []string{"order_id"}, Timestamp: "updated_at"}
}

// ordersTable makes its table, ordersIndex what serves its order.
const ordersTable = "CREATE TABLE orders (order_id {integer} PRIMARY KEY, status {text}, updated_at {timestamp} NOT NULL)"
const ordersIndex = "CREATE INDEX orders_by_time ON orders (updated_at, order_id)"

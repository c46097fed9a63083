package sourcetest

import (
	"context"
	"database/sql"
	"testing"
)

// Querier is a database or a connection of its owner.
type Querier interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// RowsOf returns the rows of a SELECT, NULL as the empty text; see [Fixture.Query].
func RowsOf(t testing.TB, db Querier, text string) [][]string {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values, pointers := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		pointers[i] = &values[i]
	}
	var all [][]string
	for rows.Next() {
		if err := rows.Scan(pointers...); err != nil {
			t.Fatal(err)
		}
		cells := make([]string, len(values))
		for i, value := range values {
			cells[i] = value.String
		}
		all = append(all, cells)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

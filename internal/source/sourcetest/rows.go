package sourcetest

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// Open opens a source that is closed at the end of the test.
func Open[S io.Closer](t testing.TB, open func(source.Options) (S, error), o source.Options) S {
	t.Helper()
	s, err := open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the source: %v", err)
		}
	})
	return s
}

// ReadAll returns copies of the rows of a range, with the data for which the query asks.
func ReadAll(t testing.TB, s observer.Source, q observer.Query, in observer.Range) []observer.Row {
	t.Helper()
	all, err := TryRead(s, q, in)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TryRead is [ReadAll] for a read that may fail.
func TryRead(s observer.Source, q observer.Query, in observer.Range) ([]observer.Row, error) {
	rows, err := s.Read(context.Background(), q, in)
	if err != nil {
		return nil, err
	}
	var all []observer.Row
	for rows.Next() {
		row := *rows.Row()
		row.Data, row.Asked = slices.Clone(row.AskedData()), 0
		all = append(all, row)
	}
	return all, errors.Join(rows.Err(), rows.Close())
}

// RowsOf returns the rows of a SELECT, NULL as the empty text; see [Fixture.Query].
func RowsOf(t testing.TB, db source.Querier, text string) [][]string {
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

package mysql

import (
	"slices"
	"testing"

	"github.com/observerd/observerd/internal/source"
)

// What is written into a statement is never more than a literal.
func TestKeyBound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ column, part, want string }{
		{"int", "-12", "-12"},
		{"int", "12 OR 1", ""},
		{"int", "", ""},
		{"decimal", "-1.50", "-1.50"},
		{"decimal", "1.", ""},
		{"decimal", "1e5", ""},
		{"bit", "18446744073709551615", "18446744073709551615"},
		{"varchar", `a'\\`, "_utf8mb4 X'61275c5c'"},
		{"char", "ä", "_utf8mb4 X'c3a4'"},
		{"varbinary", "00ff", "X'00ff'"},
		{"varbinary", "00f", ""},
		{"varbinary", "00' OR '1", ""},
		{"time", "-838:59:59.000001", "'-838:59:59.000001'"},
		{"time", "10:00:00'", ""},
		{"date", "2024-02-29", "'2024-02-29'"},
		{"date", "2024-02-31", "'2024-02-29'"}, // MySQL compares with no such date
		{"date", "0000-00-00", "'0000-00-00'"},
		{"date", "2024-00-00", "'2024-00-00'"},
		{"date", "'", ""},
		{"datetime", "2023-02-29 10:00:00.5", "'2023-02-28 23:59:59'"},
		{"datetime", "2024-02-29 10:00:00.123456", "'2024-02-29 10:00:00.123456'"},
		{"timestamp", "0000-00-00 00:00:00", "'0000-00-00 00:00:00'"},
		{"timestamp", "2024-02-29 10:00:00\n", ""},
	} {
		got, ok := keyBound(source.Column{Type: test.column}, test.part)
		if ok != (test.want != "") || ok && got != test.want {
			t.Errorf("%s %q: %s, %t; want %s", test.column, test.part, got, ok, test.want)
		}
	}
}

// MySQL and MariaDB each have columns of the catalogue of their own.
func TestIndexesOf(t *testing.T) {
	t.Parallel()
	text := func(cells ...string) [][]byte {
		row := make([][]byte, len(cells))
		for i, cell := range cells {
			row[i] = []byte(cell)
		}
		return row
	}
	found := result{
		columns: []string{"TABLE_NAME", "INDEX_NAME", "NON_UNIQUE", "COLUMN_NAME", "COLLATION", "SUB_PART", "IS_VISIBLE", "EXPRESSION", "INDEX_TYPE"},
		rows: [][][]byte{
			text("orders", "PRIMARY", "0", "a", "A", "", "YES", "", "BTREE"),
			text("orders", "PRIMARY", "0", "b", "A", "", "YES", "", "BTREE"),
			text("orders", "hidden", "1", "a", "A", "", "NO", "", "BTREE"),
			text("orders", "lower", "1", "", "A", "", "YES", "lower(`a`)", "BTREE"),
			text("orders", "scattered", "0", "a", "A", "", "YES", "", "HASH"),
			text("others", "PRIMARY", "0", "a", "A", "", "YES", "", "BTREE"),
		},
	}
	if got := indexesOf(found); len(got["orders"]) != 4 || len(got["others"]) != 1 {
		t.Errorf("indexes %+v", got)
	}
	for i, got := range indexesOf(found)["orders"] {
		want := []index{
			{name: "PRIMARY", unique: true, columns: []string{"a", "b"}, ordered: true},
			{name: "hidden", columns: []string{"a"}},
			{name: "lower", columns: []string{""}},
			{name: "scattered", unique: true, columns: []string{"a"}},
		}[i]
		if got.name != want.name || got.unique != want.unique || got.ordered != want.ordered || !slices.Equal(got.columns, want.columns) {
			t.Errorf("index %+v, want %+v", got, want)
		}
	}
}

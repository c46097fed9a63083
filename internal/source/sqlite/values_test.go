package sqlite_test

import (
	"database/sql"
	"maps"
	"path/filepath"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/internal/source/sqlite"
)

func TestValues(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "orders.db")
	owner := openWriter(t, path)
	s := open(t, sqlite.Options{URL: "sqlite:" + path})
	exec(t, owner, "CREATE TABLE vals (id INTEGER PRIMARY KEY, v)")
	for _, test := range []struct{ value, want string }{
		{"NULL", "null"}, {"9223372036854775807", "9223372036854775807"}, {"TRUE", "1"},
		{"1.5", "1.5"}, {"0.1 + 0.2", "0.30000000000000004"}, {"9e999", `"Infinity"`}, {"-9e999", `"-Infinity"`},
		{"''", `""`}, {"'tab' || char(9) || '\"q\"'", `"tab\t\"q\""`}, {"'{\"a\": 1.50}'", `"{\"a\": 1.50}"`}, {"'2026-03-29 01:30:00'", `"2026-03-29 01:30:00"`},
		{"x'deadbeef'", `"3q2+7w=="`}, {"x''", `""`},
	} {
		exec(t, owner, "DELETE FROM vals; INSERT INTO vals VALUES (1, "+test.value+")")
		for _, q := range []observer.Query{{Table: "vals"}, {SQL: "SELECT id, v FROM vals"}} {
			q.Key, q.Columns = []string{"id"}, []string{"v"}
			rows := sourcetest.ReadAll(t, s, q, observer.Range{})
			if want := `{"v":` + test.want + `}`; len(rows) != 1 || string(rows[0].Data) != want || rows[0].Err != nil {
				t.Errorf("%s: rows = %+v, want %s", test.value, rows, want)
			}
		}
	}
}

// TestEncodings has databases that keep text in any encoding of SQLite, which is chosen
// when they are made: the same rows come, and each read goes on at any of them.
func TestEncodings(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"UTF-8", "UTF-16le", "UTF-16be"} {
		path := filepath.Join(t.TempDir(), "x.db")
		db, err := sql.Open("sqlite", "file:"+path)
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		t.Cleanup(func() { _ = db.Close() })
		exec(t, db, "PRAGMA encoding = '"+encoding+"'")
		exec(t, db, `CREATE TABLE bücher (schlüssel TEXT PRIMARY KEY NOT NULL, größe)`)
		exec(t, db, `INSERT INTO bücher VALUES ('ü', 'Köln'), ('Ã¶', '€'), ('🚚', '東京')`)
		s, q := open(t, sqlite.Options{URL: "sqlite:" + path}), observer.Query{Table: "bücher", Key: []string{"schlüssel"}}
		order, err := s.KeyOrder(t.Context(), q)
		if err != nil || order == "" {
			t.Fatalf("order %q, %v", order, err)
		}
		rows := sourcetest.ReadAll(t, s, q, observer.Range{ByKey: true, Order: order})
		got := map[string]string{}
		for i, row := range rows {
			got[row.Key] = string(row.Data)
			if rest := sourcetest.ReadAll(t, s, q, observer.Range{ByKey: true, Order: order, Key: row.Key}); len(rest) != len(rows)-i {
				t.Errorf("%s: %d rows from row %d of %d", encoding, len(rest), i, len(rows))
			}
		}
		want := map[string]string{
			"ü": `{"schlüssel":"ü","größe":"Köln"}`, "Ã¶": `{"schlüssel":"Ã¶","größe":"€"}`, "🚚": `{"schlüssel":"🚚","größe":"東京"}`,
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: rows %q, want %q", encoding, got, want)
		}
	}
}

package sqlite_test

import (
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

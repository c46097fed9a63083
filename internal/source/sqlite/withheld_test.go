package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/internal/source/sqlite"
)

// Functions that fail over a row put its values into their messages.
func TestErrorsWithholdValues(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "source.db")
	owner := openWriter(t, path)
	exec(t, owner, `CREATE TABLE orders (id INTEGER PRIMARY KEY, v TEXT); INSERT INTO orders VALUES (1, '$'), (2, '`+sourcetest.Mark+`')`)
	exec(t, owner, `CREATE VIRTUAL TABLE texts USING fts5(body); INSERT INTO texts VALUES ('a')`)
	exec(t, owner, `CREATE VIEW leaking AS SELECT id, json_extract('{}', v) AS v FROM orders`)
	s := open(t, sqlite.Options{URL: "sqlite:" + path})
	for _, q := range []observer.Query{
		{SQL: "SELECT id, json_extract('{}', v) AS v FROM orders"},
		{SQL: "SELECT id, json_extract('{}', v) AS v FROM orders", Key: []string{"v"}},
		{SQL: "SELECT id, v FROM leaking ORDER BY v", Timestamp: "v"},
		{Table: "leaking"},
		{Table: "leaking", Key: []string{"v"}},
		{SQL: "SELECT max(json_extract('{}', v)) AS id FROM orders"},
		{SQL: "SELECT id FROM orders WHERE id > 1 AND (SELECT count(*) FROM texts WHERE texts MATCH v || ':a') > 0"},
	} {
		if q.Key == nil {
			q.Key = []string{"id"}
		}
		err := sourcetest.Withheld(t, s, q)
		sourcetest.Refusal(t, err, observer.ClassQuery, "SQLITE-1", source.Sound)
	}
}

// What SQLite says of the statement alone is quoted: it names what is missing.
func TestErrorsNameWhatTheStatementLacks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "source.db")
	owner := openWriter(t, path)
	exec(t, owner, `CREATE TABLE orders (id INTEGER PRIMARY KEY); CREATE TABLE gone (id INTEGER); CREATE VIEW broken AS SELECT id FROM gone; DROP TABLE gone`)
	s := open(t, sqlite.Options{URL: "sqlite:" + path})
	for sql, words := range map[string]string{
		"SELECT id FROM ordres": "no such table: ordres", "SELECT nr AS id FROM orders": "no such column: nr",
		"SELECT id FROM broken": "no such table: main.gone", "SELECT id FRM orders": "syntax error",
	} {
		err := sourcetest.Withheld(t, s, observer.Query{SQL: sql, Key: []string{"id"}})
		sourcetest.Refusal(t, err, observer.ClassQuery, "SQLITE-1", words)
	}
}

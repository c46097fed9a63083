package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/internal/source/sqlite"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) {
	countPolls()
	waittest.VerifyNoLeaks(m)
}

func TestContract(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, func(t *testing.T) sourcetest.Fixture {
		path := filepath.Join(t.TempDir(), "odd %20#name.db")
		writer := openWriter(t, path)
		return sourcetest.Fixture{
			Source:      open(t, sqlite.Options{URL: "sqlite:" + path}),
			Unreachable: open(t, sqlite.Options{URL: "sqlite:" + path + ".missing"}),
			In: func(loc *time.Location) sourcetest.Source {
				return open(t, sqlite.Options{URL: "sqlite:" + path, Location: loc})
			},
			Exec: func(text string) { exec(t, writer, text) },
			Begin: func() (func(string), func()) {
				tx, err := writer.BeginTx(context.Background(), nil)
				if err != nil {
					t.Fatal(err)
				}
				return func(text string) { exec(t, tx, text) }, func() {
					if err := tx.Commit(); err != nil {
						t.Error(err)
					}
				}
			},
			Explain:     func(text string) string { return explain(t, writer, text) },
			OneWriter:   true,
			Sort:        "TEMP B-TREE",
			Placeholder: "$1",
			Now:         "datetime('now')",
			Write:       "SELECT 1 AS order_id\n) AS q; DELETE FROM orders; SELECT * FROM (SELECT 1 AS order_id",
			Types: map[string]string{
				"text": "TEXT", "long": "TEXT", "name": "TEXT", "integer": "INTEGER", "decimal": "TEXT", "float": "REAL", "double": "REAL", "bytes": "BLOB", "timestamp": "DATETIME", "date": "DATE",
			},
			Kept: map[string]string{
				"hooked": `CREATE TABLE hooked (id INTEGER PRIMARY KEY, stamp DATETIME);
					CREATE TRIGGER hook AFTER UPDATE ON hooked BEGIN UPDATE hooked SET stamp = datetime('now') WHERE id = NEW.id; END`,
				"untyped": `CREATE TABLE untyped (id INTEGER PRIMARY KEY, stamp DEFAULT (datetime('now')))`,
			},
			Decimal:  strconv.Quote,
			Poison:   "CAST(x'41ff42' AS TEXT)",
			BadTime:  "'soon'",
			Timeless: "is not a timestamp that is understood",
			Stray:    "1714557600",
			Query:    func(text string) [][]string { return sourcetest.RowsOf(t, writer, text) },
			Edges:    edges(), Classless: classless,
			KeyFamilies: []sourcetest.KeyFamily{{
				Types:   []string{"DECIMAL(8,0)", "DECIMAL(10,2)", "INTEGER", "TEXT", "VARCHAR(20)", "VARCHAR(40)", "BLOB", ""},
				Literal: func(n int) string { return fmt.Sprint(n*7 + 1) },
			}},
			AlterKey: sourcetest.Recreate,
			Wider: []sourcetest.Wider{
				{Narrow: "DECIMAL(10,0)", Wide: "DECIMAL(12,2)", Values: []string{"-10", "0", "7.50", "100"}, Keys: []string{"-10", "0", "7.5", "100"}, Same: true},
				{Narrow: "CHAR(4)", Wide: "CHAR(8)", Values: []string{"'a'", "'b '"}, Keys: []string{"a", "b "}, Same: true},
			},
		}
	})
}

func open(t testing.TB, o sqlite.Options) *sqlite.Source {
	t.Helper()
	return sourcetest.Open(t, sqlite.Open, o)
}

// openWriter is the program that owns the database.
func openWriter(t testing.TB, path string) *sql.DB {
	t.Helper()
	escaped := strings.NewReplacer("%", "%25", "#", "%23").Replace(path)
	db, err := sql.Open("sqlite", "file:"+escaped+"?_journal_mode=WAL&_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	exec(t, db, "CREATE TABLE owner (name TEXT)")
	return db
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func exec(t testing.TB, db execer, text string) {
	t.Helper()
	if _, err := db.ExecContext(context.Background(), text); err != nil {
		t.Fatalf("%s: %v", text[:min(len(text), 100)], err)
	}
}

func explain(t testing.TB, db *sql.DB, text string) string {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), "EXPLAIN QUERY PLAN "+text)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "\n")
}

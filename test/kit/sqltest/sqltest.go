// Package sqltest keeps the statements of a package in golden files, which psql and sqlite3
// accept: they are read, pasted and compared there.
package sqltest

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/test/kit/pgtest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Golden compares the statements of a package with testdata/postgres.sql and
// testdata/sqlite.sql, and has a migrated database of each kind accept those files. statements
// returns pointers to structs of rendered texts, as [sqldb.Statements] does; an empty text is
// none. A test with -update writes the files.
func Golden(t *testing.T, statements func(db *sqldb.DB) []any) {
	t.Helper()
	for backend, accept := range map[string]func(t *testing.T, all []statement){"postgres": acceptPostgres, "sqlite": acceptSQLite} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			// Nothing connects to it, so that tables are named without their schema.
			db := open(t, map[string]string{"postgres": "postgres://localhost/none", "sqlite": "sqlite:" + filepath.Join(t.TempDir(), "none.db")}[backend])
			all := list(statements(db))
			compare(t, filepath.Join("testdata", backend+".sql"), file(backend, all))
			accept(t, all)
		})
	}
}

// statement is one of a struct. Its name is Type.Field.
type statement struct{ name, text string }

func list(structs []any) []statement {
	var all []statement
	for _, s := range structs {
		v := reflect.ValueOf(s).Elem()
		of := strings.TrimSuffix(v.Type().Name(), "SQL")
		for field, text := range v.Fields() {
			if text.String() != "" {
				all = append(all, statement{strings.ToUpper(of[:1]) + of[1:] + "." + field.Name, strings.TrimSpace(text.String())})
			}
		}
	}
	return all
}

// form returns the statement as psql or sqlite3 can check it without any parameter.
func (s statement) form(backend string) string {
	if backend == "sqlite" {
		return "EXPLAIN\n" + s.text + ";\n"
	}
	return "PREPARE " + strings.ReplaceAll(s.name, ".", "_") + " AS\n" + s.text + ";\n"
}

func file(backend string, all []statement) string {
	var text strings.Builder
	for _, s := range all {
		fmt.Fprintf(&text, "-- %s\n%s\n", s.name, s.form(backend))
	}
	return text.String()
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what is sent; look at what -update changes in it. It is now\n%s", path, got)
	}
}

func acceptPostgres(t *testing.T, all []statement) {
	url := pgtest.New(t)
	migrate(t, url)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, s := range all {
		if _, err := conn.Exec(t.Context(), s.form("postgres")); err != nil {
			t.Errorf("%s: %v\n%s", s.name, err, s.text)
		}
	}
}

var parameter = regexp.MustCompile(`\?(\d+)`)

func acceptSQLite(t *testing.T, all []statement) {
	pool := migrate(t, "sqlite:"+filepath.Join(t.TempDir(), "observerd.db")).Main
	for _, s := range all {
		var args []any
		for _, match := range parameter.FindAllStringSubmatch(s.text, -1) {
			n, err := strconv.Atoi(match[1])
			if err != nil {
				t.Fatal(err)
			}
			args = append(args, make([]any, max(0, n-len(args)))...)
		}
		if err := explain(t, pool, s.form("sqlite"), args); err != nil {
			t.Errorf("%s: %v\n%s", s.name, err, s.text)
		}
	}
}

func explain(t *testing.T, pool *sql.DB, text string, args []any) error {
	t.Helper()
	rows, err := pool.QueryContext(t.Context(), text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

func migrate(t *testing.T, url string) *sqldb.DB {
	t.Helper()
	db := open(t, url)
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

func open(t *testing.T, url string) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(sqldb.Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Package sqltest prints the statements of a package as people read them, and lets the
// databases judge them.
package sqltest

import (
	"database/sql"
	"errors"
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

	_ "github.com/jackc/pgx/v5/stdlib" // The drivers.
	_ "modernc.org/sqlite"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/springtest"
)

var update = flag.Bool("update", false, "write the golden files of statements anew")

// Databases are the URLs of migrated databases; INT_LOCK of the last one has EXPIRED_AFTER.
type Databases struct{ SQLite, Postgres, ExpiredAfter string }

// Migrated returns databases for a test.
func Migrated(t *testing.T) Databases {
	t.Helper()
	on := Databases{SQLite: "sqlite:" + filepath.Join(t.TempDir(), "observerd.db"), Postgres: pgtest.New(t), ExpiredAfter: pgtest.New(t)}
	if err := pgtest.Execute(t.Context(), on.ExpiredAfter, springtest.Spring7.Table()); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{on.SQLite, on.Postgres, on.ExpiredAfter} {
		db, err := sqldb.Open(sqldb.Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Migrate(t.Context()), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return on
}

// Golden compares testdata/postgres.sql, sqlite.sql and expired-after.sql with the statements
// of both dialects, and has each accepted: psql and sqlite3 accept the files too. The last
// one has what is another statement where INT_LOCK has EXPIRED_AFTER. T may be a struct of
// such structs; a file without any statement is left out.
func Golden[T any](t *testing.T, postgres, sqlite T, on Databases) {
	t.Helper()
	plain := texts(sqldb.Plain("postgres", false), postgres)
	perRow := texts(sqldb.Plain("postgres", true), postgres)
	for name := range perRow {
		if perRow[name] == plain[name] {
			delete(perRow, name)
		}
	}
	for _, file := range []struct {
		name, before, url string
		texts             map[string]string
	}{
		{"postgres.sql", "PREPARE %q AS", on.Postgres, plain},
		{"expired-after.sql", "PREPARE %q AS", on.ExpiredAfter, perRow},
		{"sqlite.sql", "EXPLAIN", on.SQLite, texts(sqldb.Plain("sqlite", false), sqlite)},
	} {
		if len(file.texts) == 0 {
			continue
		}
		t.Run(file.name, func(t *testing.T) {
			t.Parallel()
			var all strings.Builder
			db := open(t, file.url)
			for _, name := range fields(reflect.TypeFor[T](), "") {
				text, ok := file.texts[name]
				if !ok {
					continue
				}
				before := file.before
				if strings.Contains(before, "%q") {
					before = fmt.Sprintf(before, name)
				}
				text = before + "\n" + strings.TrimPrefix(text, "\n") + ";\n"
				accepted(t, db, name, text)
				fmt.Fprintf(&all, "-- %s\n%s\n", name, text)
			}
			compare(t, filepath.Join("testdata", file.name), all.String())
		})
	}
}

// fields are the names of the statements.
func fields(of reflect.Type, before string) (names []string) {
	for field := range of.Fields() {
		if field.Type.Kind() == reflect.Struct {
			names = append(names, fields(field.Type, field.Name+".")...)
			continue
		}
		names = append(names, before+field.Name)
	}
	return names
}

// texts are the statements of a dialect.
func texts[T any](r *sqldb.Rendering, statements T) map[string]string {
	all := map[string]string{}
	add(all, r, reflect.ValueOf(statements), "")
	return all
}

func add(all map[string]string, r *sqldb.Rendering, statements reflect.Value, before string) {
	for field, text := range statements.Fields() {
		switch {
		case text.Kind() == reflect.Struct:
			add(all, r, text, field.Name+".")
		case text.String() != "":
			all[before+field.Name] = r.SQL(text.String())
		}
	}
}

func open(t *testing.T, url string) *sql.DB {
	t.Helper()
	driver := "pgx"
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, url = "sqlite", "file:"+path
	}
	db, err := sql.Open(driver, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

var parameter = regexp.MustCompile(`\?(\d+)`)

// accepted has the database read a statement. SQLite wants a value for each parameter.
func accepted(t *testing.T, db *sql.DB, name, text string) {
	t.Helper()
	most := 0
	for _, match := range parameter.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(match[1])
		most = max(most, n)
	}
	if _, err := db.ExecContext(t.Context(), text, make([]any, most)...); err != nil {
		t.Errorf("%s is not accepted: %v\n%s", name, err, text)
	}
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path) //nolint:gosec // A file of testdata.
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what the statements are; look at the difference after go test -update", path)
	}
}

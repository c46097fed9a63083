package admin_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/test/kit/lockdbtest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

const untouchedYAML = `
database: {url: %q}
sources: {erp: {url: %q}}
observers:
  - {id: a, type: order, source: erp, table: orders, key: id}
  - {id: b, type: order, source: erp, table: orders, key: id, timestamp: at}
sinks: [{id: screen, type: stdout}]
`

// TestValidateWritesNothing has a password that is wrong, then is that of the account,
// and at last is wrong again, as a node notes.
func TestValidateWritesNothing(t *testing.T) {
	t.Parallel()
	for name, coordination := range map[string]func(t *testing.T) (url string, content func() string){
		"postgres": func(t *testing.T) (string, func() string) {
			database := lockdbtest.Postgres(t, "")
			return database, func() string { return tables(t, database) }
		},
		"sqlite": func(t *testing.T) (string, func() string) {
			database := lockdbtest.SQLite(t)
			return database, func() string { return files(t, filepath.Dir(strings.TrimPrefix(database, "sqlite:"))) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := pgtest.New(t)
			run(t, database, `CREATE TABLE orders (id INTEGER PRIMARY KEY, at TIMESTAMPTZ NOT NULL)`)
			account, err := url.Parse(pgtest.NewRole(t, database, "SELECT ON orders"))
			if err != nil {
				t.Fatal(err)
			}
			user := account.User.Username()
			account.User = url.UserPassword(user, "wrong")
			coordinates, content := coordination(t)
			cfg := load(t, fmt.Appendf(nil, untouchedYAML, coordinates, account))
			validate := func() string {
				t.Helper()
				before := content()
				v := admin.Validate(t.Context(), admin.ValidateOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler), Timeout: time.Minute, Sample: 1})
				if after := content(); after != before {
					t.Errorf("validate changed\n%s\nto\n%s", before, after)
				}
				return fmt.Sprint(v.Err())
			}
			if text := validate(); !strings.Contains(text, "password authentication failed") {
				t.Errorf("with a wrong password: %s", text)
			}
			before := content()
			if err := operate(t, cfg, true, func(op *admin.Operator) error { _, err := op.DryRun(t.Context(), "a", 1); return err }); err == nil {
				t.Error("a dry run with a wrong password was not refused")
			}
			if after := content(); after != before {
				t.Errorf("a dry run changed\n%s\nto\n%s", before, after)
			}
			run(t, database, "ALTER ROLE "+user+" PASSWORD 'wrong'")
			if err := pollOnce(t, cfg, "a"); err != nil {
				t.Errorf("a poll after validate was refused: %v", err)
			}
			run(t, database, "ALTER ROLE "+user+" PASSWORD 'other'")
			if err := pollOnce(t, cfg, "a"); err == nil {
				t.Fatal("a poll with a wrong password was not refused")
			}
			if text := validate(); !strings.Contains(text, "is not tried any more") {
				t.Errorf("with an account that nodes do not try: %s", text)
			}
		})
	}
}

// TestValidateLeavesTheFileAsItIs names a file at database.url that is no coordination
// database yet: one of somebody else, whose journal is none of ours, and none.
func TestValidateLeavesTheFileAsItIs(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"another": "CREATE TABLE notes (text TEXT)", "empty": "", "none": "-"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			path := filepath.Join(folder, "sub", "observerd.db")
			if script != "-" {
				if err := cmp.Or(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
				db, err := sql.Open("sqlite", path)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := db.ExecContext(t.Context(), script); cmp.Or(err, db.Close()) != nil {
					t.Fatal(err)
				}
			}
			cfg := load(t, fmt.Appendf(nil, untouchedYAML, "sqlite:"+path, "sqlite:"+path))
			before := files(t, folder)
			v := admin.Validate(t.Context(), admin.ValidateOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler), Timeout: time.Minute, Sample: 1})
			if v.Err() == nil {
				t.Error("a source without tables has no mistakes")
			}
			if after := files(t, folder); after != before {
				t.Errorf("validate changed\n%s\nto\n%s", before, after)
			}
		})
	}
}

func pollOnce(t *testing.T, cfg *config.Config, id string) error {
	t.Helper()
	return operate(t, cfg, false, func(op *admin.Operator) error {
		_, err := op.PollOnce(t.Context(), id, admin.By{Actor: "test"})
		return err
	})
}

func operate(t *testing.T, cfg *config.Config, readOnly bool, act func(*admin.Operator) error) error {
	t.Helper()
	op, err := admin.NewOperator(admin.OperatorOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler), ReadOnly: readOnly})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := op.Close(); err != nil {
			t.Error(err)
		}
	}()
	return act(op)
}

// files are the names of all files in the folder, with digests of their content.
func files(t *testing.T, folder string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		var content []byte
		if err == nil && !entry.IsDir() {
			content, err = os.ReadFile(path)
		}
		fmt.Fprintf(&all, "%s: %d bytes, %x\n", path, len(content), sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// tables are the names and the rows of all tables in the database.
func tables(t *testing.T, database string) string {
	t.Helper()
	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() // It was only read.
	names := texts(t, db, `SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables
		WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`)
	if !slices.Contains(names, "public.obs_account") {
		t.Fatalf("there is no obs_account among %q", names)
	}
	var all strings.Builder
	for _, name := range names {
		fmt.Fprintf(&all, "%s: %q\n", name, texts(t, db, `SELECT t::text FROM `+name+` t ORDER BY 1`))
	}
	return all.String()
}

func texts(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(context.WithoutCancel(t.Context()), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRoleThatMayNotMigrate has roles that may not make the tables, or not change those of another.
func TestRoleThatMayNotMigrate(t *testing.T) {
	t.Parallel()
	const yaml = `
database: {url: %q}
sources: {erp: {url: %q}}
observers: [{id: a, type: order, source: erp, table: orders, key: id}]
sinks: [{id: screen, type: stdout}]
`
	validate := func(url string) string {
		cfg := load(t, fmt.Appendf(nil, yaml, url, url))
		return fmt.Sprint(admin.Validate(t.Context(), admin.ValidateOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler), Timeout: time.Minute}).Err())
	}
	database := pgtest.New(t)
	if text := validate(pgtest.NewRole(t, database)); !strings.Contains(text, "lacks CREATE on schema public; run 'observerd migrate up'") {
		t.Error(text)
	}
	run(t, database, `CREATE TABLE obs_migration (id INTEGER GENERATED BY DEFAULT AS IDENTITY, version_id BIGINT, is_applied BOOLEAN, tstamp TIMESTAMP DEFAULT now())`)
	run(t, database, `INSERT INTO obs_migration (version_id, is_applied) VALUES (20, TRUE)`)
	if text := validate(pgtest.NewRole(t, database, "CREATE ON SCHEMA public", "SELECT ON obs_migration")); !strings.Contains(text, `lacks ownership of "public"."obs_migration"`) {
		t.Error(text)
	}
	if text := validate(database); strings.Contains(text, "lacks") {
		t.Error(text)
	}
}

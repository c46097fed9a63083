package postgres_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/pgtest"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/postgres"
)

// grants are the statements of deploy/sql/postgres.sql for a new role of this
// test, and its name.
func grants(t *testing.T, schema string) (statements []string, role string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "sql", "postgres.sql"))
	if err != nil {
		t.Fatal(err)
	}
	role = "reader_" + strings.ToLower(schema) + fmt.Sprint(os.Getpid())
	values := strings.NewReplacer(`:"reader"`, source.Quote(role), `:'password'`, "'secret'", `:"schema"`, source.Quote(schema))
	var lines []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "--") {
			lines = append(lines, line)
		}
	}
	for _, statement := range strings.Split(values.Replace(strings.Join(lines, "")), ";") {
		if strings.TrimSpace(statement) != "" {
			statements = append(statements, statement)
		}
	}
	return statements, role
}

// TestLeastPrivilege takes the grants away one by one, the last first, and looks
// at what each of them is good for.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	owner := connect(t, address)
	exec(t, owner, `CREATE SCHEMA wms; CREATE TABLE wms.orders (id int PRIMARY KEY, at timestamptz NOT NULL); INSERT INTO wms.orders VALUES (1, now())`)
	statements, role := grants(t, "wms")
	t.Cleanup(func() { exec(t, owner, `DROP OWNED BY `+role+`; DROP ROLE `+role) })
	for _, s := range statements {
		exec(t, owner, s)
	}
	account, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	account.User = url.UserPassword(role, "secret")
	s := open(t, postgres.Options{URL: account.String()})
	q := observer.Query{Table: "wms.orders", Key: []string{"id"}, Timestamp: "at"}

	d, err := s.Describe(t.Context(), q)
	if err != nil || !d.HorizonExact || len(d.Warnings) > 0 {
		t.Errorf("with all grants: %+v, %v", d, err)
	}
	if n := len(readAll(t, s, q, "")); n != 1 {
		t.Errorf("%d rows", n)
	}
	exec(t, owner, `REVOKE pg_read_all_stats FROM `+role)
	d, err = s.Describe(t.Context(), q)
	if err != nil || d.HorizonExact || len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "pg_read_all_stats") {
		t.Errorf("without pg_read_all_stats: %+v, %v", d, err)
	}
	// Everybody may look at the control file, unless a DBA has said otherwise.
	if id, err := s.Identity(t.Context()); err != nil || id == "" {
		t.Errorf("Identity = %q, %v", id, err)
	}
	exec(t, owner, `REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC`)
	if id, err := s.Identity(t.Context()); err != nil || id != "" {
		t.Errorf("Identity without pg_control_system = %q, %v", id, err)
	}
	exec(t, owner, `REVOKE SELECT ON ALL TABLES IN SCHEMA wms FROM `+role)
	if _, err = s.Describe(t.Context(), q); observer.ClassOf(err) != observer.ClassQuery {
		t.Errorf("without SELECT: %v of class %q", err, observer.ClassOf(err))
	}
}

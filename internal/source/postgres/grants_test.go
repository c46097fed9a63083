package postgres_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
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

// Row security is told to accounts to which it applies, of a table and of those whose
// columns a query returns.
func TestRowSecurityIsTold(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	exec(t, connect(t, address), `CREATE TABLE plain (id int PRIMARY KEY); CREATE TABLE orders (id int PRIMARY KEY);
		ALTER TABLE orders ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON orders USING (id < 10)`)
	owner, reader := open(t, postgres.Options{URL: address}), open(t, postgres.Options{URL: pgtest.NewRole(t, address, "SELECT ON ALL TABLES IN SCHEMA public")})
	for _, test := range []struct {
		s     *postgres.Source
		query observer.Query
		want  int
	}{
		{owner, observer.Query{Table: "orders"}, 0},
		{reader, observer.Query{Table: "orders"}, 1},
		{reader, observer.Query{Table: "plain"}, 0},
		{reader, observer.Query{SQL: "SELECT o.id, p.id AS other FROM orders o JOIN plain p USING (id)"}, 1},
	} {
		test.query.Key = []string{"id"}
		d, err := test.s.Describe(t.Context(), test.query)
		if err != nil || len(d.Warnings) != test.want || test.want > 0 && !strings.Contains(d.Warnings[0], "Row security applies to this account on public.orders") {
			t.Errorf("%+v: warnings %q, %v", test.query, d.Warnings, err)
		}
	}
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
	if n := len(sourcetest.ReadAll(t, s, q, observer.Range{})); n != 1 {
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

// TestLargeObjects holds docs/sources.md to what it says of them: up to PostgreSQL 15
// a query creates one in a read-only transaction, until the REVOKE that stands there.
func TestLargeObjects(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "sources.md"))
	if err != nil {
		t.Fatal(err)
	}
	revokes := regexp.MustCompile("(?s)```sql\n(REVOKE EXECUTE ON FUNCTION lo_.*?)```").FindAllSubmatch(page, -1)
	if len(revokes) != 1 {
		t.Fatalf("docs/sources.md has %d times a REVOKE of large objects, want one", len(revokes))
	}
	address := pgtest.New(t)
	owner := connect(t, address)
	exec(t, owner, `CREATE SCHEMA large; CREATE TABLE large.orders (id int PRIMARY KEY); INSERT INTO large.orders VALUES (1)`)
	statements, role := grants(t, "large")
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
	// wantCreated has each function called by a query.
	wantCreated := func(want int) {
		t.Helper()
		for _, call := range []string{"lo_creat(-1)", "lo_create(0)", `lo_from_bytea(0, '\x00')`} {
			q := observer.Query{SQL: "SELECT id, " + call + " AS made FROM large.orders", Key: []string{"id"}}
			_, err := sourcetest.TryRead(s, q, observer.Range{})
			var created int
			if err := owner.QueryRow(t.Context(), `SELECT count(*) FROM pg_largeobject_metadata`).Scan(&created); err != nil {
				t.Fatal(err)
			}
			if created != want || (err != nil) != (want == 0) {
				t.Errorf("%s creates %d objects, want %d: %v", call, created, want, err)
			}
			exec(t, owner, `SELECT lo_unlink(oid) FROM pg_largeobject_metadata`)
		}
	}
	var refuses bool
	if err := owner.QueryRow(t.Context(), `SELECT current_setting('server_version_num')::int >= 160000`).Scan(&refuses); err != nil {
		t.Fatal(err)
	}
	if !refuses {
		wantCreated(1)
	}
	exec(t, owner, string(revokes[0][1]))
	wantCreated(0)
}

// TestPromotedStandbyIsAnotherDatabase asks right after the promotion, before the checkpoint
// that it begins.
func TestPromotedStandbyIsAnotherDatabase(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	standby := primary.Standby(t).URL("postgres")
	// Pages that are to be written spread the checkpoint over half a minute.
	exec(t, connect(t, primary.URL("postgres")), `CREATE TABLE pages AS SELECT n FROM generate_series(1, 60000) n`)
	waittest.Eventually(t, time.Minute, func() error {
		_, err := connect(t, standby).Exec(t.Context(), `SELECT FROM pages LIMIT 1`)
		return err
	})
	identity := func() string {
		id, err := open(t, postgres.Options{URL: standby}).Identity(t.Context())
		if err != nil || id == "" {
			t.Fatalf("Identity = %q, %v", id, err)
		}
		return id
	}
	before := identity()
	exec(t, connect(t, standby), `SELECT pg_promote()`)
	if after := identity(); after == before {
		t.Errorf("the promoted standby is %s still", after)
	}
}

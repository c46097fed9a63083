package admin_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/test/kit/pgtest"
)

func shop(t *testing.T, statements ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range append([]string{"PRAGMA user_version = 1"}, statements...) {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + file
}

// TestInitOfManyTables has more tables than are switched on, and names that become one.
func TestInitOfManyTables(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long_", 20)
	statements := []string{
		`CREATE TABLE "a b" (id INTEGER PRIMARY KEY)`, `CREATE TABLE a_b (id INTEGER PRIMARY KEY)`, `CREATE TABLE "a_b_" (id INTEGER PRIMARY KEY)`,
		`CREATE TABLE "цены" (id INTEGER PRIMARY KEY)`, `CREATE TABLE "${HOME}: # no" (id INTEGER PRIMARY KEY)`,
		`CREATE TABLE "a.b" (id INTEGER PRIMARY KEY)`, "CREATE TABLE \"line\nend\" (id INTEGER PRIMARY KEY)",
		`CREATE TABLE ` + long + `1 (id INTEGER PRIMARY KEY)`, `CREATE TABLE ` + long + `2 (id INTEGER PRIMARY KEY)`,
		`CREATE TABLE "true" ("null" INTEGER PRIMARY KEY)`,
		`CREATE TABLE zz_best (id INTEGER PRIMARY KEY, updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)`, `CREATE INDEX by_time ON zz_best (updated_at)`,
	}
	for n := range 20 {
		statements = append(statements, fmt.Sprintf(`CREATE TABLE t%02d (id INTEGER PRIMARY KEY)`, n))
	}
	made, err := admin.Init(t.Context(), admin.InitOptions{URL: shop(t, statements...), Out: filepath.Join(t.TempDir(), "config.yaml"), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	cfg := load(t, []byte(made.Text))
	if made.Active != 20 || made.Doubtful != 11 || len(cfg.Observers) != 20 || cfg.Observers[0].Table != "zz_best" {
		t.Errorf("%d observers, %d commented out:\n%s", made.Active, made.Doubtful, made.Text)
	}
	// What is commented out is right as well, but for names that no observer can give.
	uncommented := regexp.MustCompile(`(?m)^  # (- |  [a-z-]+: )`).ReplaceAllString(made.Text, "  $1")
	uncommented = regexp.MustCompile(`(?s)  - id: shop-line-end\n.*?\n\n`).ReplaceAllString(uncommented, "")
	if cfg = load(t, []byte(uncommented)); len(cfg.Observers) != 30 {
		t.Errorf("%d observers:\n%s", len(cfg.Observers), uncommented)
	}
}

func TestInitRefuses(t *testing.T) {
	t.Parallel()
	full, empty := shop(t, `CREATE TABLE orders (id INTEGER PRIMARY KEY)`), shop(t)
	for name, c := range map[string]struct {
		options  admin.InitOptions
		argument bool
		says     string
	}{
		"a scheme with a typing mistake": {admin.InitOptions{URL: "postgras://u:hunter2@h/db"}, true, "for postgras write postgres://"},
		"a path":                         {admin.InitOptions{URL: "shop.db"}, true, "use sqlite:PATH"},
		"a table with a typing mistake":  {admin.InitOptions{URL: full, Tables: []string{"order"}}, true, `--table "order" matches no table that this account may read; use orders`},
		"a pattern that is none":         {admin.InitOptions{URL: full, Tables: []string{"["}}, true, "is not a pattern; use a name"},
		"a password of a file":           {admin.InitOptions{URL: full, PasswordFile: "x"}, true, "leave --password-file out"},
		"a database without tables":      {admin.InitOptions{URL: empty}, false, "has no table or view that this account may read; use the URL of another database"},
		"a file that is missing":         {admin.InitOptions{URL: "sqlite:none.db"}, false, "none.db does not exist; use another host, port or file"},
		"a file that is no database":     {admin.InitOptions{URL: "sqlite:init_test.go"}, false, "use the URL of another database"},
		"a server that is down":          {admin.InitOptions{URL: "postgres://u:hunter2@127.0.0.1:1/db"}, false, "connection refused; use another host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.options.Timeout = time.Minute
			_, err := admin.Init(t.Context(), c.options)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "hunter2") {
				t.Fatalf("Init: %v, want %q in one line", err, c.says)
			}
			if errors.As(err, new(admin.ArgumentError)) != c.argument {
				t.Errorf("%v is a fault of the arguments: %t", err, !c.argument)
			}
		})
	}
}

// TestInitChooses takes a table by its name and others by a pattern.
func TestInitChooses(t *testing.T) {
	t.Parallel()
	where := shop(t, `CREATE TABLE orders (id INTEGER PRIMARY KEY)`, `CREATE TABLE stock_a (id INTEGER PRIMARY KEY)`, `CREATE TABLE stock_b (id INTEGER PRIMARY KEY)`, `CREATE TABLE other (id INTEGER PRIMARY KEY)`)
	made, err := admin.Init(t.Context(), admin.InitOptions{URL: where, Tables: []string{"Orders", "stock_*"}, Timeout: time.Minute})
	if err != nil || made.Active != 3 || strings.Contains(made.Text, "other") {
		t.Errorf("%d observers, %v:\n%s", made.Active, err, made.Text)
	}
}

// TestInitOnAServer has tables that the account may not read, schemas off its path, a
// trigger, and tables that are too large for a snapshot.
func TestInitOnAServer(t *testing.T) {
	t.Parallel()
	owner := pgtest.New(t)
	run(t, owner, `CREATE TABLE wages (id INT PRIMARY KEY);
		CREATE SCHEMA sales; CREATE TABLE sales.orders (id INT PRIMARY KEY, modified TIMESTAMPTZ NOT NULL);
		CREATE SCHEMA hidden; CREATE TABLE hidden.orders (id INT PRIMARY KEY);
		CREATE TRIGGER touched BEFORE UPDATE ON sales.orders FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger('modified');
		CREATE TABLE archive (id INT PRIMARY KEY, due_on DATE);
		CREATE TABLE facts (day DATE NOT NULL, id INT NOT NULL, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
		CREATE TABLE facts_old PARTITION OF facts FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
		INSERT INTO archive SELECT n FROM generate_series(1, 1500) n;
		INSERT INTO facts SELECT '2024-05-01', n FROM generate_series(1, 1500) n;
		UPDATE pg_class SET reltuples = 200000, relpages = 2000 WHERE relname IN ('archive', 'facts_old')`)
	reader := pgtest.NewRole(t, owner, "USAGE ON SCHEMA sales", "SELECT ON sales.orders, archive, facts", "SELECT ON hidden.orders")
	made, err := admin.Init(t.Context(), admin.InitOptions{URL: reader, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"table: sales.orders\n": 1, "wages": 0, "hidden": 0, "facts_old": 0, "    timestamp: modified\n": 1, "reconcile-at:": 0,
		"  #   table: archive\n": 1, "  #   table: facts\n": 1, "facts: a table of about 200000 rows.": 1, "(due_on looks like": 1,
	} {
		if got := strings.Count(made.Text, text); got != want {
			t.Errorf("%q is there %d times, want %d:\n%s", text, got, want, made.Text)
		}
	}
	if made.Active != 1 || made.Doubtful != 2 {
		t.Errorf("%d observers, %d commented out", made.Active, made.Doubtful)
	}
	checkHeading(t, reader)
	nothing := pgtest.NewRole(t, owner)
	if _, err := admin.Init(t.Context(), admin.InitOptions{URL: nothing, Timeout: time.Minute}); err == nil || !strings.Contains(err.Error(), "grant this one SELECT") {
		t.Errorf("an account without rights: %v", err)
	}
}

// checkHeading has the password in a file: the comment at the top of the configuration has
// the URL as it is below, with none.
func checkHeading(t *testing.T, reader string) {
	t.Helper()
	u, err := url.Parse(reader)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	u.User = url.User(u.User.Username())
	made, err := admin.Init(t.Context(), admin.InitOptions{URL: u.String(), PasswordFile: "erp.password", Password: password, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	heading, _, _ := strings.Cut(made.Text, "\n\n")
	if !strings.Contains(heading, u.User.Username()+"@"+u.Host) || strings.Contains(made.Text, "xxxxx") {
		t.Errorf("the configuration has\n%s", made.Text)
	}
}

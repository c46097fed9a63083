package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// company is the database of a company that trades: business dates, compound keys, tables
// with and without a time of their changes, one without a key, and a view.
const company = `
CREATE TABLE regions (region_id INT PRIMARY KEY, name VARCHAR(40) NOT NULL);
CREATE TABLE territories (territory_id VARCHAR(20) PRIMARY KEY, region_id INT NOT NULL, name VARCHAR(40));
CREATE TABLE staff (staff_id INT PRIMARY KEY, name VARCHAR(40) NOT NULL, birth_date DATE, hire_date DATE);
CREATE TABLE staff_territories (staff_id INT NOT NULL, territory_id VARCHAR(20) NOT NULL, PRIMARY KEY (staff_id, territory_id));
CREATE TABLE categories (category_id INT PRIMARY KEY, name VARCHAR(40) NOT NULL, modified DATE NOT NULL);
CREATE TABLE suppliers (supplier_id INT PRIMARY KEY, name VARCHAR(40) NOT NULL, created_at {time} DEFAULT CURRENT_TIMESTAMP NOT NULL);
CREATE TABLE products (product_id INT PRIMARY KEY, name VARCHAR(40) NOT NULL, updated_at {time} {kept} NOT NULL);
CREATE INDEX products_by_time ON products (updated_at, product_id);
CREATE TABLE customers (customer_id VARCHAR(10) PRIMARY KEY, name VARCHAR(40) NOT NULL, changed_at {time} NULL);
CREATE TABLE shippers (shipper_id INT PRIMARY KEY, name VARCHAR(40) NOT NULL);
CREATE TABLE orders (order_id INT PRIMARY KEY, customer_id VARCHAR(10), order_date DATE NOT NULL, required_date DATE, shipped_date DATE);
CREATE TABLE order_details (product_id INT NOT NULL, order_id INT NOT NULL, quantity INT NOT NULL, PRIMARY KEY (order_id, product_id));
CREATE TABLE stock (depot VARCHAR(10) NOT NULL, product_id INT NOT NULL, quantity INT NOT NULL, PRIMARY KEY (depot, product_id));
CREATE TABLE payments (payment_id INT PRIMARY KEY, order_id INT NOT NULL, paid_on DATE NOT NULL);
CREATE TABLE notes (written_at {time}, text VARCHAR(200));
CREATE VIEW open_orders AS SELECT * FROM orders WHERE shipped_date IS NULL;
INSERT INTO regions VALUES (1, 'North'), (2, 'South');
INSERT INTO staff VALUES (1, 'Ada', '1970-01-02', '1994-05-01');
INSERT INTO categories VALUES (1, 'Tea', '2024-05-01');
INSERT INTO suppliers (supplier_id, name) VALUES (1, 'Leaf'), (2, 'Bean');
INSERT INTO products (product_id, name) VALUES (11, 'Oolong'), (12, 'Arabica'), (13, 'Robusta');
INSERT INTO customers VALUES ('ALFKI', 'Alfred', '2024-05-01 10:00:00'), ('BERGS', 'Berg', NULL);
INSERT INTO orders VALUES (10248, 'ALFKI', '1996-07-04', '1996-08-01', '1996-07-16'), (10249, 'BERGS', '1996-07-05', NULL, NULL);
INSERT INTO order_details VALUES (11, 10248, 12), (12, 10248, 10), (11, 10249, 5);
INSERT INTO stock VALUES ('A', 11, 39), ('B', 11, 17);
INSERT INTO payments VALUES (1, 10248, '1996-08-03');
INSERT INTO notes VALUES ('2024-05-01 10:00:00', 'ring back')`

// TestInitToEvents goes from the URL of a database to the events of its rows, on each kind
// of database.
func TestInitToEvents(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T, folder string) (*sql.DB, string){
		"sqlite": func(t *testing.T, folder string) (*sql.DB, string) {
			return opened(t, "sqlite", "file:"+folder+"/shop.db"), "sqlite:" + folder + "/shop.db"
		},
		"postgres": func(t *testing.T, _ string) (*sql.DB, string) {
			address := pgtest.New(t)
			return opened(t, "pgx", address), address
		},
		"mariadb": func(t *testing.T, _ string) (*sql.DB, string) {
			address := mariatest.New(t)
			return opened(t, "mysql", dsnOf(t, address)), address
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			db, address := open(t, folder)
			types := map[string][2]string{
				"sqlite": {"TIMESTAMP", "DEFAULT CURRENT_TIMESTAMP"}, "postgres": {"TIMESTAMPTZ", "DEFAULT CURRENT_TIMESTAMP"},
				"mariadb": {"DATETIME", "DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"},
			}[name]
			for _, statement := range strings.Split(strings.NewReplacer("{time}", types[0], "{kept}", types[1]).Replace(company), ";\n") {
				if _, err := db.Exec(statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			initToEvents(t, folder, address)
		})
	}
}

func opened(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func dsnOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	c.Passwd, _ = u.User.Password()
	if socket := u.Query().Get("socket"); socket != "" {
		c.Net, c.Addr = "unix", socket
	}
	return c.FormatDSN()
}

// switchedOn are the ids of the observers that a configuration switches on, and their types.
var switchedOn = regexp.MustCompile(`(?m)^  - id: (\S+)\n    type: (\S+)\n    source`)

func initToEvents(t *testing.T, folder, address string) {
	t.Helper()
	file := filepath.Join(folder, "config.yaml")
	var environ []string
	call := func(args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, environ, nil, &stdout, &stderr); code != exitOK {
			t.Fatalf("%v: exit code %d:\n%s%s", args, code, stdout.String(), stderr.String())
		}
		return stdout.String()
	}
	checkExplained(t, address, file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the file is %v, %v", info.Mode(), err)
	}
	environ = passwordOf(t, address, string(text))
	var v struct {
		OK       bool
		Warnings []any
	}
	if err := json.Unmarshal([]byte(call("validate", "--config", file, "-o", "json")), &v); err != nil || !v.OK || len(v.Warnings) > 0 {
		t.Errorf("validate says %+v, %v", v, err)
	}
	call("migrate", "up", "--config", file)
	var observers []string
	types := make(map[string]string)
	for _, m := range switchedOn.FindAllStringSubmatch(string(text), -1) {
		call("poll", m[1], "--once", "--config", file)
		observers, types[m[1]] = append(observers, m[2]), m[2]
	}
	// The one with an index and a time that the database keeps comes first.
	if len(observers) != 13 || observers[0] != "products" {
		t.Errorf("observers are %q:\n%s", observers, text)
	}
	for _, line := range []string{
		"# - id: ", "no primary key", "  #   key: COLUMN\n", "    timestamp: updated_at\n", "    timestamp: created_at\n",
		"    detect: new\n", "a date without a time of day", "    reconcile-at: \"03:00\"\n", "(order_date, required_date,",
		" rows. Its primary key is (product_id).\n", "    event: OrdersObservedEvent\n",
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("the configuration does not say %q:\n%s", line, text)
		}
	}
	for _, line := range []string{"    key: ", "    detect: change\n", "    detect: snapshot\n", "    event: ProductsObservedEvent\n"} {
		if strings.Contains(string(text), line) {
			t.Errorf("the configuration says %q, which is the default:\n%s", line, text)
		}
	}
	got := make(map[string]int)
	for _, line := range strings.Split(strings.TrimSpace(call("events", "tail", "-n", "100", "-o", "json", "--config", file)), "\n") {
		var e struct{ Source string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got[types[filepath.Base(e.Source)]]++
	}
	for table, want := range map[string]int{
		"regions": 2, "staff": 1, "categories": 1, "suppliers": 2, "products": 3, "customers": 2, "orders": 2, "order-details": 3, "stock": 2, "payments": 1,
	} {
		if got[table] != want {
			t.Errorf("%s became %d events, want %d; all are %v", table, got[table], want, got)
		}
	}
}

// checkExplained has init write a file, and to stdout: what was chosen and what comes next
// is on stderr.
func checkExplained(t *testing.T, address, file string) {
	t.Helper()
	for name, args := range map[string][]string{file: {"--out", file}, "config.yaml": nil} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), append([]string{"init", address}, args...), nil, nil, &stdout, &stderr); code != exitOK || (stdout.Len() > 0) != (args == nil) {
			t.Fatalf("%v: exit code %d:\n%s%s", args, code, stdout.String(), stderr.String())
		}
		for _, want := range []string{
			`(?m)^TABLE +DETECT +TIMESTAMP +NEWEST +REASON\nproducts +change +updated_at +\d+ (ms|s|min) ago +says when a row was changed, .*, indexed$`,
			`(?m)^suppliers +new +created_at +\d+ (ms|s|min) ago +says when a row was created, the default is the present time$`,
			`(?m)^customers +snapshot +- +\d+ d ago +changed_at may be NULL \(50% of a sample are NULL or before 1971\)$`,
			`(?m)^staff +snapshot +- +- +birth_date, hire_date look like business dates$`,
			`(?m)^notes +commented out +- +.* no primary key$`,
			"has 13 observers, and 2 commented out",
			`\nnext:\n  observerd validate --config ` + name + `\n  observerd run --config ` + name + `\n  observerd events tail --follow --config ` + name + `\n$`,
		} {
			if !regexp.MustCompile(want).MatchString(stderr.String()) {
				t.Errorf("%v does not say %q:\n%s", args, want, stderr.String())
			}
		}
		if strings.Contains(stderr.String(), "2024") {
			t.Errorf("a value is told:\n%s", stderr.String())
		}
	}
}

// TestInitOverwritesFilesAlone has --out name what is no file that can be written, and links.
func TestInitOverwritesFilesAlone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	if _, err := opened(t, "sqlite", "file:"+at("shop.db")).Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(at("real"), []byte("old"), 0o600), syscall.Mkfifo(at("pipe"), 0o600),
		os.Symlink("real", at("link")), os.Symlink("pipe", at("to-pipe")), os.Symlink("nothing", at("nowhere"))); err != nil {
		t.Fatal(err)
	}
	call := func(name string, force bool) (int, string) {
		var stdout, stderr bytes.Buffer
		args := []string{"init", "sqlite:" + at("shop.db"), "--out", at(name), "--force=" + strconv.FormatBool(force)}
		return run(t.Context(), args, nil, nil, &stdout, &stderr), stderr.String()
	}
	for name, want := range map[string]string{
		"pipe": " is no regular file; name one, or leave out --out", "to-pipe": " is no regular file;", "": " is no regular file;",
		"nowhere": " is a link to a place that does not exist; correct the link", "none/x": "the folder " + at("none") + " does not exist; create it",
	} {
		for _, force := range []bool{false, true} {
			if code, said := call(name, force); code != exitUsage || !strings.Contains(said, want) || strings.Contains(said, "with --force") {
				t.Errorf("%q, --force=%v: exit code %d, said %q", name, force, code, said)
			}
		}
	}
	if info, err := os.Lstat(at("pipe")); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("the pipe is %v, %v", info, err)
	}
	if code, said := call("link", false); code != exitUsage || !strings.Contains(said, "overwrite it with --force") {
		t.Errorf("a link without --force: exit code %d, said %q", code, said)
	}
	code, said := call("link", true)
	text, _ := os.ReadFile(at("real"))
	if target, err := os.Readlink(at("link")); code != exitOK || target != "real" || !strings.Contains(string(text), "observers:") {
		t.Errorf("a link: exit code %d, said %q; it leads to %q, %v, which has %q", code, said, target, err, text)
	}
}

// passwordOf is the environment that a configuration needs which init made of an address.
func passwordOf(t *testing.T, address, text string) []string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	password, has := u.User.Password()
	if !has || password == "" {
		return nil
	}
	if strings.Contains(text, ":"+password+"@") {
		t.Errorf("the password was written:\n%s", text)
	}
	variable := regexp.MustCompile(`\$\{(\w+)\}`).FindStringSubmatch(text)
	if variable == nil {
		t.Fatalf("no variable stands for the password:\n%s", text)
	}
	return []string{variable[1] + "=" + url.QueryEscape(password)}
}

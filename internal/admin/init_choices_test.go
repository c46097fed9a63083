package admin_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/admin"
	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// schema is a database of others, and the choices that init has to make there: what it
// detects and by which column. "or" is the column that it offers in a comment, "commented
// out" that a person decides.
type schema struct {
	file    string
	on      []string
	choices map[string]string
}

var schemas = []schema{
	{"northwind.sql", []string{"sqlite", "postgres", "mariadb"}, map[string]string{
		"categories": "snapshot", "employees": "snapshot or hire_date", "orders": "snapshot or order_date", "order_details": "snapshot",
	}},
	{"chinook.sql", []string{"sqlite", "postgres", "mariadb"}, map[string]string{"invoice": "snapshot or invoice_date", "track": "snapshot"}},
	{"dates.sql", []string{"sqlite", "postgres", "mariadb"}, map[string]string{
		"dated_1900": "snapshot or updated_at", "trials": "snapshot or created_at", "entries": "new created_at", "people": "snapshot or birth_date",
		"accounts": "change updated_at", "halves": "change last_edited", "plans": "snapshot or updated_on", "imports": "snapshot or created_at", "stamped": "new at",
		"half_filled": "snapshot or mtime",
	}},
	{"dolibarr.sql", []string{"mariadb"}, map[string]string{
		"llx_societe": "change tms", "llx_facture": "change tms", "llx_bank": "snapshot or datev", "llx_const": "snapshot or tms", "llx_old": "snapshot or changed",
	}},
	{"odoo.sql", []string{"postgres"}, map[string]string{
		"res_partner": "snapshot or write_date", "sale_order": "change write_date", "mail_message": "commented out change write_date", "ir_logging": "new create_date",
		"derived": "snapshot or modified",
	}},
	{"oracle.sql", []string{"oracle"}, map[string]string{
		"APP.MARA": "snapshot or LAEDA", "APP.VBAK": "snapshot or AEDAT", "APP.EKKO": "change AENDAT", "APP.S_CONTACT": "change LAST_UPD", "APP.S_EVT_ACT": "new CREATED",
	}},
}

func TestInitOnSchemasOfOthers(t *testing.T) {
	t.Parallel()
	for _, s := range schemas {
		text, err := os.ReadFile(filepath.Join("testdata", "init", s.file))
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range s.on {
			t.Run(s.file+" on "+kind, func(t *testing.T) {
				t.Parallel()
				made, err := admin.Init(t.Context(), optionsOf(t, filled(t, kind, string(text))))
				if err != nil {
					t.Fatal(err)
				}
				checkChoices(t, made, s.choices)
			})
		}
	}
}

// optionsOf has the password of [filled] in a file, where the URL has none.
func optionsOf(t *testing.T, address string) admin.InitOptions {
	t.Helper()
	o := admin.InitOptions{URL: address, Timeout: time.Minute}
	if strings.HasPrefix(address, "oracle:") {
		o.Password, o.PasswordFile = "secret", filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(o.PasswordFile, []byte(o.Password), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// filled returns the URL of a new database of a kind, after the statements.
func filled(t *testing.T, kind, text string) string {
	t.Helper()
	replace := func(pairs ...string) []string {
		return strings.Split(strings.TrimSpace(strings.NewReplacer(pairs...).Replace(text)), ";\n")
	}
	switch kind {
	case "sqlite":
		return shop(t, replace("{time}", "TIMESTAMP", "{later}", "(datetime('now', '+14 days'))")...)
	case "postgres":
		address := pgtest.New(t)
		run(t, address, strings.Join(replace("{time}", "TIMESTAMP", "{later}", "(now() + '14 days'::interval)"), ";"))
		return address
	case "mariadb":
		address := mariatest.New(t)
		conn := mariatest.Connect(t, address, nil)
		for _, statement := range replace("{time}", "DATETIME", "{later}", "(now() + INTERVAL 14 DAY)") {
			if _, err := conn.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		return address
	}
	database := engine.New(engine.Options{})
	server := oratest.Start(t, oratest.Options{Users: map[string]string{"reader": "secret"}, Service: "ERP", Handler: database})
	statements := append(replace(), `CREATE USER reader IDENTIFIED BY "secret"`, "GRANT CREATE SESSION TO reader", "GRANT SELECT ON SYS.GV_$TRANSACTION TO reader", "GRANT SELECT ON SYS.V_$DATABASE TO reader")
	for _, table := range []string{"mara", "vbak", "ekko", "s_contact", "s_evt_act"} {
		statements = append(statements, "GRANT READ ON app."+table+" TO reader")
	}
	for _, statement := range statements {
		if err := database.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return "oracle://reader@" + server.Addr() + "/ERP"
}

// offered is the column that an observer offers in a comment.
var offered = regexp.MustCompile(`(?m)^    # timestamp: (\S+)$`)

func checkChoices(t *testing.T, made admin.Initial, want map[string]string) {
	t.Helper()
	load(t, []byte(made.Text))
	got := make(map[string]string)
	for _, c := range made.Choices {
		text := strings.TrimSpace(c.Detect + " " + c.Timestamp)
		if !c.Active {
			text = "commented out " + text
		}
		_, observer, _ := strings.Cut(made.Text, "table: "+c.Table+"\n")
		observer, _, _ = strings.Cut(observer, "\n\n")
		if m := offered.FindStringSubmatch(observer); m != nil {
			text += " or " + m[1]
		}
		if got[c.Table] = text; c.Reason == "" {
			t.Errorf("%s: no reason is given", c.Table)
		}
	}
	for table, choice := range want {
		if got[table] != choice {
			t.Errorf("%s: %s, want %s", table, got[table], choice)
		}
	}
	if len(got) != len(want) {
		t.Errorf("choices are %v", got)
	}
	if t.Failed() {
		t.Log(made.Text)
	}
}

// TestInitRanksTables has 60 tables, of which the best do not come first by name: those
// that were changed most recently, by a column that says so.
func TestInitRanksTables(t *testing.T) {
	t.Parallel()
	var statements []string
	add := func(name, columns, values string) {
		statements = append(statements, fmt.Sprintf(`CREATE TABLE "%s" (id INTEGER PRIMARY KEY, %s)`, name, columns), fmt.Sprintf(`INSERT INTO "%s" VALUES (1, %s)`, name, values))
	}
	const changed, created = "updated_at TIMESTAMP NOT NULL", "created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL"
	for n := range 10 {
		add(fmt.Sprintf("a_static_%02d", n), "name TEXT", "'x'")
		add(fmt.Sprintf("b_old_%02d", n), changed, "'2001-05-01 10:00:00'")
		add(fmt.Sprintf("c_nullable_%02d", n), "updated_at TIMESTAMP", "CURRENT_TIMESTAMP")
		add(fmt.Sprintf("d_created_%02d", n), created, "CURRENT_TIMESTAMP")
		add(fmt.Sprintf("y_recent_%02d", n), changed, fmt.Sprintf("datetime('now', '-%d hours')", 30-n))
		add(fmt.Sprintf("z_%02d_now", n), changed, fmt.Sprintf("datetime('now', '-%d minutes')", n))
	}
	made, err := admin.Init(t.Context(), admin.InitOptions{URL: shop(t, statements...), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	// Kept by nothing and without an index, all are of one rank, and a change comes first.
	for n := range 10 {
		for place, want := range map[int]string{n: fmt.Sprintf("z_%02d_now", n), 10 + n: fmt.Sprintf("y_recent_%02d", 9-n)} {
			if got := made.Choices[place]; got.Table != want || !got.Active {
				t.Errorf("place %d: %s, want %s", place, got.Table, want)
			}
		}
	}
	if made.Active != 20 || made.Doubtful != 40 || made.Choices[20].Table != "b_old_00" || made.Choices[59].Table != "a_static_09" {
		t.Errorf("%d observers, %d commented out: %+v", made.Active, made.Doubtful, made.Choices)
	}
}

// TestInitNamesTypes leaves out what only puts the tables into an order.
func TestInitNamesTypes(t *testing.T) {
	t.Parallel()
	where := shop(t, `CREATE TABLE "0_sales_orders" (id INTEGER PRIMARY KEY)`, `CREATE TABLE "2fa_tokens" (id INTEGER PRIMARY KEY)`, `CREATE TABLE "2024" (id INTEGER PRIMARY KEY)`)
	made, err := admin.Init(t.Context(), admin.InitOptions{URL: where, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	types := make(map[string]string)
	for _, o := range load(t, []byte(made.Text)).Observers {
		types[o.Table] = o.ID + " " + o.Type
	}
	for table, want := range map[string]string{"0_sales_orders": "shop-sales-orders sales-orders", "2fa_tokens": "shop-2fa-tokens 2fa-tokens", "2024": "shop-2024 2024"} {
		if types[table] != want {
			t.Errorf("%s: %s, want %s", table, types[table], want)
		}
	}
}

// TestInitWithoutSamples has a table that is locked: what is known without a sample decides,
// and no value of a row is told.
func TestInitWithoutSamples(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	run(t, address, `CREATE TABLE stock (id INT PRIMARY KEY, updated_at TIMESTAMPTZ DEFAULT now() NOT NULL); INSERT INTO stock VALUES (1, '2024-05-01 10:00:00Z');
		ANALYZE stock; CREATE TABLE free (id INT PRIMARY KEY, updated_at TIMESTAMPTZ DEFAULT now() NOT NULL)`)
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE stock"); err != nil {
		t.Fatal(err)
	}
	unlocked := make(chan error, 1)
	timer := time.AfterFunc(4*time.Second, func() { _, err := conn.Exec(context.WithoutCancel(t.Context()), "COMMIT"); unlocked <- err })
	defer timer.Stop()
	made, err := admin.Init(t.Context(), admin.InitOptions{URL: address, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-unlocked; err != nil {
		t.Fatal(err)
	}
	for _, c := range made.Choices {
		if !c.Active || c.Timestamp != "updated_at" || strings.HasSuffix(c.Reason, "; sample not readable") != (c.Table == "stock") {
			t.Errorf("%+v", c)
		}
	}
	if strings.Contains(made.Text, "2024") || made.Active != 2 {
		t.Errorf("%d observers:\n%s", made.Active, made.Text)
	}
}

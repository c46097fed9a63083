package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/mariatest"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) {
	servertest.SideBySide(10)
	waittest.VerifyNoLeaks(mariatest.Wrap(m))
}

// The suite reads a DATETIME; what is different with a TIMESTAMP or a DATE is in
// the tests of this package.
func TestContract(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, fixture)
}

func fixture(t *testing.T) sourcetest.Fixture {
	url := mariatest.New(t)
	writer := connect(t, url)
	exec(t, writer, `CREATE TABLE unused (id int)`)
	exec(t, writer, `SET sql_mode = 'NO_BACKSLASH_ESCAPES,ALLOW_INVALID_DATES'`)
	return sourcetest.Fixture{
		Hides:       true,
		Source:      open(t, mysql.Options{URL: url}),
		Unreachable: open(t, mysql.Options{URL: "mysql://someone:secret@127.0.0.1:1/nowhere"}),
		In:          func(loc *time.Location) sourcetest.Source { return open(t, mysql.Options{URL: url, Location: loc}) },
		Exec: func(text string) {
			if text == "ANALYZE" {
				text = analyze(t, writer)
			}
			exec(t, writer, text)
			if strings.Contains(text, "CREATE TABLE orders") {
				exec(t, writer, `CREATE FUNCTION empty_orders() RETURNS int MODIFIES SQL DATA BEGIN DELETE FROM orders; RETURN 1; END`)
			}
		},
		Begin: func() (func(string), func()) {
			tx := connect(t, url)
			exec(t, tx, "BEGIN")
			return func(text string) { exec(t, tx, text) }, func() { exec(t, tx, "COMMIT") }
		},
		Lock: func() func() {
			holder := connect(t, url)
			exec(t, holder, "LOCK TABLES orders WRITE")
			return func() { exec(t, holder, "UNLOCK TABLES") }
		},
		Explain:     func(text string) string { return explain(t, writer, text) },
		Sort:        "filesort",
		Placeholder: "?",
		Now:         "NOW(6)",
		Write:       "SELECT empty_orders() AS order_id",
		Exact:       true,
		Kept: map[string]string{
			"stamped": "CREATE TABLE stamped (id int PRIMARY KEY, stamp datetime ON UPDATE now())",
			"hooked":  "CREATE TABLE hooked (id int PRIMARY KEY, stamp datetime); CREATE TRIGGER hook BEFORE UPDATE ON hooked FOR EACH ROW SET NEW.stamp = now()",
		},
		Types: map[string]string{
			"text": "varchar(2000)", "long": "longtext", "name": "varchar(200)", "integer": "bigint", "decimal": "decimal(60,30)", "float": "float", "double": "double", "bytes": "blob", "timestamp": "datetime(6)", "date": "date",
		},
		Decimal:  func(text string) string { return text },
		Poison:   "CONCAT('a', CHAR(0))",
		BadTime:  "'0000-00-00 00:00:00'",
		Timeless: "is a zero date, or one that no calendar has",
		Query:    func(text string) [][]string { return sourcetest.RowsOf(t, writer, text) },
		Edges:    edges(),
		Odd: []sourcetest.Odd{{
			Name: "a document that is none", Column: "json", Good: `'{"a": 1}'`, Bad: `'{"a": 1'`, Fault: "is not valid JSON",
			Before: "SET check_constraint_checks = 0", TableAlone: true,
		}},
		KeyFamilies: []sourcetest.KeyFamily{
			{
				Types: []string{
					"decimal(8,0)", "decimal(10,2)", "decimal(12,4)", "decimal(12,4) unsigned zerofill", "bigint", "int(6) unsigned zerofill",
					"varchar(20)", "varchar(40)", "char(10)", "char(20)",
				},
				Literal: func(n int) string { return fmt.Sprint(n*7 + 1) },
			},
			{
				Types:   []string{"datetime", "datetime(3)", "datetime(6)", "timestamp(0)", "timestamp(6)"},
				Literal: func(n int) string { return fmt.Sprintf("'2024-05-01 10:00:%02d'", n) },
			},
			{
				Types:   []string{"binary(2)", "binary(4)", "binary(8)"},
				Literal: func(n int) string { return fmt.Sprintf("x'61%02x'", n) },
			},
		},
		AlterKey: func(_, to string, _ []string) []string {
			return []string{"ALTER TABLE changing MODIFY k " + to + " NOT NULL"}
		},
		Wider: []sourcetest.Wider{
			{Narrow: "decimal(10,0)", Wide: "decimal(12,2)", Values: []string{"-10", "0", "7", "100"}, Keys: []string{"-10", "0", "7", "100"}},
			{Narrow: "decimal(10,2)", Wide: "decimal(12,2)", Values: []string{"1.50"}, Keys: []string{"1.5"}, Same: true},
			{Narrow: "decimal(4,1) unsigned zerofill", Wide: "decimal(8,2) unsigned zerofill", Values: []string{"0", "7.5"}, Keys: []string{"0", "7.5"}},
			{Narrow: "int(4) unsigned zerofill", Wide: "int(8) unsigned zerofill", Values: []string{"0", "7", "100"}, Keys: []string{"0", "7", "100"}, Same: true},
			{Narrow: "int(4)", Wide: "int(8)", Values: []string{"0", "7", "100"}, Keys: []string{"0", "7", "100"}, Same: true},
			{Narrow: "datetime", Wide: "datetime(3)", Values: []string{"'2024-05-01_10:00:00'"}, Keys: []string{"2024-05-01 10:00:00"}},
			{Narrow: "time(1)", Wide: "time(6)", Values: []string{"'-00:00:10.5'", "'00:00:00'", "'10:00:00.5'"}, Keys: []string{"-00:00:10.5", "00:00:00", "10:00:00.5"}},
			{Narrow: "binary(2)", Wide: "binary(4)", Values: []string{"x'00'", "x'0061'", "x'61'", "x'6110'"}, Keys: []string{"00", "0061", "61", "6110"}, Untold: true},
			{Narrow: "varbinary(2)", Wide: "varbinary(4)", Values: []string{"x'00'", "x'6100'"}, Keys: []string{"00", "6100"}, Same: true},
			{Narrow: "char(4)", Wide: "char(8)", Values: []string{"'a'", "'b '"}, Keys: []string{"a", "b"}, Same: true},
			{Narrow: "bit(4)", Wide: "bit(8)", Values: []string{"b'0'", "b'101'"}, Keys: []string{"0", "5"}, Same: true},
		},
	}
}

// analyze names all tables: the statement of this dialect knows no other way.
func analyze(t *testing.T, conn *sql.Conn) string {
	t.Helper()
	var tables string
	err := conn.QueryRowContext(context.Background(),
		"SELECT GROUP_CONCAT(table_name) FROM information_schema.tables WHERE table_schema = DATABASE()").Scan(&tables)
	if err != nil {
		t.Fatal(err)
	}
	return "ANALYZE TABLE " + tables
}

func open(t testing.TB, o mysql.Options) *mysql.Source {
	t.Helper()
	return sourcetest.Open(t, mysql.Open, o)
}

// connect is the program that owns the database. It may write what the standard
// calls a literal, and zero dates.
func connect(t testing.TB, url string) *sql.Conn {
	t.Helper()
	return mariatest.Connect(t, url, map[string]string{"sql_mode": "'NO_BACKSLASH_ESCAPES'"})
}

func exec(t testing.TB, conn *sql.Conn, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := conn.ExecContext(ctx, text); err != nil {
		t.Fatalf("%s: %v", text[:min(len(text), 100)], err)
	}
}

func explain(t testing.TB, conn *sql.Conn, text string) string {
	t.Helper()
	var lines []string
	for _, cells := range sourcetest.RowsOf(t, conn, "EXPLAIN "+text) {
		lines = append(lines, strings.Join(cells, " "))
	}
	return strings.Join(lines, "\n")
}

// TestTablesInOtherLetters finds a table whose name is spelled otherwise, unless there are two.
func TestTablesInOtherLetters(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	exec(t, connect(t, address), "CREATE TABLE One (id int PRIMARY KEY); CREATE TABLE two (a int PRIMARY KEY); CREATE TABLE Two (b int PRIMARY KEY)")
	s := open(t, mysql.Options{URL: address})
	for asked, want := range map[string]string{"One.id": "One", "one.id": "One", "two.a": "two", "Two.b": "Two", "TWO.a": "", "Two.a": ""} {
		table, key, _ := strings.Cut(asked, ".")
		d, err := s.Describe(t.Context(), observer.Query{Table: table, Key: []string{key}})
		if (err == nil) != (want != "") || want != "" && d.Table != database(address)+"."+want {
			t.Errorf("%s: %s, %v, want %s", asked, d.Table, err, want)
		}
	}
}

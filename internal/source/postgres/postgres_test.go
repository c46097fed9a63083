package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) {
	servertest.SideBySide(10)
	waittest.VerifyNoLeaks(pgtest.Wrap(m))
}

func TestContract(t *testing.T) {
	t.Parallel()
	for column, now := range map[string]string{
		"timestamptz": "now()",
		"timestamp":   "(now() AT TIME ZONE 'UTC')",
	} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			sourcetest.Run(t, func(t *testing.T) sourcetest.Fixture { return fixture(t, column, now) })
		})
	}
}

func fixture(t *testing.T, column, now string) sourcetest.Fixture {
	url := pgtest.New(t)
	writer := connect(t, url)
	exec(t, writer, `CREATE TABLE unused (id int)`)
	return sourcetest.Fixture{
		Source:      open(t, postgres.Options{URL: url}),
		Unreachable: open(t, postgres.Options{URL: "postgres://someone:secret@127.0.0.1:1/nowhere"}),
		In:          func(loc *time.Location) sourcetest.Source { return open(t, postgres.Options{URL: url, Location: loc}) },
		Exec: func(text string) {
			if strings.Contains(text, "CREATE TABLE orders") {
				text += `; CREATE FUNCTION empty_orders() RETURNS int LANGUAGE sql AS 'DELETE FROM orders; SELECT 1'`
			}
			exec(t, writer, text)
		},
		Begin: func() (func(string), func()) {
			tx := connect(t, url)
			exec(t, tx, "BEGIN")
			return func(text string) { exec(t, tx, text) }, func() { exec(t, tx, "COMMIT") }
		},
		Lock: func() func() {
			tx := connect(t, url)
			exec(t, tx, "BEGIN; LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
			return func() { exec(t, tx, "COMMIT") }
		},
		Explain:     func(text string) string { return explain(t, writer, text) },
		Sort:        "Sort",
		Placeholder: "$1",
		Now:         now,
		Write:       "SELECT empty_orders() AS order_id",
		Exact:       true,
		Kept: map[string]string{
			"hooked": `CREATE TABLE hooked (id int PRIMARY KEY, stamp timestamp);
				CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.stamp = now(); RETURN NEW; END';
				CREATE TRIGGER hook BEFORE UPDATE ON hooked FOR EACH ROW EXECUTE FUNCTION touch()`,
			"named": `CREATE TABLE named (id int PRIMARY KEY, stamp timestamp);
				CREATE TRIGGER hook BEFORE UPDATE ON named FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger('stamp')`,
			"parts": `CREATE TABLE parts (id int, stamp timestamp DEFAULT now()) PARTITION BY HASH (id)`,
		},
		Types: map[string]string{
			"text": "text", "long": "text", "name": "text", "integer": "bigint", "decimal": "numeric", "float": "real", "double": "double precision", "bytes": "bytea", "timestamp": column, "date": "date",
		},
		Decimal:  func(text string) string { return text },
		BadTime:  "'infinity'",
		Timeless: "is infinite or outside of the years 1 to 9999",
		Query:    func(text string) [][]string { return rowsOf(t, writer, text) },
		Edges:    edges(),
		Odd:      odd(t, writer),
		KeyFamilies: []sourcetest.KeyFamily{
			{
				Types:   []string{"numeric(8,0)", "numeric(10,2)", "numeric(12,4)", "numeric", "bigint", "varchar(20)", "varchar(40)", "char(10)", "char(20)"},
				Literal: func(n int) string { return fmt.Sprint(n*7 + 1) },
			},
			{
				Types:   []string{"timestamp(0)", "timestamp(3)", "timestamp", "timestamptz(0)", "timestamptz"},
				Literal: func(n int) string { return fmt.Sprintf("'2024-05-01 10:00:%02d'", n) },
			},
		},
		AlterKey: func(from, to string, _ []string) []string {
			using := "k::" + to
			if from = strings.TrimRight(from, "(,0123456789)"); strings.Contains(from, "char") && !strings.Contains(to, "char") {
				using = "k::numeric::" + to
			}
			return []string{"ALTER TABLE changing ALTER k TYPE " + to + " USING " + using}
		},
		Wider: []sourcetest.Wider{
			{Narrow: "numeric(10,0)", Wide: "numeric(12,2)", Values: []string{"-10", "0", "7", "100", "'NaN'"}, Keys: []string{"-10", "0", "7", "100", "NaN"}},
			{Narrow: "numeric(10,3)", Wide: "numeric", Values: []string{"1.50", "1.51"}, Keys: []string{"1.5", "1.51"}},
			{Narrow: "numeric(10,2)", Wide: "numeric(12,2)", Values: []string{"1.50"}, Keys: []string{"1.5"}, Same: true},
			{Narrow: "char(4)", Wide: "char(8)", Values: []string{"''", "'a'", "'b'"}, Keys: []string{" ", "a", "b"}},
			{Narrow: "varchar(4)", Wide: "varchar(8)", Values: []string{"'a'", "'b '"}, Keys: []string{"a", "b "}, Same: true},
			{Narrow: "timestamp(0)", Wide: "timestamp(3)", Values: []string{"'2024-05-01 10:00:00'"}, Keys: []string{"2024-05-01 10:00:00"}, Same: true},
			{Narrow: "time(0)", Wide: "time(3)", Values: []string{"'10:00:00'"}, Keys: []string{"10:00:00"}, Same: true},
			{Narrow: "bit varying(4)", Wide: "bit varying(8)", Values: []string{"B'0'", "B'100'"}, Keys: []string{"0", "100"}, Same: true},
		},
	}
}

func open(t testing.TB, o postgres.Options) *postgres.Source {
	t.Helper()
	return sourcetest.Open(t, postgres.Open, o)
}

// connect is the program that owns the database.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["timezone"], config.RuntimeParams["client_encoding"] = "UTC", "UTF8"
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t testing.TB, conn *pgx.Conn, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := conn.PgConn().Exec(ctx, text).ReadAll(); err != nil {
		t.Fatalf("%s: %v", text[:min(len(text), 100)], err)
	}
}

func explain(t testing.TB, conn *pgx.Conn, text string) string {
	t.Helper()
	rows, err := conn.Query(context.Background(), "EXPLAIN "+text)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

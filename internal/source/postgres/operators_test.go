package postgres_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// qualified finds the operators that are written with their schema.
var qualified = regexp.MustCompile(`OPERATOR\([^.]+\.([^)]+)\)`)

// The operators are those that the index knows, whatever the path of the reader says:
// for who has not the schema of citext in it, >= of a citext is that of text.
func TestReadByKeyOfAnExtension(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	writer := connect(t, address)
	exec(t, writer, `CREATE SCHEMA "Ext"; CREATE EXTENSION citext SCHEMA "Ext"; CREATE DOMAIN "Ext".sku AS "Ext".citext; CREATE TYPE "Ext".state AS ENUM ('b', 'A', 'C')`)
	for table, columns := range map[string]string{
		"alone":  `k "Ext".citext PRIMARY KEY`,
		"domain": `k "Ext".sku PRIMARY KEY`,
		"state":  `k "Ext".state PRIMARY KEY`,
	} {
		exec(t, writer, fmt.Sprintf(`CREATE TABLE %[1]s (%[2]s, at timestamptz NOT NULL DEFAULT now()); INSERT INTO %[1]s VALUES ('b'), ('A'), ('C')`, table, columns))
	}
	exec(t, writer, `CREATE TABLE before (k "Ext".citext, n int, at timestamptz, PRIMARY KEY (k, n)); INSERT INTO before SELECT k, n, at FROM alone, generate_series(1, 2) n;
		CREATE TABLE behind (k "Ext".citext, n int, at timestamptz, PRIMARY KEY (n, k)); INSERT INTO behind TABLE before`)
	role := pgtest.NewRole(t, address, "SELECT ON ALL TABLES IN SCHEMA public", `USAGE ON SCHEMA "Ext"`)
	s, stranger := open(t, postgres.Options{URL: role}), open(t, postgres.Options{URL: pgtest.NewRole(t, address, "SELECT ON ALL TABLES IN SCHEMA public")})
	for table, key := range map[string][]string{"alone": {"k"}, "domain": {"k"}, "state": {"k"}, "before": {"k", "n"}, "behind": {"k", "n"}} {
		q := observer.Query{Table: table, Key: key}
		sourcetest.ReadByKeyAlone(t, s, q)
		q.Timestamp = "at"
		if sourcetest.TiedByKey(t, s, q) {
			t.Errorf("%s: a read begins among rows of one timestamp, by an operator that is not the server's", table)
		}
		q.Timestamp = ""
		// An operator of a schema that is closed cannot be written. Those of an enum are the server's.
		if got := sourcetest.OrdersByKey(t, stranger, q); got != (table == "state") {
			t.Errorf("%s, for a role without USAGE: an index serves: %t", table, got)
		}
	}
}

// An operator that is written with its schema is that of the index: the plans are those
// of the bare ones, where the path has its schema.
func TestQualifiedOperatorsUseTheIndex(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	writer := connect(t, address)
	exec(t, writer, `CREATE EXTENSION citext; CREATE DOMAIN moment AS timestamptz; CREATE DOMAIN nr AS int; CREATE TYPE state AS ENUM ('1', '2');
		SET enable_seqscan = off; SET enable_bitmapscan = off`)
	s := open(t, postgres.Options{URL: address})
	const cursor = "2026-01-01 00:00:00.000000"
	for n, test := range []struct{ key, at string }{
		{"smallint", "timestamptz"}, {"bigint", "timestamp"}, {"numeric", "date"}, {"varchar(9)", "moment"}, {"char(3)", "timestamptz(3)"},
		{"uuid", "timestamptz"}, {"nr", "timestamptz"}, {"state", "timestamptz"}, {"citext", "timestamptz"}, {"name", "timestamptz"}, {"bytea", "timestamptz"},
	} {
		table := fmt.Sprintf("t%d", n)
		exec(t, writer, fmt.Sprintf(`CREATE TABLE %[1]s (k %[2]s, n int, at %[3]s NOT NULL, PRIMARY KEY (k, n)); CREATE INDEX ON %[1]s (at, k)`, table, test.key, test.at))
		q := observer.Query{Table: table, Key: []string{"k", "n"}, Timestamp: "at"}
		cursor, key := cursor, "1"
		if test.at == "date" {
			cursor = cursor[:len("2026-01-01")]
		}
		if test.key == "uuid" {
			key = "ffffffff-ffff-ffff-ffff-ffffffffffff"
		}
		ranges := []observer.Range{{From: cursor}, {From: cursor, Before: cursor}, {From: cursor, Limit: 10}}
		if test.key != "citext" { // Rows of two schemas are compared otherwise, see below.
			ranges = append(ranges, observer.Range{ByKey: true, Key: observer.JoinKey([]string{key, "1"})})
		}
		for _, in := range ranges {
			ours, err := s.SQL(t.Context(), q, in)
			if err != nil {
				t.Fatal(err)
			}
			bounds := strings.NewReplacer("$1", "'"+cursor+"'", "$2", "'"+cursor+"'")
			if in.ByKey {
				bounds = strings.NewReplacer("$1", "'"+key+"'", "$2", "'1'")
			}
			bare := qualified.ReplaceAllString(ours.Full, "$1")
			if got, want := explain(t, writer, bounds.Replace(ours.Full)), explain(t, writer, bounds.Replace(bare)); bare == ours.Full || got != want || !strings.Contains(got, "Index Cond") {
				t.Errorf("key %s, timestamp %s: %s\nis run as\n%s\nwithout schemas as\n%s", test.key, test.at, ours.Full, got, want)
			}
		}
	}
	exec(t, writer, `CREATE TABLE mixed (k citext, n int, PRIMARY KEY (k, n))`)
	text, err := s.SQL(t.Context(), observer.Query{Table: "mixed", Key: []string{"k", "n"}}, observer.Range{ByKey: true, Key: "1/2"})
	plan := explain(t, writer, strings.NewReplacer("$1", "'1'", "$2", "'1'", "$3", "'1'", "$4", "'2'").Replace(text.Full))
	found := qualified.FindAllString(text.Full, -1)
	if err != nil || !strings.Contains(plan, "Index Cond: (k >= '1'") || !slices.Contains(found, `OPERATOR("public".=)`) || !slices.Contains(found, "OPERATOR(pg_catalog.>=)") {
		t.Errorf("%s\nis run as\n%s, %v", text.Full, plan, err)
	}
}

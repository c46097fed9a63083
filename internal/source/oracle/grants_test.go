package oracle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
)

// deployed are the statements of deploy/sql/oracle.sql, as SQL*Plus would send
// them.
func deployed(t *testing.T, reader, owner, table string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "sql", "oracle.sql"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "--") && !strings.HasPrefix(line, "DEFINE ") {
			lines = append(lines, line)
		}
	}
	values := strings.NewReplacer("&reader.", reader, "&reader", reader, "&password", password, "&owner.", owner, "&table", table)
	var statements []string
	for _, s := range strings.Split(values.Replace(strings.Join(lines, "")), ";") {
		if s = strings.TrimSpace(s); s != "" {
			statements = append(statements, s)
		}
	}
	return statements
}

// TestLeastPrivilege runs the shipped grants, and takes them away one by one, the
// last first, to see what each of them is good for.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{}, "reader").withOrders(3)
	statements := deployed(t, "READER", "APP", "ORDERS")
	for _, s := range statements {
		if strings.HasPrefix(s, "CREATE USER") { // The engine need not know the password, the server does.
			s = strings.Replace(s, password, "x", 1)
		}
		d.exec(s)
	}
	revoke := func(grant string) {
		last := statements[len(statements)-1]
		if !strings.Contains(last, grant) {
			t.Fatalf("the last grant is %s, want %s", last, grant)
		}
		statements = statements[:len(statements)-1]
		d.exec(strings.NewReplacer("GRANT", "REVOKE", " TO ", " FROM ").Replace(last))
	}
	s := d.open(oracle.Options{URL: d.url("reader")})
	q := orders()
	q.Table = "app.orders"
	got, err := s.Describe(t.Context(), q)
	if err != nil || !got.HorizonExact || len(got.Warnings) > 0 || got.KeyUnique != "yes" || got.OrderIndexed != "yes" {
		t.Errorf("with all grants: %+v, %v", got, err)
	}
	if rows := sourcetest.ReadAll(t, s, q, observer.Range{}); len(rows) != 3 {
		t.Errorf("with all grants: %d rows", len(rows))
	}
	if p, err := s.Plan(t.Context(), q, observer.Range{From: "2024-05-01 00:00:01"}); err != nil || !strings.Contains(p.Text, "ORDERS_BY_TIME") {
		t.Errorf("with all grants: plan %+v, %v", p, err)
	}
	revoke("V_$DATABASE")
	if id, err := s.Identity(t.Context()); err != nil || !strings.HasPrefix(id, "name:") {
		t.Errorf("without V$DATABASE: identity %s, %v", id, err)
	}
	revoke("GV_$TRANSACTION")
	if h := horizon(t, s, q); h.Exact {
		t.Errorf("without GV$TRANSACTION: %+v", h)
	}
	revoke("GRANT READ ON APP.ORDERS")
	if _, err := sourcetest.TryRead(s, q, observer.Range{}); observer.ClassOf(err) != observer.ClassQuery || !strings.Contains(err.Error(), "was not granted") {
		t.Errorf("without the table: %v", err)
	}
}

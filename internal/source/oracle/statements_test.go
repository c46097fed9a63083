package oracle_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
	"github.com/observerd/observerd/test/kit/oratest/wire"
)

var update = flag.Bool("update", false, "write the golden files")

// goldenTables are those of the golden statements.
var goldenTables = []string{
	"CREATE TABLE orders_date (order_id NUMBER(19) PRIMARY KEY, status VARCHAR2(20), updated_at DATE NOT NULL)",
	"CREATE TABLE orders_timestamp (order_id NUMBER(19) PRIMARY KEY, status VARCHAR2(20), updated_at TIMESTAMP(6) NOT NULL)",
	"CREATE TABLE orders_zone (order_id NUMBER(19) PRIMARY KEY, status VARCHAR2(20), updated_at TIMESTAMP(6) WITH TIME ZONE NOT NULL)",
	"CREATE TABLE orders_local (order_id NUMBER(19) PRIMARY KEY, status VARCHAR2(20), updated_at TIMESTAMP(6) WITH LOCAL TIME ZONE NOT NULL)",
	"CREATE TABLE orders_loose (order_id NUMBER(19) PRIMARY KEY, status VARCHAR2(20), updated_at TIMESTAMP(6))",
	"CREATE TABLE stock (order_id NUMBER(19) CONSTRAINT stock_pk PRIMARY KEY, warehouse CHAR(4) NOT NULL, counted_on DATE NOT NULL, sku NUMBER NOT NULL, updated_at DATE)",
	"CREATE INDEX stock_key ON stock (warehouse, sku, counted_on, order_id)",
	`CREATE TABLE "Types" (id NUMBER PRIMARY KEY, pad CHAR(10), nation NVARCHAR2(10), price NUMBER(12,2), ratio BINARY_DOUBLE, bytes RAW(16), note CLOB,
		on_day DATE NOT NULL, at TIMESTAMP(9), at_zone TIMESTAMP(3) WITH TIME ZONE, at_local TIMESTAMP(3) WITH LOCAL TIME ZONE)`,
}

// golden are the reads of which the statements are kept.
var golden = map[string]struct {
	query observer.Query
	in    observer.Range
}{
	"date":             {ordersOf("orders_date"), observer.Range{From: "2024-05-01 10:00:00"}},
	"timestamp":        {ordersOf("orders_timestamp"), observer.Range{From: "2024-05-01 10:00:00.000000000"}},
	"zone":             {ordersOf("orders_zone"), observer.Range{From: "2024-05-01 10:00:00.000000000Z"}},
	"local":            {ordersOf("orders_local"), observer.Range{From: "2024-05-01 10:00:00.000000000Z"}},
	"first":            {ordersOf("orders_date"), observer.Range{}},
	"limit":            {ordersOf("orders_date"), observer.Range{From: "2024-05-01 10:00:00", Limit: 500}},
	"range":            {ordersOf("orders_date"), observer.Range{From: "2024-05-01 10:00:00", Before: "2024-05-02 00:00:00", Limit: 500}},
	"nullable":         {ordersOf("orders_loose"), observer.Range{From: "2024-05-01 10:00:00.000000000"}},
	"nullable-first":   {ordersOf("orders_loose"), observer.Range{}},
	"nullable-limit":   {ordersOf("orders_loose"), observer.Range{Limit: 500}},
	"undated":          {ordersOf("orders_loose"), observer.Range{Part: observer.PartUndated}},
	"undated-from":     {ordersOf("orders_loose"), observer.Range{Part: observer.PartUndated, Key: "17"}},
	"nullable-skipped": {skipped(ordersOf("orders_loose")), observer.Range{}},
	"snapshot":         {observer.Query{Stream: "orders", Table: "orders_date", Key: []string{"order_id"}}, observer.Range{}},
	"by-key":           {ordersOf("stock"), observer.Range{ByKey: true}},
	"by-key-from":      {stock, observer.Range{ByKey: true, Key: "w1/2024-05-01T10:00:00/-7.5"}},
	"query": {observer.Query{
		Stream: "late orders", SQL: "SELECT order_id, updated_at FROM orders_date WHERE status = 'late' -- the others do not matter",
		Key: []string{"order_id"}, Timestamp: "updated_at",
	}, observer.Range{From: "2024-05-01 10:00:00"}},
	"types": {observer.Query{Stream: "it's */ a :bind", Table: "Types", Key: []string{"pad", "id"}, Timestamp: "on_day"}, observer.Range{}},
}

var stock = observer.Query{Stream: "stock", Table: "stock", Key: []string{"warehouse", "counted_on", "sku"}}

func ordersOf(table string) observer.Query {
	return observer.Query{Stream: "orders", Table: table, Key: []string{"order_id"}, Timestamp: "updated_at"}
}

func skipped(q observer.Query) observer.Query {
	q.NullTimestamp = observer.NullSkip
	return q
}

// TestStatements compares every statement that is sent with testdata/statements. All
// versions are sent the same.
func TestStatements(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]int{"11g": 11, "12c": 12} {
		t.Run(name, func(t *testing.T) {
			d := emulate(t, engine.Options{Version: version, Now: func() time.Time { return time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC) }}, "reader")
			d.exec(goldenTables...)
			d.seen.instead(func(s wire.Statement) (bool, error) { // a block is more than the engine can
				return strings.HasPrefix(s.SQL, "DECLARE"), nil
			})
			d.exec(`CREATE USER reader IDENTIFIED BY "x"`, "GRANT CREATE SESSION TO reader", "GRANT SELECT ON orders_date TO reader")
			s := d.open(oracle.Options{Name: "erp", Node: "node-1"})
			for name, g := range golden {
				sourcetest.ReadAll(t, s, g.query, g.in) // looks the table up
				d.seen.taken()
				sourcetest.ReadAll(t, s, g.query, g.in)
				compare(t, "read-"+name, d.seen.taken())
			}
			goldenSetUp(t, d)
		})
	}
}

// goldenSetUp keeps what is sent besides the reads.
func goldenSetUp(t *testing.T, d *database) {
	s := d.open(oracle.Options{Name: "erp", Node: "node-1", PoolSize: 1})
	q := ordersOf("orders_date")
	ctx := t.Context()
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"logon-and-identity", func() error { _, err := s.Identity(ctx); return err }},
		{"identity", func() error { _, err := s.Identity(ctx); return err }},
		{"lookup", func() error { _, err := s.SQL(ctx, q, observer.Range{}); return err }},
		{"horizon", func() error { _, err := s.Horizon(ctx, q); return err }},
		{"describe", func() error { _, err := s.Describe(ctx, q); return err }},
		{"plan", func() error { _, err := s.Plan(ctx, q, observer.Range{From: "2024-05-01 10:00:00"}); return err }},
	} {
		d.seen.taken()
		if err := step.run(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		compare(t, step.name, d.seen.taken())
	}
	blind := d.open(oracle.Options{URL: d.url("reader"), PoolSize: 1})
	q.Table = "app.orders_date"
	if _, err := blind.Horizon(ctx, q); err != nil {
		t.Error(err)
	}
	d.seen.taken()
	if _, err := blind.Horizon(ctx, q); err != nil {
		t.Error(err)
	}
	compare(t, "horizon-without-grants", d.seen.taken())
}

func compare(t *testing.T, name string, statements []string) {
	t.Helper()
	path := filepath.Join("testdata", "statements", name+".sql")
	got := strings.Join(statements, "\n/\n") + "\n/\n"
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s: sent\n%s\nwant (run go test -update if it is meant so)\n%s\n%v", path, got, want, err)
	}
	for _, statement := range statements {
		if text := strings.TrimSpace(statement); strings.HasSuffix(text, ";") && !strings.HasSuffix(text, "END;") || strings.Contains(text, "LIMIT ") || strings.Contains(text, "$1") {
			t.Errorf("%s: %s", path, text)
		}
	}
}

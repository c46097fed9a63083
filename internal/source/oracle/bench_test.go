package oracle_test

import (
	"database/sql"
	"iter"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/internal/source/oracle/client"
	"github.com/observerd/observerd/internal/source/oracle/goora"
	"github.com/observerd/observerd/test/kit/oratest/engine"
)

const benchRows = 100_000

// manyRows fills a table with orders, one a second.
func manyRows(b *testing.B, d *database) {
	b.Helper()
	d.exec("CREATE TABLE orders (order_id NUMBER(19) PRIMARY KEY, customer VARCHAR2(40), status VARCHAR2(20), total NUMBER(12,2), updated_at TIMESTAMP NOT NULL)",
		"CREATE INDEX orders_by_time ON orders (updated_at, order_id)")
	var rows iter.Seq[[]any] = func(yield func([]any) bool) {
		at := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
		for i := range int64(benchRows) {
			if !yield([]any{i, "customer of an order", "RELEASED", 199.95, at.Add(time.Duration(i) * time.Second)}) {
				return
			}
		}
	}
	if err := d.engine.BulkInsert("ORDERS", rows); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRead streams rows through the source; one operation is one row.
func BenchmarkRead(b *testing.B) {
	d := emulate(b, engine.Options{})
	manyRows(b, d)
	s := d.open(oracle.Options{})
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; {
		rows, err := s.Read(b.Context(), orders(), observer.Range{})
		if err != nil {
			b.Fatal(err)
		}
		for left > 0 && rows.Next() {
			left--
		}
		if rows.Err() != nil {
			b.Fatal(rows.Err())
		}
		_ = rows.Close()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkBareDriver reads the same columns with nothing above the driver.
func BenchmarkBareDriver(b *testing.B) {
	d := emulate(b, engine.Options{})
	manyRows(b, d)
	target, err := client.ParseURL(d.url("app"))
	if err != nil {
		b.Fatal(err)
	}
	target.FetchSize = 1000
	connector, err := goora.Open(target)
	if err != nil {
		b.Fatal(err)
	}
	db := sql.OpenDB(connector)
	b.Cleanup(func() { _ = db.Close() })
	values := make([]sql.RawBytes, 5)
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; {
		rows, err := db.QueryContext(b.Context(), "SELECT order_id, customer, status, total, TO_CHAR(updated_at, 'SYYYY-MM-DD HH24:MI:SS.FF9') FROM orders q ORDER BY q.updated_at, q.order_id")
		if err != nil {
			b.Fatal(err)
		}
		for left > 0 && rows.Next() {
			if err := rows.Scan(&values[0], &values[1], &values[2], &values[3], &values[4]); err != nil {
				b.Fatal(err)
			}
			left--
		}
		if rows.Err() != nil {
			b.Fatal(rows.Err())
		}
		_ = rows.Close()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

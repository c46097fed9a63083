package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/sqlite"
)

// BenchmarkRead streams rows of an order from a file; one operation is one row.
func BenchmarkRead(b *testing.B) {
	path := filepath.Join(b.TempDir(), "orders.db")
	exec(b, openWriter(b, path), `
		CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer TEXT, status TEXT, total REAL, updated_at DATETIME NOT NULL);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
		INSERT INTO orders SELECT i, 'customer ' || i, 'RELEASED', i * 1.25, datetime(1714521600 + i, 'unixepoch') FROM n;
		CREATE INDEX orders_by_time ON orders (updated_at, order_id)`)
	s := open(b, sqlite.Options{URL: "sqlite:" + path})
	q := observer.Query{Table: "orders", Key: []string{"order_id"}, Timestamp: "updated_at"}
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; {
		rows, err := s.Read(b.Context(), q, observer.Range{})
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

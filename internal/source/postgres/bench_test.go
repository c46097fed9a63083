package postgres_test

import (
	"fmt"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// BenchmarkRead streams rows of an order from a real server; one operation is
// one row.
func BenchmarkRead(b *testing.B) {
	const total = 200_000
	url := pgtest.New(b)
	exec(b, connect(b, url), fmt.Sprintf(`
		CREATE TABLE orders (order_id bigint PRIMARY KEY, customer text, status text, total numeric, updated_at timestamptz NOT NULL);
		INSERT INTO orders SELECT i, 'customer ' || i, 'RELEASED', i * 1.25, '2024-05-01'::timestamptz + i * interval '1 second'
		FROM generate_series(1, %d) AS i; CREATE INDEX ON orders (updated_at, order_id); ANALYZE orders`, total))
	s := open(b, postgres.Options{URL: url})
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

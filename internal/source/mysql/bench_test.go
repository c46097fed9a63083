package mysql_test

import (
	"database/sql"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/test/kit/mariatest"
)

const benchTable = `CREATE TABLE orders (order_id bigint PRIMARY KEY, customer varchar(40), status varchar(20), total decimal(12,2), updated_at datetime(3) NOT NULL);
	INSERT INTO orders SELECT seq, CONCAT('customer ', seq), 'RELEASED', seq * 1.25, '2024-05-01' + INTERVAL seq SECOND FROM seq_1_to_200000;
	CREATE INDEX orders_by_time ON orders (updated_at, order_id); ANALYZE TABLE orders`

// BenchmarkRead streams rows of an order from a real server; one operation is
// one row.
func BenchmarkRead(b *testing.B) {
	url := mariatest.New(b)
	exec(b, connect(b, url), benchTable)
	s := open(b, mysql.Options{URL: url})
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

// BenchmarkDriver only reads the same rows.
func BenchmarkDriver(b *testing.B) {
	url := mariatest.New(b)
	conn := connect(b, url)
	exec(b, conn, benchTable)
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; {
		rows, err := conn.QueryContext(b.Context(), "SELECT * FROM orders ORDER BY updated_at, order_id")
		if err != nil {
			b.Fatal(err)
		}
		values := make([]sql.RawBytes, 5)
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

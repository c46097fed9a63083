package sqlite

import (
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// BenchmarkEncode makes a row of its values, without a database.
func BenchmarkEncode(b *testing.B) {
	q := observer.Query{Table: "orders", Key: []string{"order_id"}, Timestamp: "updated_at"}
	selection, err := source.Select(q, []source.Column{
		{Name: "order_id"}, {Name: "customer"}, {Name: "status"}, {Name: "total"}, {Name: "updated_at"},
	}, "orders")
	if err != nil {
		b.Fatal(err)
	}
	builder, err := source.NewBuilder(q, selection)
	if err != nil {
		b.Fatal(err)
	}
	e := cells{selection: selection, location: time.UTC}
	e.values = []any{int64(1234567), "customer 1234567", "RELEASED", 199.95, "2024-05-01 10:00:00.123", nil}
	b.ReportAllocs()
	for b.Loop() {
		if row := builder.Row(&e); row.Err != nil {
			b.Fatal(row.Err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// BenchmarkEncode makes a row of its values, without a server.
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
	p := plan{selection: selection, time: timeUTC}
	for _, oid := range []uint32{pgtype.Int8OID, pgtype.TextOID, pgtype.TextOID, pgtype.NumericOID, pgtype.TimestamptzOID} {
		p.kinds = append(p.kinds, kindOf(oid))
	}
	e := encoder{plan: p, builder: builder, location: time.UTC}
	values := [][]byte{
		[]byte("1234567"), []byte("customer 1234567"), []byte("RELEASED"), []byte("199.95"), []byte("2024-05-01 10:00:00.123456+00"),
	}
	b.ReportAllocs()
	for b.Loop() {
		if row := e.encode(values); row.Err != nil {
			b.Fatal(row.Err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

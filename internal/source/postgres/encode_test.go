package postgres

import (
	"encoding/binary"
	"encoding/json"
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
	e := cells{plan: p, location: time.UTC, numbered: []bool{false, false, false, false, true}}
	e.values = [][]byte{
		[]byte("1234567"), []byte("customer 1234567"), []byte("RELEASED"), []byte("199.95"),
		binary.BigEndian.AppendUint64(nil, 767872800123456), // 2024-05-01 10:00:00.123456
	}
	b.ReportAllocs()
	for b.Loop() {
		if row := builder.Row(&e); row.Err != nil {
			b.Fatal(row.Err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// Whatever a column of numbers holds, the member is JSON: a number as it stands,
// everything else as text.
func TestNumbers(t *testing.T) {
	t.Parallel()
	selection, err := source.Select(observer.Query{Table: "orders", Key: []string{"id"}}, []source.Column{{Name: "id"}}, "orders")
	if err != nil {
		t.Fatal(err)
	}
	b, err := source.NewBuilder(observer.Query{}, selection)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []kind{kindInteger, kindNumber, kindBool} {
		for _, text := range []string{
			"0", "-7", "10", "0.5", "-12.50", "1e+20", "1.5e-07", "3e5",
			"", "-", "A7", "7A", "007", "-01", ".5", "5.", "1e", "1e+", "1.e5", "NaN", "-Infinity", "1 2", "0x1f", "+1", `"`,
		} {
			b.Start(0)
			appendCell(b, 0, k, []byte(text))
			if !json.Valid(b.Data) {
				t.Errorf("%q as kind %d is %s", text, k, b.Data)
			}
			if want := json.Valid([]byte(text)); k != kindBool && want != (string(b.Data) == text) {
				t.Errorf("%q is %s", text, b.Data)
			}
		}
	}
}

package goora_test

import (
	"database/sql"
	"fmt"
	"testing"

	go_ora "github.com/sijms/go-ora/v2"

	"github.com/observerd/observerd/internal/source/oracle/goora"
	"github.com/observerd/observerd/test/kit/oratest"
)

// BenchmarkRows reads rows through the layer and through the bare driver.
func BenchmarkRows(b *testing.B) {
	s, err := oratest.Open(options())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	at := target(s)
	at.FetchSize = 1000
	connector, err := goora.Open(at)
	if err != nil {
		b.Fatal(err)
	}
	bare := go_ora.NewConnector(s.URL(user, password, "PREFETCH_ROWS", "1000", "SERVER LOCATION", "UTC"))
	const rows = 20_000
	for name, db := range map[string]*sql.DB{"layer": sql.OpenDB(connector), "bare": sql.OpenDB(bare)} {
		defer func() { _ = db.Close() }()
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if n, err := read(b.Context(), db, fmt.Sprintf("SELECT ROWS %d", rows)); n != rows || err != nil {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
		})
	}
}

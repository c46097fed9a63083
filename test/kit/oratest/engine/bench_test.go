package engine

import (
	"context"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// BenchmarkLoad fills a table of a million rows with two indexes.
func BenchmarkLoad(b *testing.B) {
	for range b.N {
		million(b)
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/million")
}

// BenchmarkStream reads a million rows in the order of an index.
func BenchmarkStream(b *testing.B) {
	e := million(b)
	session := &wire.Session{User: "APP"}
	const sql = `SELECT TO_CHAR(q.ID), q.STATUS, TO_CHAR(q.UPDATED, 'YYYY-MM-DD HH24:MI:SS.FF9') FROM "APP"."BIG" q
		WHERE q.UPDATED >= TO_TIMESTAMP(:1, 'YYYY-MM-DD HH24:MI:SS.FF9') ORDER BY q.UPDATED, q.ID`
	b.ResetTimer()
	for range b.N {
		result, err := e.Execute(context.Background(), wire.Statement{SQL: sql, Session: session, Binds: []wire.Value{"2024-01-01 00:00:00.000000000"}})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for {
			if _, ok := result.Rows.Next(); !ok {
				break
			}
			n++
		}
		result.Rows.Close()
		if n != 1_000_000 {
			b.Fatalf("%d rows", n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/row")
}

func million(b *testing.B) *Engine {
	e := start(b, 19)
	exec(b, e, "CREATE TABLE big (id NUMBER(19) PRIMARY KEY, status VARCHAR2(20), updated TIMESTAMP(6) NOT NULL)", "CREATE INDEX big_by_time ON big (updated, id)")
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	err := e.BulkInsert("BIG", func(yield func([]any) bool) {
		for i := range 1_000_000 {
			if !yield([]any{i, "open", at.Add(time.Duration(i) * time.Millisecond)}) {
				return
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

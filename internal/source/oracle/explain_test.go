package oracle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
)

// A large table without the index is read whole and sorted, and the plan says
// so. A plan that the account may not see is no failure.
func TestPlan(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{})
	d.exec("CREATE TABLE orders (order_id NUMBER(10), status VARCHAR2(20), updated_at DATE NOT NULL)")
	rows := slices.Repeat([][]any{{int64(1), "a", time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)}}, 120_000)
	if err := d.engine.BulkInsert("ORDERS", slices.Values(rows)); err != nil {
		t.Fatal(err)
	}
	d.exec("BEGIN DBMS_STATS.GATHER_TABLE_STATS('APP', 'ORDERS'); END;")
	s := d.open(oracle.Options{PoolSize: 1})
	from := observer.Range{From: "2024-05-01 00:00:00"}
	p, err := s.Plan(t.Context(), orders(), from)
	if err != nil || !p.Sorts || fmt.Sprint(p.FullScan) != "[APP.ORDERS (about 120000 rows)]" {
		t.Errorf("without an index: %+v, %v", p, err)
	}
	d.exec("CREATE INDEX orders_by_time ON orders (updated_at, order_id)")
	if p, err = s.Plan(t.Context(), orders(), from); err != nil || p.Sorts || len(p.FullScan) > 0 || !strings.Contains(p.Text, "ORDERS_BY_TIME") {
		t.Errorf("with an index: %+v, %v", p, err)
	}
	if open, err := d.engine.Query("APP", "SELECT t.STATUS FROM V$TRANSACTION t"); err != nil || len(open) > 0 {
		t.Errorf("%d transactions are left behind, %v", len(open), err)
	}
	trap := d.server.On(oratest.SQL("EXPLAIN PLAN"), oratest.Fail(1039))
	defer trap.Release()
	if p, err = s.Plan(t.Context(), orders(), from); err != nil || !strings.Contains(p.Text, "ORA-01039") {
		t.Errorf("without the right: %+v, %v", p, err)
	}
}

package sample_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/admin/sample"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(m) }

func setup(t *testing.T, seed uint64) (*sample.Warehouse, *sql.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "var", "warehouse.db")
	w, err := sample.Open(t.Context(), "sqlite:"+path, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	reader, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	return w, reader
}

// list returns the rows of a query of one column.
func list(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func count(t *testing.T, db *sql.DB, query string) int {
	t.Helper()
	var n int
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNewWarehouseIsStocked(t *testing.T) {
	t.Parallel()
	_, db := setup(t, 1)
	for _, table := range []string{"orders", "inventory", "wes_tasks"} {
		if n := count(t, db, "SELECT count(*) FROM "+table); n < 10 {
			t.Errorf("%d rows in %s, want at least 10", n, table)
		}
	}
}

func TestEverythingMoves(t *testing.T) {
	t.Parallel()
	w, db := setup(t, 7)
	gone := false
	articles := count(t, db, "SELECT count(*) FROM inventory")
	missing := map[string]bool{}
	for _, status := range strings.Fields("o:NEW o:RELEASED o:PICKED o:SHIPPED o:DELIVERED t:CREATED t:RELEASED t:PICKING t:DONE") {
		missing[status] = true
	}
	for range 40 {
		if err := w.Step(t.Context(), 20); err != nil {
			t.Fatal(err)
		}
		gone = gone || count(t, db, "SELECT count(*) FROM inventory") < articles
		for _, status := range list(t, db, "SELECT DISTINCT 'o:' || status FROM orders UNION SELECT DISTINCT 't:' || status FROM wes_tasks") {
			delete(missing, status)
		}
	}
	if len(missing) > 0 {
		t.Errorf("never seen: %v", missing)
	}
	if !gone {
		t.Error("no article was ever taken off the list")
	}
	for rule, query := range map[string]string{
		"a picked order has no open task": `SELECT count(*) FROM orders o JOIN wes_tasks t USING (order_id)
			WHERE o.status IN ('PICKED', 'SHIPPED', 'DELIVERED') AND t.status <> 'DONE'`,
		"no quantity is negative":      `SELECT count(*) FROM inventory WHERE quantity < 0`,
		"timestamps have one form":     `SELECT count(*) FROM orders WHERE length(updated_at) <> 23`,
		"every task belongs to orders": `SELECT count(*) FROM wes_tasks WHERE order_id NOT IN (SELECT order_id FROM orders)`,
	} {
		if n := count(t, db, query); n != 0 {
			t.Errorf("%s, but for %d rows", rule, n)
		}
	}
}

func TestSeedDecides(t *testing.T) {
	t.Parallel()
	state := func(seed uint64) string {
		w, db := setup(t, seed)
		if err := w.Step(t.Context(), 300); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(
			list(t, db, "SELECT concat_ws(' ', order_id, customer, status, total) FROM orders ORDER BY 1"),
			list(t, db, "SELECT concat_ws(' ', warehouse, sku, quantity) FROM inventory ORDER BY 1"),
			list(t, db, "SELECT concat_ws(' ', task_id, order_id, status) FROM wes_tasks ORDER BY 1"))
	}
	first := state(3)
	if first != state(3) {
		t.Error("equal seeds moved the warehouse differently")
	}
	if first == state(4) {
		t.Error("different seeds moved the warehouse equally")
	}
}

func TestOpenAgainKeepsAll(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "warehouse.db")
	for range 3 { // The second and third find it as the one before left it.
		w, err := sample.Open(t.Context(), path, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Step(t.Context(), 150); err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	orders, last := count(t, db, "SELECT count(*) FROM orders"), count(t, db, "SELECT max(substr(order_id, 5)) FROM orders")
	if orders < 40 || orders != last {
		t.Errorf("%d orders, the last of them number %d", orders, last)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, db := setup(t, 5)
		before := count(t, db, "SELECT total_orders + total_tasks FROM (SELECT (SELECT count(*) FROM orders) AS total_orders, (SELECT count(*) FROM wes_tasks) AS total_tasks)")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx, time.Minute) }()
		time.Sleep(time.Hour)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		after := count(t, db, "SELECT total_orders + total_tasks FROM (SELECT (SELECT count(*) FROM orders) AS total_orders, (SELECT count(*) FROM wes_tasks) AS total_tasks)")
		if after < before+20 {
			t.Errorf("%d rows after an hour of a movement a minute, %d before", after, before)
		}
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	if _, err := sample.Open(t.Context(), "", 0); err == nil {
		t.Error("Open without a path succeeded")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sample.Open(ctx, filepath.Join(t.TempDir(), "warehouse.db"), 0); err == nil {
		t.Error("Open with an ended context succeeded")
	}
	w, _ := setup(t, 1)
	if err := w.Step(ctx, 1); err == nil {
		t.Error("Step with an ended context succeeded")
	}
}

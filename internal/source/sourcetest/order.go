package sourcetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

func order(t *testing.T, f Fixture) {
	f.exec(ordersTable, `INSERT INTO orders VALUES
		(7, 'b', '2024-05-01 10:00:00'), (3, 'a', '2024-05-01 10:00:00'), (10, 'c', '2024-05-01 10:00:00'),
		(2, 'e', '2024-05-01 10:00:01'), (1, 'd', '2024-05-01 09:59:59')`)
	rows := f.read(t, orders(), "")
	if got := keys(rows); got != "1 3 7 10 2" {
		t.Errorf("keys = %s, want them by timestamp, then by key", got)
	}
	for i, r := range rows {
		if i > 0 && f.Source.Compare(rows[i-1].cursor, r.cursor) > 0 {
			t.Errorf("Compare(%q, %q) > 0, but the rows come in this order", rows[i-1].cursor, r.cursor)
		}
		if f.Source.Compare("", r.cursor) >= 0 || f.Source.Compare(r.cursor, "") <= 0 || f.Source.Compare(r.cursor, r.cursor) != 0 {
			t.Errorf("Compare does not put the empty cursor before %q", r.cursor)
		}
	}
	want := time.Date(2024, 5, 1, 9, 59, 59, 0, time.UTC).UnixMicro()
	if rows[0].micros != want {
		t.Errorf("Time = %d, want %d", rows[0].micros, want)
	}
}

func noTimestamp(t *testing.T, f Fixture) {
	f.exec(ordersTable, `INSERT INTO orders VALUES (1, 'a', '2024-05-01 10:00:00'), (2, 'b', '2024-05-01 10:00:01')`)
	q := orders()
	q.Timestamp = ""
	rows := f.read(t, q, "")
	if len(rows) != 2 || rows[0].cursor != "" {
		t.Errorf("rows = %+v, want 2 without a cursor", rows)
	}
	h, err := f.Source.Horizon(t.Context(), q)
	if err != nil || h.Cursor != "" {
		t.Errorf("Horizon = %+v, %v, want none", h, err)
	}
}

func chosenColumns(t *testing.T, f Fixture) {
	f.exec(ordersTable, `INSERT INTO orders VALUES (1, 'a', '2024-05-01 10:00:00')`)
	q := orders()
	q.Columns = []string{"status"}
	rows := f.read(t, q, "")
	if len(rows) != 1 || rows[0].full != `{"status":"a","order_id":1}` || rows[0].key != "1" || rows[0].cursor == "" {
		t.Errorf("rows = %+v, want the key behind the data, and the timestamp beside it", rows)
	}
	q.Columns = []string{"status", "order_id"}
	if rows := f.read(t, q, ""); rows[0].data != `{"status":"a","order_id":1}` {
		t.Errorf("data = %s, want the order of the configuration", rows[0].data)
	}
}

func otherCase(t *testing.T, f Fixture) {
	f.exec(ordersTable, `INSERT INTO orders VALUES (1, 'a', '2024-05-01 10:00:00')`)
	q := observer.Query{Table: "ORDERS", Key: []string{"ORDER_ID"}, Timestamp: "Updated_At", Columns: []string{"STATUS"}}
	if rows := f.read(t, q, ""); len(rows) != 1 || rows[0].full != `{"status":"a","order_id":1}` {
		t.Errorf("rows = %+v, want the row, with names as the catalogue spells them", rows)
	}
}

func query(t *testing.T, f Fixture) {
	f.exec(ordersTable, `INSERT INTO orders VALUES (1, 'open', '2024-05-01 10:00:00'), (2, 'shut', '2024-05-01 10:00:01'), (3, 'open', '2024-05-01 10:00:02')`)
	q := orders()
	q.Table, q.SQL = "", "SELECT order_id, updated_at FROM orders WHERE status = 'open' -- the others do not matter"
	rows := f.read(t, q, "")
	if keys(rows) != "1 3" {
		t.Fatalf("keys = %s, want 1 3", keys(rows))
	}
	if got := keys(f.read(t, q, rows[1].cursor)); got != "3" {
		t.Errorf("from the second: keys = %s, want 3", got)
	}
	q.SQL = "SELECT order_id, updated_at FROM orders ;\n"
	if got := keys(f.read(t, q, "")); got != "1 2 3" {
		t.Errorf("with a semicolon at the end: keys = %s, want 1 2 3", got)
	}
	q.SQL = "SELECT order_id, updated_at FROM orders -- all of them;"
	if got := keys(f.read(t, q, "")); got != "1 2 3" {
		t.Errorf("with a comment that ends in a semicolon: keys = %s, want 1 2 3", got)
	}
}

func nullPolicies(t *testing.T, f Fixture) {
	f.exec("CREATE TABLE orders (order_id {integer} PRIMARY KEY, status {text}, updated_at {timestamp})",
		`INSERT INTO orders VALUES (1, 'a', '2024-05-01 10:00:00'), (2, 'b', NULL), (3, 'c', '2024-05-01 10:00:01'), (4, 'd', NULL)`)
	q := orders()
	q.NullTimestamp = observer.NullSkip
	rows := f.read(t, q, "")
	if keys(rows) != "1 3" {
		t.Errorf("skip: keys = %s, want 1 3", keys(rows))
	}
	second := rows[1].cursor
	for _, policy := range []observer.NullPolicy{"", observer.NullInclude, observer.NullError} {
		for from, want := range map[string]string{"": "1:true 2:false 3:true 4:false", second: "2:false 3:true 4:false"} {
			q.NullTimestamp = policy
			got := make(map[string]bool)
			var faults int
			for _, r := range f.read(t, q, from) {
				got[fmt.Sprintf("%s:%t", r.key, r.cursor != "")] = true
				if r.err != nil {
					faults++
				}
			}
			for _, one := range strings.Fields(want) {
				if !got[one] {
					t.Errorf("policy %q from %q: rows = %v, want %s", policy, from, got, want)
				}
			}
			if len(got) != len(strings.Fields(want)) || faults != map[bool]int{true: 2}[policy == observer.NullError] {
				t.Errorf("policy %q from %q: rows = %v with %d faults, want %s", policy, from, got, faults, want)
			}
		}
	}
}

func compoundKeys(t *testing.T, f Fixture) {
	f.exec("CREATE TABLE stock (warehouse {text} NOT NULL, sku {text} NOT NULL, quantity {integer})",
		`INSERT INTO stock VALUES ('a/b', 'c', 1), ('a', 'b/c', 2), ('50%', '2F', 3)`)
	q := observer.Query{Table: "stock", Key: []string{"warehouse", "sku"}}
	seen := make(map[string]bool)
	for _, r := range f.read(t, q, "") {
		parts := observer.SplitKey(r.key, 2)
		seen[r.key] = true
		if len(parts) != 2 || observer.JoinKey(parts) != r.key {
			t.Errorf("key %q is not what JoinKey makes of %q", r.key, parts)
		}
	}
	for _, want := range []string{"a%2Fb/c", "a/b%2Fc", "50%25/2F"} {
		if !seen[want] {
			t.Errorf("keys = %v, want %s among them", seen, want)
		}
	}
}

package sourcetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
)

// largeRows has rows whose columns are too long only together, or alone, among others
// that fit. What is read of them is the same from a table, a view and a query.
func largeRows(t *testing.T, f Fixture) {
	f.exec("CREATE TABLE orders (order_id {integer} PRIMARY KEY, a {long}, b {long}, c {long}, updated_at {timestamp})", ordersIndex,
		"CREATE VIEW shown AS SELECT * FROM orders")
	long := func(n int) string { return "'" + strings.Repeat("l", n) + "'" }
	for i, values := range []string{
		"'a', 'b', 'c'",
		long(1200) + ", " + long(1200) + ", 'c'",
		"NULL, NULL, NULL",
		long(1800) + ", NULL, NULL",
		"NULL, 'b', " + long(3900),
		long(600) + ", " + long(600) + ", " + long(600),
		long(700) + ", " + long(700) + ", " + long(700),
		"'a', NULL, 'c'",
	} {
		f.exec(fmt.Sprintf("INSERT INTO orders VALUES (%d, %s, '2024-05-01 10:00:0%d')", i+1, values, i))
	}
	f.exec("INSERT INTO orders VALUES (9, "+long(3900)+", 'b', NULL, NULL)", "INSERT INTO orders VALUES (10, 'a', 'b', NULL, NULL)")
	table := orders()
	table.MaxRowBytes = 2000
	view, query, byKey := table, table, table
	view.Table = "shown"
	query.Table, query.SQL = "", "SELECT * FROM orders"
	byKey.Timestamp = ""
	for name, q := range map[string]observer.Query{"table": table, "view": view, "query": query, "all": byKey} {
		large := 0
		rows := f.read(t, q, "")
		for _, r := range rows {
			id := r.key
			if slices.Contains([]string{"2", "5", "7", "9"}, id) {
				large++
				if r.err == nil || r.err.Error() != "the row is larger than 2000 bytes" || r.data != "" || (q.Timestamp != "" && id != "9") != (r.cursor != "") {
					t.Errorf("%s: %+v, want it poison for its size, without data", name, r)
				}
				continue
			}
			if want := map[string]string{"3": `"a":null,"b":null,"c":null`, "8": `"a":"a","b":null,"c":"c"`}[id]; r.err != nil || !strings.Contains(strings.ToLower(r.data), want) {
				t.Errorf("%s: row %s is %s, %v, want %s", name, id, r.data, r.err, want)
			}
			if want := map[string]int{"4": 1800, "6": 1800}[id]; strings.Count(r.data, "l") < want {
				t.Errorf("%s: row %s has %d bytes, want all %d characters", name, id, len(r.data), want)
			}
		}
		if len(rows) != 10 || large != 4 {
			t.Errorf("%s: %d rows %s, %d of them large, want 10 and 4", name, len(rows), keys(rows), large)
		}
	}
}

// wideRows has more long columns than a statement sums up at once.
func wideRows(t *testing.T, f Fixture) {
	const columns = 100
	var names, short, long []string
	for i := range columns {
		names = append(names, fmt.Sprintf("c%d {long}", i))
		short, long = append(short, "'0123456789'"), append(long, "'0123456789012345678901234567890123456789'")
	}
	f.exec("CREATE TABLE orders (order_id {integer} PRIMARY KEY, "+strings.Join(names, ", ")+", updated_at {timestamp} NOT NULL)",
		"INSERT INTO orders VALUES (1, "+strings.Join(short, ", ")+", '2024-05-01 10:00:00')",
		"INSERT INTO orders VALUES (2, "+strings.Join(long, ", ")+", '2024-05-01 10:00:01')",
		"INSERT INTO orders VALUES (3, "+strings.Join(short, ", ")+", '2024-05-01 10:00:02')")
	q := orders()
	q.MaxRowBytes = 3500
	rows := f.read(t, q, "")
	if keys(rows) != "1 2 3" || rows[0].err != nil || rows[2].err != nil || strings.Count(rows[2].data, "0123456789") != columns {
		t.Fatalf("rows = %+v, want three, the first and the last of them good", rows)
	}
	if r := rows[1]; r.err == nil || !strings.Contains(r.err.Error(), "larger than 3500 bytes") || r.data != "" {
		t.Errorf("row = %+v, want it poison for its size", r)
	}
}

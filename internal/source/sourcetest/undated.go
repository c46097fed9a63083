package sourcetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/observerd/observerd/internal/observer"
)

// undatedTable makes a table with rows that have no timestamp among others.
func (f Fixture) undatedTable() observer.Query {
	f.exec("CREATE TABLE stock (warehouse {name} NOT NULL, sku {integer} NOT NULL, status {text}, at {timestamp})",
		"CREATE INDEX stock_by_time ON stock (at, warehouse, sku)")
	for i := range 20 {
		at := "NULL"
		if i%4 == 0 {
			at = "'" + second(i) + "'"
		}
		f.exec(fmt.Sprintf("INSERT INTO stock VALUES ('%s', %d, 'v', %s)", []string{"b", "a"}[i%2], 100-i, at))
	}
	return observer.Query{Stream: "orders", Table: "stock", Key: []string{"warehouse", "sku"}, Timestamp: "at"}
}

// undatedRows reads the rows without a timestamp from each of their keys on, and the
// others without them.
func undatedRows(t *testing.T, f Fixture) {
	q := f.undatedTable()
	if !f.horizon(t, q).Undated {
		t.Error("the horizon tells of no rows without a timestamp")
	}
	rows, err := f.Source.Read(t.Context(), q, observer.Range{Part: observer.PartUndated})
	if err != nil {
		t.Fatal(err)
	}
	order := rows.KeyOrder()
	all := drain(t, rows)
	if len(all) != 15 || order == "" || slices.ContainsFunc(all, func(r row) bool { return r.cursor != "" || r.err != nil }) {
		t.Fatalf("%d rows of 15 in the order %q: %+v", len(all), order, all)
	}
	for i, r := range all {
		got := f.readIn(t, q, observer.Range{Part: observer.PartUndated, Key: r.key, Order: order})
		if keys(got) != keys(all[i:]) {
			t.Errorf("from %s: %s, want %s", r.key, keys(got), keys(all[i:]))
		}
	}
	if dated := f.readIn(t, q, observer.Range{Part: observer.PartDated}); len(dated) != 5 {
		t.Errorf("rows with a timestamp: %s", keys(dated))
	}
	in := observer.Range{Part: observer.PartUndated, Key: all[3].key, Order: "another"}
	if _, err := f.Source.Read(t.Context(), q, in); observer.ClassOf(err) != observer.ClassRetry {
		t.Errorf("in another order: %v", err)
	}
	q.NullTimestamp = observer.NullSkip
	if f.horizon(t, q).Undated {
		t.Error("the horizon tells of rows that the query leaves out")
	}
}

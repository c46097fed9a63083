package sourcetest

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/test/kit/waittest"
)

func number(i int) string { return strconv.Itoa(i) }

// second returns the i-th second of May 2024.
func second(i int) string {
	return time.Date(2024, 5, 1, 0, 0, i, 0, time.UTC).Format(time.DateTime)
}

func (f Fixture) horizon(t *testing.T, q observer.Query) observer.Horizon {
	t.Helper()
	h, err := f.Source.Horizon(t.Context(), q)
	if err != nil {
		t.Fatalf("Horizon: %v", err)
	}
	return h
}

// exactly asks until the source has seen what is open, if it can: where many ask a
// server for that at once, one or the other may have to do without for once.
func (f Fixture) exactly(t *testing.T, ask func() (exact bool)) {
	t.Helper()
	waittest.Eventually(t, time.Minute, func() error {
		if exact := ask(); exact != f.Exact {
			return fmt.Errorf("the horizon is exact: %t, want %t", exact, f.Exact)
		}
		return nil
	})
}

// lateCommit is the reason why there is a horizon: a row whose timestamp is
// older than rows that were read long before it became visible.
func lateCommit(t *testing.T, f Fixture) {
	f.exec(ordersTable, "INSERT INTO orders VALUES (1, 'early', "+f.Now+")")
	exec, commit := f.Begin()
	exec("INSERT INTO orders VALUES (2, 'late', " + f.Now + ")")
	var h observer.Horizon
	f.exactly(t, func() bool {
		h = f.horizon(t, orders())
		return h.Exact
	})
	if got := keys(f.read(t, orders(), "")); got != "1" {
		t.Fatalf("keys = %s before the commit, want 1", got)
	}
	commit()
	late := f.read(t, orders(), h.Cursor)
	if !strings.Contains(keys(late), "2") {
		t.Errorf("keys = %s from the horizon %s, want the late row among them", keys(late), h.Cursor)
	}
	if later := f.horizon(t, orders()); f.Source.Compare(cmp.Or(later.Earliest, later.Cursor), h.Cursor) < 0 {
		t.Errorf("after the horizon %s, %+v says that time has gone back", h.Cursor, later)
	}
}

func overlap(t *testing.T, f Fixture) {
	f.exec(ordersTable, "INSERT INTO orders VALUES (1, 'a', "+f.Now+")")
	q := orders()
	q.Overlap = time.Hour
	wide := f.horizon(t, q)
	q.Overlap = 2 * time.Minute
	narrow := f.horizon(t, q)
	if f.Source.Compare(wide.Cursor, narrow.Cursor) >= 0 {
		t.Errorf("the horizon is %s with an hour of overlap and %s with two minutes", wide.Cursor, narrow.Cursor)
	}
	if wide.Lag < time.Hour || wide.Lag > time.Hour+time.Minute {
		t.Errorf("Lag = %s, want about an hour", wide.Lag)
	}
	if row := f.read(t, q, "")[0]; f.Source.Compare(row.cursor, narrow.Cursor) <= 0 {
		t.Errorf("the horizon %s is not behind a row of now, %s", narrow.Cursor, row.cursor)
	}
}

// plan looks at how the database would run the statements. Over a column that
// cannot be NULL, the statement for NULL runs only where the source could not
// know that, and returns at once however its plan is worded.
func plan(t *testing.T, f Fixture) {
	f.manyOrders(1)
	f.exec("CREATE TABLE loose (order_id {integer} PRIMARY KEY, status {text}, updated_at {timestamp})",
		"INSERT INTO loose SELECT * FROM orders",
		"CREATE INDEX loose_by_time ON loose (updated_at, order_id)", "ANALYZE")
	from := f.read(t, orders(), "")[4990].cursor
	loose, query := orders(), orders()
	loose.Table = "loose"
	query.Table, query.SQL = "", "SELECT order_id, status, updated_at FROM orders"
	for index, queries := range map[string][]observer.Query{
		"orders_by_time": {orders(), query},
		"loose_by_time":  {loose},
	} {
		for _, q := range queries {
			text, err := f.Source.SQL(t.Context(), q, observer.Range{From: from})
			if err != nil {
				t.Fatal(err)
			}
			for _, statement := range strings.Split(text.Full, ";\n") {
				if (index == "orders_by_time" || f.FullNulls) && !strings.Contains(statement, f.Placeholder) {
					continue
				}
				plan := f.Explain(strings.ReplaceAll(statement, f.Placeholder, "'"+from+"'"))
				if !strings.Contains(plan, index) || strings.Contains(plan, f.Sort) {
					t.Errorf("the plan of\n%s\nis\n%s", statement, plan)
				}
			}
		}
	}
	if text, err := f.Source.SQL(t.Context(), loose, observer.Range{From: from}); err != nil || strings.Count(text.Full, "SELECT") != 2 {
		t.Errorf("SQL = %s, %v, want a second statement for NULL", text.Full, err)
	}
}

func describe(t *testing.T, f Fixture) {
	f.exec(ordersTable, ordersIndex, `INSERT INTO orders VALUES (1, 'a', '2024-05-01 10:00:00'), (2, 'a', '2024-05-01 10:00:01')`,
		"CREATE TABLE plain (id {integer}, status {text}, updated_at {timestamp})",
		`INSERT INTO plain VALUES (1, 'a', '2024-05-01 10:00:00'), (2, 'a', NULL)`)
	var d source.Description
	var err error
	f.exactly(t, func() bool {
		if d, err = f.Source.Describe(t.Context(), orders()); err != nil {
			t.Fatal(err)
		}
		return d.HorizonExact
	})
	if d.KeyUnique != source.Yes || d.OrderIndexed != source.Yes || d.TimestampNullable || len(d.Columns) != 3 || d.TimestampKept == source.No || d.TimestampDate {
		t.Errorf("orders: %+v", d)
	}
	q := orders()
	q.Key = append(q.Key, q.Timestamp)
	if d, err = f.Source.Describe(t.Context(), q); err != nil || d.OrderIndexed != source.Yes || lower(d.Order()) != "updated_at order_id" {
		t.Errorf("orders, by the timestamp as well: %+v, in the order of %q, %v", d, d.Order(), err)
	}
	q.Table, q.Key = "plain", []string{"id"}
	if d, err = f.Source.Describe(t.Context(), q); err != nil || d.KeyUnique != source.Unknown || d.OrderIndexed != source.No || !d.TimestampNullable {
		t.Errorf("plain: %+v, %v", d, err)
	}
	q.Key = []string{"status"}
	if d, err = f.Source.Describe(t.Context(), q); err != nil || d.KeyUnique != source.No {
		t.Errorf("plain, by status: %+v, %v", d, err)
	}
	q.Table, q.SQL = "", "SELECT status, updated_at FROM orders"
	if d, err = f.Source.Describe(t.Context(), q); err != nil || d.KeyUnique != source.No || d.Table != "" || d.TimestampKept != source.Unknown {
		t.Errorf("query: %+v, %v", d, err)
	}
}

package sourcetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// readIn reads a range to its end.
func (f Fixture) readIn(t *testing.T, q observer.Query, in observer.Range) []row {
	t.Helper()
	rows, err := f.Source.Read(t.Context(), q, in)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	all := drain(t, rows)
	for i := range all {
		if f.Capitals {
			all[i].data = folds.ReplaceAllStringFunc(all[i].data, strings.ToLower)
			all[i].full = folds.ReplaceAllStringFunc(all[i].full, strings.ToLower)
		}
	}
	return all
}

func ranges(t *testing.T, f Fixture) {
	f.exec(ordersTable,
		`INSERT INTO orders VALUES (1, 'a', '2024-05-01 10:00:00')`,
		`INSERT INTO orders VALUES (2, 'b', '2024-05-01 10:00:01')`,
		`INSERT INTO orders VALUES (3, 'c', '2024-05-01 10:00:01')`,
		`INSERT INTO orders VALUES (4, 'd', '2024-05-01 10:00:02')`)
	all := f.read(t, orders(), "")
	second, last := all[1].cursor, all[3].cursor
	for _, test := range []struct {
		in   observer.Range
		want string
	}{
		{observer.Range{From: all[0].cursor}, "1 2 3 4"},
		{observer.Range{From: second}, "2 3 4"},
		{observer.Range{From: all[2].cursor}, "2 3 4"},
		{observer.Range{From: last}, "4"},
		{observer.Range{Before: second}, "1"},
		{observer.Range{Before: last}, "1 2 3"},
		{observer.Range{From: second, Before: last}, "2 3"},
		{observer.Range{From: second, Before: second}, ""},
		{observer.Range{Limit: 1}, "1"},
		{observer.Range{Limit: 4}, "1 2 3 4"},
		{observer.Range{From: second, Limit: 2}, "2 3"},
		{observer.Range{From: second, Before: last, Limit: 1}, "2"},
	} {
		if got := keys(f.readIn(t, orders(), test.in)); got != test.want {
			t.Errorf("%+v: keys = %q, want %q", test.in, got, test.want)
		}
	}
}

// nullRanges shows that a bound or a limit is not for rows without a timestamp.
func nullRanges(t *testing.T, f Fixture) {
	f.exec("CREATE TABLE orders (order_id {integer} PRIMARY KEY, status {text}, updated_at {timestamp})",
		`INSERT INTO orders VALUES (1, 'a', '2024-05-01 10:00:00')`,
		`INSERT INTO orders VALUES (2, 'b', NULL)`,
		`INSERT INTO orders VALUES (3, 'c', '2024-05-01 10:00:01')`)
	last := ""
	for _, r := range f.read(t, orders(), "") {
		if f.Source.Compare(r.cursor, last) > 0 {
			last = r.cursor
		}
	}
	for _, test := range []struct {
		in   observer.Range
		want string
	}{
		{observer.Range{}, "123"},
		{observer.Range{From: last}, "23"},
		{observer.Range{Limit: 1}, "12"},
		{observer.Range{Before: last}, "1"},
	} {
		got := keys(f.readIn(t, orders(), test.in))
		for _, key := range strings.Split(test.want, "") {
			if !strings.Contains(got, key) || len(strings.Fields(got)) != len(test.want) {
				t.Errorf("%+v: keys = %q, want those of %s", test.in, got, test.want)
				break
			}
		}
	}
}

func identity(t *testing.T, f Fixture) {
	f.exec(ordersTable)
	first, err := f.Source.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.exec(`INSERT INTO orders VALUES (1, 'a', '2024-05-01 10:00:00')`)
	again, err := f.Source.Identity(t.Context())
	if err != nil || again != first {
		t.Errorf("Identity = %q, then %q, %v", first, again, err)
	}
	if kind, value, ok := strings.Cut(first, ":"); first != "" && (!ok || kind == "" || value == "") {
		t.Errorf("Identity = %q, want KIND:VALUE or nothing", first)
	}
}

// cursorAt writes instants as cursors, which must part rows as their times do.
func cursorAt(t *testing.T, f Fixture) {
	f.exec(ordersTable,
		`INSERT INTO orders VALUES (1, 'a', '2024-05-01 10:00:00')`,
		`INSERT INTO orders VALUES (2, 'b', '2024-05-01 12:00:00')`)
	for _, test := range []struct {
		at   time.Time
		want string
	}{
		{time.Date(2024, 5, 1, 9, 59, 59, 0, time.UTC), "1 2"},
		{time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC), "1 2"},
		{time.Date(2024, 5, 1, 11, 0, 0, 0, time.FixedZone("", -3600)), "2"},
		{time.Date(2024, 5, 1, 13, 0, 0, 0, time.UTC), ""},
	} {
		cursor, err := f.Source.CursorAt(t.Context(), orders(), test.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := keys(f.read(t, orders(), cursor)); got != test.want {
			t.Errorf("from %s: keys = %q, want %q", test.at, got, test.want)
		}
	}
	q := orders()
	q.Timestamp = ""
	if cursor, err := f.Source.CursorAt(t.Context(), q, time.Now()); !errors.Is(err, source.ErrNoTimestamp) {
		t.Errorf("without a timestamp: %q, %v", cursor, err)
	}
}

// clock says which rows lie in the future.
func clock(t *testing.T, f Fixture) {
	f.exec(ordersTable, "INSERT INTO orders VALUES (1, 'past', '2024-05-01 10:00:00')",
		"INSERT INTO orders VALUES (2, 'future', '2037-05-01 10:00:00')")
	h := f.horizon(t, orders())
	rows := f.read(t, orders(), "")
	if f.Source.Compare(rows[0].cursor, h.Clock) >= 0 || f.Source.Compare(rows[1].cursor, h.Clock) <= 0 {
		t.Errorf("the clock %q is not between %q and %q", h.Clock, rows[0].cursor, rows[1].cursor)
	}
	if f.Source.Compare(h.Cursor, h.Clock) > 0 {
		t.Errorf("the horizon %q is above the clock %q", h.Cursor, h.Clock)
	}
}

// columns are what a change of the table is noticed by.
func columns(t *testing.T, f Fixture) {
	f.exec(ordersTable)
	before := f.drained(t, orders()).Columns()
	if len(before) != 3 || !strings.EqualFold(before[0].Name, "order_id") || before[0].Type == "" || before[0].Type == before[2].Type {
		t.Errorf("Columns = %+v", before)
	}
	for _, c := range before {
		if strings.ContainsAny(c.Type, "()") {
			t.Errorf("type %q has a length: a column that becomes wider would be another", c.Type)
		}
	}
	f.exec("ALTER TABLE orders ADD {column} carrier {text}")
	after := f.drained(t, orders()).Columns()
	if len(after) != 4 || after[0] != before[0] || !strings.EqualFold(after[3].Name, "carrier") {
		t.Errorf("Columns = %+v, then %+v", before, after)
	}
	q := orders()
	q.Columns = []string{"status"}
	if chosen := f.drained(t, q).Columns(); len(chosen) != 1 || chosen[0] != before[1] {
		t.Errorf("Columns = %+v, want the chosen one alone", chosen)
	}
	q.Columns, q.Table, q.SQL = nil, "", "SELECT order_id, updated_at FROM orders"
	if chosen := f.drained(t, q).Columns(); len(chosen) != 2 {
		t.Errorf("Columns of a query = %+v", chosen)
	}
}

// explained is the plan as the source itself tells it.
func explained(t *testing.T, f Fixture) {
	f.manyOrders(1)
	from := f.read(t, orders(), "")[4990].cursor
	p, err := f.Source.Plan(t.Context(), orders(), observer.Range{From: from})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.ToLower(p.Text), "orders_by_time") || p.Sorts || len(p.FullScan) > 0 {
		t.Errorf("with an index: %+v", p)
	}
	f.exec("CREATE TABLE plain (order_id {integer} PRIMARY KEY, status {text}, updated_at {timestamp} NOT NULL)", "INSERT INTO plain SELECT * FROM orders")
	q := orders()
	q.Table = "plain"
	if p, err = f.Source.Plan(t.Context(), q, observer.Range{From: from}); err != nil || !p.Sorts {
		t.Errorf("without an index: %+v, %v", p, err)
	}
}

package sourcetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// everywhere calls each method that takes a query and returns their errors.
func (f Fixture) everywhere(t *testing.T, q observer.Query) map[string]error {
	t.Helper()
	_, describe := f.Source.Describe(t.Context(), q)
	_, horizon := f.Source.Horizon(t.Context(), q)
	_, text := f.Source.SQL(t.Context(), q, observer.Range{})
	_, read := TryRead(f.Source, q, observer.Range{})
	return map[string]error{"Describe": describe, "Horizon": horizon, "SQL": text, "Read": read}
}

func missingTable(t *testing.T, f Fixture) {
	f.exec(ordersTable)
	q := orders()
	q.Table = "ordres"
	for method, err := range f.everywhere(t, q) {
		var missing *source.MissingError
		if !errors.As(err, &missing) || missing.Kind != "table" || missing.Name != "ordres" || !slices.ContainsFunc(missing.Nearest, func(name string) bool { return strings.EqualFold(name, "orders") }) {
			t.Errorf("%s: %v, want the missing table and the nearest one", method, err)
		}
		if errors.Is(err, observer.ErrUnreachable) {
			t.Errorf("%s: %v is not about reaching the database", method, err)
		}
	}
	droppedTable(t, f)
}

// droppedTable tells a table that is gone from one that the account may not read, where the
// catalogue does: no right is asked for that would not help.
func droppedTable(t *testing.T, f Fixture) {
	q := orders()
	f.read(t, q, "")
	f.exec("DROP TABLE orders")
	for method, err := range f.everywhere(t, q) {
		var missing *source.MissingError
		if !errors.As(err, &missing) || missing.Hidden != f.Hides || strings.Contains(err.Error(), "was not granted") != f.Hides || strings.Contains(err.Error(), "grant this") {
			t.Errorf("%s of a table that was dropped: %v", method, err)
		}
	}
}

func missingColumn(t *testing.T, f Fixture) {
	f.exec(ordersTable)
	for name, change := range map[string]func(*observer.Query){
		"key":       func(q *observer.Query) { q.Key = []string{"oder_id"} },
		"timestamp": func(q *observer.Query) { q.Timestamp = "updated_on" },
		"columns":   func(q *observer.Query) { q.Columns = []string{"stauts"} },
		"query": func(q *observer.Query) {
			q.Table, q.SQL, q.Key = "", "SELECT * FROM orders", []string{"oder_id"}
		},
	} {
		q := orders()
		change(&q)
		for method, err := range f.everywhere(t, q) {
			var missing *source.MissingError
			if !errors.As(err, &missing) || missing.Kind != "column" || len(missing.Nearest) == 0 {
				t.Errorf("%s, %s: %v, want the missing column and the nearest one", name, method, err)
			}
		}
	}
}

func wrongKey(t *testing.T, f Fixture) {
	f.exec("CREATE TABLE order_lines (line {integer} NOT NULL, order_id {integer} NOT NULL, updated_at {timestamp} NOT NULL, PRIMARY KEY (order_id, line))")
	for name, c := range map[string]struct {
		query observer.Query
		want  string
	}{
		"key":       {observer.Query{Table: "order_lines", Key: []string{"order_id", "number"}, Timestamp: "updated_at"}, "order_id line"},
		"timestamp": {observer.Query{Table: "order_lines", Key: []string{"order_id", "line"}, Timestamp: "number"}, ""},
		"query":     {observer.Query{SQL: "SELECT * FROM order_lines", Key: []string{"number"}, Timestamp: "updated_at"}, ""},
	} {
		for method, err := range f.everywhere(t, c.query) {
			var missing *source.MissingError
			if !errors.As(err, &missing) || lower(missing.PrimaryKey) != c.want {
				t.Errorf("%s, %s: %v, want the missing column and the primary key %q", name, method, err, c.want)
			}
		}
	}
}

func changedTable(t *testing.T, f Fixture) {
	f.exec(ordersTable, `INSERT INTO orders VALUES (1, 'a', '2024-05-01 10:00:00')`)
	for range 3 {
		f.read(t, orders(), "")
	}
	f.exec("ALTER TABLE orders ADD {column} carrier {text}", "UPDATE orders SET carrier = 'post'")
	rows := f.read(t, orders(), "")
	if !strings.Contains(rows[0].data, `"carrier":"post"`) {
		t.Errorf("data = %s, want the new column in it", rows[0].data)
	}
	f.exec("ALTER TABLE orders DROP COLUMN status")
	if rows := f.read(t, orders(), ""); strings.Contains(rows[0].data, "status") {
		t.Errorf("data = %s, want it without the dropped column", rows[0].data)
	}
}

func faultyQueries(t *testing.T, f Fixture) {
	f.exec(ordersTable)
	for name, change := range map[string]func(*observer.Query){
		"neither table nor query": func(q *observer.Query) { q.Table = "" },
		"both":                    func(q *observer.Query) { q.SQL = "SELECT 1" },
		"no key":                  func(q *observer.Query) { q.Key = nil },
		"NUL in the table":        func(q *observer.Query) { q.Table = "orders\x00" },
		"NUL in a column":         func(q *observer.Query) { q.Columns = []string{"status\x00"} },
		"quotes in the table":     func(q *observer.Query) { q.Table = `orders" WHERE "1"="1` },
		"no SQL":                  func(q *observer.Query) { q.Table, q.SQL = "", "DELET FROM orders" },
		"no timestamp":            func(q *observer.Query) { q.Table, q.SQL = "", "SELECT order_id FROM orders" },
		"two columns of one name": func(q *observer.Query) {
			q.Table, q.SQL = "", "SELECT order_id, status, status, updated_at FROM orders"
		},
	} {
		q := orders()
		change(&q)
		for method, err := range f.everywhere(t, q) {
			if observer.ClassOf(err) != observer.ClassQuery {
				t.Errorf("%s: %s returned %v of class %q, want an error that blames the query", name, method, err, observer.ClassOf(err))
			}
		}
	}
}

func garbledCursor(t *testing.T, f Fixture) {
	f.exec(ordersTable, `INSERT INTO orders VALUES (1, 'a', '2024-05-01 10:00:00')`)
	for _, cursor := range []string{"yesterday", "2024-13-01 10:00:00", "2024-05-01 10:00:00'; --", "\x00", "é"} {
		rows, err := f.Source.Read(t.Context(), orders(), observer.Range{From: cursor})
		if err == nil {
			t.Errorf("Read from %q succeeded", cursor)
			_ = rows.Close()
		} else if observer.ClassOf(err) != observer.ClassQuery {
			t.Errorf("Read from %q: %v of class %q", cursor, err, observer.ClassOf(err))
		}
	}
}

func readOnly(t *testing.T, f Fixture) {
	f.exec(ordersTable, `INSERT INTO orders VALUES (1, 'a', '2024-05-01 10:00:00')`)
	q := observer.Query{SQL: f.Write, Key: []string{"order_id"}}
	if err := f.everywhere(t, q)["Read"]; err == nil {
		t.Error("a query that writes succeeded")
	}
	if got := keys(f.read(t, orders(), "")); got != "1" {
		t.Errorf("keys = %q after a query that deletes, want 1", got)
	}
}

func unreachable(t *testing.T, f Fixture) {
	defer func() {
		if err := f.Unreachable.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}()
	f.Source = f.Unreachable
	for method, err := range f.everywhere(t, orders()) {
		if !errors.Is(err, observer.ErrUnreachable) {
			t.Errorf("%s: %v, want ErrUnreachable", method, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v holds the password", method, err)
		}
	}
}

// manyOrders fills the table with 5000 rows, so many of each second.
func (f Fixture) manyOrders(tied int) {
	f.exec(ordersTable, ordersIndex)
	var b strings.Builder
	for i := range 5000 {
		b.WriteString(", (" + number(i) + ", 'status of " + number(i) + "', '" + second(i/tied) + "')")
	}
	f.exec("INSERT INTO orders VALUES "+b.String()[2:], "ANALYZE")
}

func closedEarly(t *testing.T, f Fixture) {
	f.manyOrders(1)
	for range 10 {
		rows, err := f.Source.Read(t.Context(), orders(), observer.Range{})
		if err != nil {
			t.Fatal(err)
		}
		if !rows.Next() {
			t.Fatalf("no row: %v", rows.Err())
		}
		for range 2 {
			if err := rows.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		if rows.Next() || rows.Err() != nil {
			t.Errorf("after Close there is another row, or an error: %v", rows.Err())
		}
	}
	if n := len(f.read(t, orders(), "")); n != 5000 {
		t.Errorf("%d rows afterwards, want 5000", n)
	}
}

func cancelled(t *testing.T, f Fixture) {
	f.manyOrders(1)
	ctx, cancel := context.WithCancelCause(t.Context())
	rows, err := f.Source.Read(ctx, orders(), observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if !rows.Next() {
			t.Fatalf("Next: %v", rows.Err())
		}
	}
	lost := errors.New("the lease was lost")
	cancel(lost)
	if rows.Next() {
		t.Error("another row after the context has ended")
	}
	if err := rows.Err(); !errors.Is(err, lost) || errors.Is(err, observer.ErrUnreachable) {
		t.Errorf("Err = %v, want the cause of the context's end", err)
	}
	if err := rows.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := f.Source.Read(ctx, orders(), observer.Range{}); !errors.Is(err, lost) {
		t.Errorf("Read with an ended context: %v", err)
	}
	if n := len(f.read(t, orders(), "")); n != 5000 {
		t.Errorf("%d rows afterwards, want 5000", n)
	}
}

func concurrent(t *testing.T, f Fixture) {
	f.manyOrders(1)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if rows, err := TryRead(f.Source, orders(), observer.Range{}); err != nil || len(rows) != 5000 {
				t.Errorf("%d rows, %v", len(rows), err)
			}
		})
	}
	wait.Wait()
}

// SlowReader reads so many rows of a query and pauses among them for longer than the
// query timeout, which is for the database.
func SlowReader(t *testing.T, s Source, q observer.Query, want int, timeout time.Duration) {
	t.Helper()
	rows, err := s.Read(t.Context(), q, observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for rows.Next() {
		if n++; n == 10 {
			<-time.After(2 * timeout) // The very thing under test is time.
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || n != want {
		t.Errorf("%d rows, %v", n, err)
	}
}

package sourcetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

// ties reads from each row on, which must return all rows that come at it or behind
// it, and may return those before them that the source takes for equal. It returns
// the rows.
func (f Fixture) ties(t *testing.T, q observer.Query) []row {
	t.Helper()
	order := f.tieOrder(t, q)
	if order == "" {
		t.Fatalf("no read of %s%s can begin among rows of one timestamp", q.Table, q.SQL)
	}
	all := f.read(t, q, "")
	for i, first := range all {
		if first.key == "" { // as with NULL in it; no read goes on from there
			continue
		}
		got := f.readIn(t, q, observer.Range{From: first.cursor, Key: first.key, Order: order})
		again := len(got) - len(all[i:])
		if again < 0 || data(got[again:]) != data(all[i:]) {
			t.Errorf("%s%s from %s, %q:\n%s\nwant at the end\n%s", q.Table, q.SQL, first.cursor, first.key, data(got), data(all[i:]))
		}
		for _, r := range got[:max(0, again)] {
			if r.cursor != first.cursor {
				t.Errorf("%s%s from %s, %q: also %+v", q.Table, q.SQL, first.cursor, first.key, r)
			}
		}
	}
	return all
}

// tieOrder is the order of rows of one timestamp, as a read tells it.
func (f Fixture) tieOrder(t *testing.T, q observer.Query) string {
	t.Helper()
	return f.drained(t, q).KeyOrder()
}

// TiedByKey reports whether a read of a query can begin among rows of one timestamp.
func TiedByKey(t *testing.T, s Source, q observer.Query) bool {
	t.Helper()
	return Fixture{Source: s}.tieOrder(t, q) != ""
}

// stock makes a table with groups of rows of one timestamp, and a key of three
// columns, whose order in the table is another one.
func (f Fixture) stock() observer.Query {
	f.exec("CREATE TABLE stock (at {timestamp} NOT NULL, bin {name} NOT NULL, warehouse {name} NOT NULL, sku {integer} NOT NULL, status {text})")
	for i := range 60 {
		f.exec(fmt.Sprintf("INSERT INTO stock VALUES ('%s', '%s', '%s', %d, 'v%d')", second(i/24),
			[]string{"x", "y/%", "Z", "it''s"}[i*7%4], []string{"a", "b", "a b"}[i*5%3], i*11%13-3, i))
	}
	return observer.Query{Stream: "orders", Table: "stock", Key: []string{"warehouse", "sku", "bin"}, Timestamp: "at"}
}

func withinTies(t *testing.T, f Fixture) {
	q := f.stock()
	all := f.ties(t, q)
	if len(all) != 60 {
		t.Fatalf("%d rows of 60", len(all))
	}
	order := f.tieOrder(t, q)
	first, last := all[30], all[len(all)-1]
	for _, test := range []struct {
		in   observer.Range
		want []row
	}{
		{observer.Range{From: first.cursor, Key: first.key, Order: order, Limit: 7}, all[30:37]},
		{observer.Range{From: first.cursor, Key: first.key, Order: order, Before: last.cursor}, all[30:48]},
		{observer.Range{From: first.cursor, Key: first.key, Order: order, Before: last.cursor, Limit: 3}, all[30:33]},
		{observer.Range{From: first.cursor, Key: "a/-100/x", Order: order}, all[24:]}, // a key that is not there
	} {
		if got := f.readIn(t, q, test.in); keys(got) != keys(test.want) {
			t.Errorf("%+v: keys = %s, want %s", test.in, keys(got), keys(test.want))
		}
	}
	text, err := f.Source.SQL(t.Context(), q, observer.Range{From: first.cursor, Key: first.key, Order: order})
	if err != nil || !strings.Contains(text.Full, ">=") || strings.Contains(text.Full, first.cursor) || strings.Contains(text.Full, "'a'") {
		t.Errorf("SQL = %s, %v", text.Full, err)
	}
	// A key that has the timestamp in it needs no comparison of that.
	q.Key = []string{"sku", "at", "bin", "warehouse"}
	f.ties(t, q)
	if q.Key = []string{"at"}; f.tieOrder(t, q) != "" {
		t.Error("rows are ordered by a key that is the timestamp")
	}
}

// tiesByIndex has the source go on near the end of a large group.
func tiesByIndex(t *testing.T, f Fixture) {
	f.manyOrders(2500)
	order, at := f.tieOrder(t, orders()), f.read(t, orders(), "")[4990]
	in := observer.Range{From: at.cursor, Key: at.key, Order: order}
	p, err := f.Source.Plan(t.Context(), orders(), in)
	if err != nil || !strings.Contains(strings.ToLower(p.Text), "orders_by_time") || p.Sorts || len(p.FullScan) > 0 {
		t.Errorf("with an index: %+v, %v", p, err)
	}
	if got := f.readIn(t, orders(), in); len(got) != 10 {
		t.Errorf("%d rows, want the last 10", len(got))
	}
}

// otherTies asks to go on in another order than that of the rows.
func otherTies(t *testing.T, f Fixture) {
	q := f.stock()
	at := f.read(t, q, "")[30]
	for _, order := range []string{"", "another"} {
		_, err := TryRead(f.Source, q, observer.Range{From: at.cursor, Key: at.key, Order: order})
		if order != "" && observer.ClassOf(err) != observer.ClassRetry {
			t.Errorf("in the order %q: %v", order, err)
		}
	}
	before := f.tieOrder(t, q)
	q.Key = []string{"sku", "warehouse", "bin"}
	if after := f.tieOrder(t, q); after == before || after == "" {
		t.Errorf("both orders are %q", after)
	}
}

// nullTies has NULL in columns of the key, which may come first or last.
func nullTies(t *testing.T, f Fixture) {
	f.exec("CREATE TABLE stock (at {timestamp} NOT NULL, warehouse {name}, sku {integer}, status {text})")
	for i := range 36 {
		warehouse, sku := []string{"'a'", "'b'", "NULL"}[i%3], []string{"1", "2", "NULL"}[i/3%3]
		f.exec(fmt.Sprintf("INSERT INTO stock VALUES ('%s', %s, %s, 'v')", second(i/18), warehouse, sku))
	}
	for _, key := range [][]string{{"warehouse", "sku"}, {"sku", "warehouse"}} {
		q := observer.Query{Table: "stock", Key: key, Timestamp: "at"}
		if all := f.ties(t, q); len(all) != 36 {
			t.Errorf("%d rows of 36", len(all))
		}
	}
}

// cutTies polls groups of rows of one timestamp in statements that end with each row.
func cutTies(t *testing.T, f Fixture) {
	q := f.stock()
	p := f.polls(observer.DetectChange)
	p.spec.Query, p.spec.StatementTime = q, time.Nanosecond
	counted := &counting{Source: f.Source}
	p.src = counted
	p.poll(t)
	if counted.within < 40 {
		t.Errorf("%d statements began among rows of one timestamp", counted.within)
	}
	f.exec("UPDATE stock SET status = 'w', at = '" + second(100) + "' WHERE sku > 3")
	p.poll(t)
	p.poll(t)
	said := p.statuses(t)
	for _, r := range f.read(t, q, "") {
		status := member(t, []byte(r.data), "status")
		got, changed := said[r.key], status == "w"
		if len(got) == 0 || changed != (len(got) == 2) || changed && got[1] != "changed w" || !changed && got[0] != "new "+status {
			t.Errorf("key %s: %q, status %s", r.key, got, status)
		}
	}
	if dead := p.db.Dead("orders"); len(dead) > 0 || len(said) != 60 {
		t.Errorf("%d keys of 60, poison rows %+v", len(said), dead)
	}
}

// counting counts the reads that begin among rows of one timestamp.
type counting struct {
	observer.Source
	within int
}

// Read implements [observer.Source].
func (c *counting) Read(ctx context.Context, q observer.Query, in observer.Range) (observer.Rows, error) {
	if in.Key != "" {
		c.within++
	}
	return c.Source.Read(ctx, q, in)
}

package sourcetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
)

// ordered asks in both ways whether an index serves the key.
func (f Fixture) ordered(t *testing.T, q observer.Query) bool {
	t.Helper()
	order, err := f.Source.KeyOrder(t.Context(), q)
	if err != nil {
		t.Fatalf("KeyOrder: %v", err)
	}
	d, err := f.Source.Describe(t.Context(), q)
	if err != nil || d.KeyOrdered != (order != "") {
		t.Fatalf("%s: KeyOrder = %q, Describe says %t, %v", q.Table, order, d.KeyOrdered, err)
	}
	return order != ""
}

// suffixes reads from each key on, which must return all that comes behind it.
func (f Fixture) suffixes(t *testing.T, q observer.Query) []row {
	t.Helper()
	if !f.ordered(t, q) {
		t.Fatalf("no index serves the key of %s", q.Table)
	}
	all := f.readIn(t, q, observer.Range{ByKey: true})
	for i, first := range all {
		got := f.readIn(t, q, observer.Range{ByKey: true, Key: first.key})
		if keys(got) != keys(all[i:]) {
			t.Errorf("%s from %q: keys = %q, want %q", q.Table, first.key, keys(got), keys(all[i:]))
		}
	}
	f.eachKey(t, q, all)
	return all
}

// eachKey reads each row by its key, which must return it, and may return rows whose
// keys the source takes for equal.
func (f Fixture) eachKey(t *testing.T, q observer.Query, all []row) {
	t.Helper()
	for _, want := range all {
		if want.key == "" {
			continue
		}
		got := f.readIn(t, q, observer.Range{Part: observer.PartKey, Key: want.key})
		got = slices.DeleteFunc(got, func(r row) bool { return r.key != want.key })
		if len(got) != 1 || got[0].full != want.full || got[0].cursor != want.cursor {
			t.Errorf("%s of %q: %+v, want %+v", q.Table, want.key, got, want)
		}
	}
}

// ReadByKey reads a query by its key, and from each key on, which must return all
// rows that come at it or behind it, and may return those before them that the
// source takes for equal. It returns the keys. It reads them in the same way among
// rows of one timestamp, which the query has in a column "at".
func ReadByKey(t *testing.T, s Source, q observer.Query) []string {
	t.Helper()
	keys := ReadByKeyAlone(t, s, q)
	q.Timestamp = "at"
	if tied := (Fixture{Source: s}).ties(t, q); len(tied) != len(keys) {
		t.Errorf("%s: %d rows with a timestamp, want %d", q.Table, len(tied), len(keys))
	}
	return keys
}

// ReadByKeyAlone is [ReadByKey] for keys by which rows of one timestamp are not read.
func ReadByKeyAlone(t *testing.T, s Source, q observer.Query) []string {
	t.Helper()
	f := Fixture{Source: s}
	if !f.ordered(t, q) {
		t.Fatalf("no index serves the key of %s", q.Table)
	}
	all := f.readIn(t, q, observer.Range{ByKey: true})
	found := make([]string, len(all))
	for i, first := range all {
		if found[i] = first.key; first.key == "" {
			continue // as with NULL in it; no read goes on from there
		}
		got := f.readIn(t, q, observer.Range{ByKey: true, Key: first.key})
		if again := len(got) - len(all[i:]); again < 0 || data(got[again:]) != data(all[i:]) {
			t.Errorf("%s from %q:\n%s\nwant at the end\n%s", q.Table, first.key, data(got), data(all[i:]))
		}
	}
	return found
}

func data(rows []row) string {
	return strings.Join(fn.Each(rows, func(r row) string { return r.data }), "\n")
}

// OrdersByKey reports whether an index serves the key of a query.
func OrdersByKey(t *testing.T, s Source, q observer.Query) bool {
	t.Helper()
	return Fixture{Source: s}.ordered(t, q)
}

func byKey(t *testing.T, f Fixture) {
	f.exec("CREATE TABLE stock (quantity {integer}, warehouse {name} NOT NULL, sku {integer} NOT NULL, bin {name} NOT NULL, PRIMARY KEY (sku, warehouse, bin))")
	for i, row := range []string{
		"'b', 2, 'x'", "'a', 2, 'y'", "'a', 2, 'x'", "'b', 1, 'x'", "'a', 10, 'x'", "'a/b', 3, 'x%'", "'it''s', 3, 'ü'", "'\\', 4, 'ß'",
	} {
		f.exec(fmt.Sprintf("INSERT INTO stock VALUES (%d, %s)", i, row))
	}
	q := observer.Query{Table: "stock", Key: []string{"warehouse", "bin", "sku"}}
	all := f.suffixes(t, q)
	if got := keys(all[:4]); got != "b/x/1 a/x/2 a/y/2 b/x/2" || len(all) != 8 || all[7].key != "a/x/10" {
		t.Errorf("keys = %s, want them in the order of the index", keys(all))
	}
	// A key that is gone parts the others all the same.
	if got := keys(f.readIn(t, q, observer.Range{ByKey: true, Key: "b/w/2"})); !strings.HasPrefix(got, "b/x/2 ") {
		t.Errorf("from a key that is not there: keys = %s", got)
	}
	text, err := f.Source.SQL(t.Context(), q, observer.Range{ByKey: true, Key: "a/x/2"})
	if err != nil || !strings.Contains(text.Full, ">=") || !strings.Contains(text.Full, "ORDER BY") || strings.Contains(text.Full, "'a'") {
		t.Errorf("SQL = %s, %v", text.Full, err)
	}
}

// ofOneKey is for rows that a poll would read: by the policy for NULL, and poison rows
// too. A key that is not there has none.
func ofOneKey(t *testing.T, f Fixture) {
	f.exec("CREATE TABLE orders (order_id {integer} PRIMARY KEY, status {text}, updated_at {timestamp})",
		"INSERT INTO orders VALUES (1, 'a', NULL)", "INSERT INTO orders VALUES (2, 'b', '2024-05-01 10:00:01')",
		"INSERT INTO orders VALUES (3, 'c', "+f.BadTime+")")
	for policy, want := range map[observer.NullPolicy][]string{
		observer.NullInclude: {"1", "2", "3!", ""}, observer.NullError: {"1!", "2", "3!", ""}, observer.NullSkip: {"", "2", "3!", ""},
	} {
		q := orders()
		q.NullTimestamp = policy
		for i, key := range []string{"1", "2", "3", "4"} {
			got := ""
			for _, r := range f.readIn(t, q, observer.Range{Part: observer.PartKey, Key: key}) {
				if got += r.key; r.err != nil {
					got += "!"
				}
			}
			if got != want[i] {
				t.Errorf("%s: of the key %s = %q, want %q", policy, key, got, want[i])
			}
		}
	}
}

func keysOfEachType(t *testing.T, f Fixture) {
	for kind, values := range map[string][]string{
		"integer":   {"-5", "0", "3", "10", "9007199254740993", "9007199254740992", "-9007199254740993"},
		"decimal":   {"10", "9", "0.5", "-1.25", "100.000001"},
		"name":      {"a", "b", "10", "9", "A-1", "x x", "é", "日本", "~"},
		"timestamp": {"2024-05-01 10:00:00", "2024-05-01 09:59:59", "1999-12-31 23:59:59"},
	} {
		if kind == "timestamp" && f.UnkeyedTime {
			continue
		}
		q := observer.Query{Table: "t_" + kind, Key: []string{"k"}}
		f.exec("CREATE TABLE " + q.Table + " (k {" + kind + "} NOT NULL, PRIMARY KEY (k))")
		for _, value := range values {
			if kind != "integer" && (kind != "decimal" || f.Decimal("1") != "1") {
				value = "'" + value + "'"
			}
			f.exec("INSERT INTO " + q.Table + " VALUES (" + value + ")")
		}
		if all := f.suffixes(t, q); len(all) != len(values) {
			t.Errorf("%s: %d rows of %d", kind, len(all), len(values))
		}
	}
}

func noKeyOrder(t *testing.T, f Fixture) {
	f.exec(ordersTable, "INSERT INTO orders VALUES (1, 'a', '2024-05-01 10:00:00')",
		"CREATE TABLE plain (order_id {integer} NOT NULL, status {name} NOT NULL)",
		"CREATE INDEX plain_status ON plain (status, order_id)",
		"CREATE VIEW shown AS SELECT order_id, status FROM orders")
	for _, q := range []observer.Query{
		{Table: "plain", Key: []string{"order_id"}},
		{Table: "shown", Key: []string{"order_id"}},
		{Table: "orders", Key: []string{"order_id", "status"}},
		{SQL: "SELECT order_id FROM orders", Key: []string{"order_id"}},
	} {
		if f.ordered(t, q) {
			t.Errorf("%+v: an index serves the key", q)
		}
		_, err := TryRead(f.Source, q, observer.Range{ByKey: true, Key: "1/2"})
		if observer.ClassOf(err) != observer.ClassRetry {
			t.Errorf("%+v: read by key: %v", q, err)
		}
	}
	if !f.ordered(t, observer.Query{Table: "plain", Key: []string{"order_id", "status"}}) {
		t.Error("an index that is not unique serves a key as well")
	}
}

// otherOrder puts an index of another order in the place of the one by which a key
// was reached, before which other keys lie in it.
func otherOrder(t *testing.T, f Fixture) {
	create := func(columns string) {
		f.exec("CREATE TABLE plain (a {integer} NOT NULL, b {integer} NOT NULL)", "CREATE INDEX plain_key ON plain ("+columns+")",
			"INSERT INTO plain VALUES (1, 9)", "INSERT INTO plain VALUES (2, 8)")
	}
	create("a, b")
	q := observer.Query{Table: "plain", Key: []string{"a", "b"}}
	order := func() string {
		id, err := f.Source.KeyOrder(t.Context(), q)
		if err != nil || id == "" {
			t.Fatalf("KeyOrder = %q, %v", id, err)
		}
		return id
	}
	before := order()
	if got := keys(f.readIn(t, q, observer.Range{ByKey: true, Order: before, Key: "2/8"})); got != "2/8" || order() != before {
		t.Errorf("keys = %s, order %s and %s", got, before, order())
	}
	f.exec("DROP TABLE plain")
	create("b, a")
	if _, err := TryRead(f.Source, q, observer.Range{ByKey: true, Order: before, Key: "2/8"}); observer.ClassOf(err) != observer.ClassRetry {
		t.Errorf("a read goes on in the order %s: %v", order(), err)
	}
	if after := order(); after == before {
		t.Errorf("both orders are %s", after)
	}
}

func nullByKey(t *testing.T, f Fixture) {
	f.exec("CREATE TABLE orders (order_id {integer} PRIMARY KEY, status {text}, updated_at {timestamp})",
		"INSERT INTO orders VALUES (1, 'a', NULL)", "INSERT INTO orders VALUES (2, 'b', '2024-05-01 10:00:01')",
		"INSERT INTO orders VALUES (3, 'c', NULL)", "INSERT INTO orders VALUES (4, 'd', '2024-05-01 10:00:00')")
	for policy, want := range map[observer.NullPolicy]string{
		observer.NullInclude: "1 2 3 4", observer.NullError: "1 2 3 4", observer.NullSkip: "2 4",
	} {
		q := orders()
		q.NullTimestamp = policy
		if got := keys(f.suffixes(t, q)); got != want {
			t.Errorf("%s: keys = %s, want %s", policy, got, want)
		}
	}
}

// sameKeys checks that what is gone has the members that the row had, for its key of two
// columns.
func sameKeys(t *testing.T, all []events.Event) {
	t.Helper()
	rows := make(map[string]map[string]json.RawMessage)
	for _, e := range all {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(e.Data, &members); err != nil {
			t.Fatal(err)
		}
		if e.Change != events.ChangeGone {
			rows[e.Subject] = members
			continue
		}
		for name, value := range members {
			if string(rows[e.Subject][name]) != string(value) || len(members) != 2 {
				t.Errorf("%s is gone with %s, after %s", e.Subject, e.Data, rows[e.Subject])
			}
		}
	}
}

// generations reads all rows in polls that each have enough of a few.
func generations(t *testing.T, f Fixture) {
	f.exec("CREATE TABLE stock (warehouse {name} NOT NULL, sku {integer} NOT NULL, status {text}, PRIMARY KEY (warehouse, sku))")
	for i := range 40 {
		f.exec(fmt.Sprintf("INSERT INTO stock VALUES ('w%d', %d, 'a')", i%4, i))
	}
	p := f.polls(observer.DetectSnapshot)
	p.spec.Query = observer.Query{Table: "stock", Key: []string{"sku", "warehouse"}}
	p.spec.MaxChanged, p.spec.ChunkRows = 9, 4
	all := func() (polls int) {
		for polls = 1; p.poll(t).Full; polls++ {
			continue
		}
		return polls
	}
	if polls := all(); polls != 5 {
		t.Errorf("40 rows took %d polls of 9", polls)
	}
	f.exec("DELETE FROM stock WHERE sku IN (3, 20, 39)", "UPDATE stock SET status = 'b' WHERE sku BETWEEN 10 AND 25")
	if polls := all(); polls != 2 {
		t.Errorf("15 changes took %d polls of 9", polls)
	}
	for key, said := range p.statuses(t) {
		sku, _, _ := strings.Cut(key, "/")
		want := []string{"new a"}
		switch {
		case slices.Contains([]string{"3", "20", "39"}, sku):
			want = append(want, "gone ")
		case len(sku) == 2 && sku >= "10" && sku <= "25":
			want = append(want, "changed b")
		}
		if !slices.Equal(said, want) {
			t.Errorf("%s: %q, want %q", key, said, want)
		}
	}
	sameKeys(t, p.db.Events("orders"))
	if dead := p.db.Dead("orders"); len(dead) > 0 {
		t.Errorf("poison rows %+v", dead)
	}
}

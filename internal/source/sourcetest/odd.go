package sourcetest

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/observer"
)

// Odd is a kind of row that no event can hold.
type Odd struct {
	Name string
	// Column declares a column, Good and Bad are literals of it.
	Column, Good, Bad string
	// Before is a statement without which the database refuses Bad; empty for none.
	Before string
	// Fault is that of the row, behind the name of the column.
	Fault string
	// TableAlone says that what is bad is fine in a view.
	TableAlone bool
}

// A table has oddRows rows, of which one in oddEvery is odd. A poll takes oddPoll of
// them.
const (
	oddRows  = 1000
	oddEvery = 100
	oddPoll  = 250
)

// strange is a kind of odd row. What is empty in it is as in the other rows.
type strange struct {
	name string
	// shop, sku, status, note and at make the literals of the n-th odd row.
	shop, sku, status, note, at func(n int) string
	// column declares note, good is what it holds elsewhere.
	column, good string
	fault        string
	change       func(q *observer.Query)
	// dated says that what is odd is fine in a snapshot, table that it is fine in a view,
	// snapshot that it is nothing new to a poll for new rows.
	dated, table, snapshot bool
	// nulls says that the key may be NULL, with which not every database has an order.
	nulls bool
}

func literal(text string) func(int) string { return func(int) string { return text } }

// oddKinds are the kinds of which there are rows in this database.
func (f Fixture) oddKinds() []strange {
	slashes := func(length int) string { return "'" + strings.Repeat("/", length) }
	all := []strange{
		{name: "NULL in the key", shop: literal("NULL"), nulls: true, fault: "column shop is NULL in the key"},
		{
			name: "a key that is too long", shop: literal(slashes(200) + "'"), fault: "column shop makes a key longer than 1024 bytes",
			sku: func(n int) string { return fmt.Sprintf("%s%06d'", slashes(190), n) },
		},
		{
			name: "a row that is too large", status: literal("'" + strings.Repeat("x", 700) + "'"), fault: "the row is larger than 600 bytes",
			change: func(q *observer.Query) { q.MaxRowBytes = 600 },
		},
		{name: "a timestamp without an instant", at: literal(f.BadTime), fault: "column updated_at " + f.Timeless},
		{
			name: "no timestamp", at: literal("NULL"), fault: "column updated_at is NULL",
			change: func(q *observer.Query) { q.NullTimestamp = observer.NullError },
		},
		{
			name: "a key of two rows", sku: func(n int) string { return fmt.Sprintf("'%06d'", n-1) }, snapshot: true, fault: "key (shop, sku) is not unique",
			shop: func(n int) string { return "'" + shopOf(n-1) + "'" }, at: func(n int) string { return "'" + second((n-1)/3) + "'" },
		},
	}
	if !f.EmptyIsNull {
		all = append(all, strange{name: "an empty key", shop: literal("''"), fault: "column shop is empty in the key"})
	}
	if f.Poison != "" {
		all = append(all, strange{name: "text that is none", status: literal(f.Poison), fault: "column status " + noText},
			strange{name: "text that is none in the key", shop: literal(f.Poison), fault: "column shop " + noText})
	}
	if f.Stray != "" {
		all = append(all, strange{name: "a timestamp of another form", at: literal(f.Stray), dated: true, fault: "column updated_at has a timestamp in"})
	}
	for _, o := range f.Odd {
		if o.Before != "" {
			f.Exec(o.Before)
		}
		all = append(all, strange{name: o.Name, column: o.Column, good: o.Good, note: literal(o.Bad), table: o.TableAlone, fault: "column note " + o.Fault})
	}
	return all
}

// oddOnes reads tables in which one row in a hundred is odd: each of the others becomes
// one event, and each odd one is noted once.
func oddOnes(t *testing.T, f Fixture) {
	kinds := f.oddKinds()
	good := make([][]string, len(kinds))
	for n, kind := range kinds {
		good[n] = f.oddTable(n, kind)
	}
	for n, kind := range kinds {
		dated := observer.Query{Stream: "orders", Table: oddTable(n), Key: []string{"shop", "sku"}, Timestamp: "updated_at"}
		if kind.change != nil {
			kind.change(&dated)
		}
		all := dated
		if kind.at == nil {
			all.Timestamp = ""
		}
		view := all
		view.Table = oddView(n)
		t.Run(kind.name+", by timestamp", func(t *testing.T) {
			t.Parallel()
			f.pollOdd(t, kind, dated, observer.DetectNew, good[n])
		})
		t.Run(kind.name+", by key", func(t *testing.T) {
			t.Parallel()
			if ordered := f.ordered(t, all); !ordered && !kind.nulls {
				t.Error("no index serves the key")
			} else if ordered {
				f.pollOdd(t, kind, all, observer.DetectSnapshot, good[n])
			}
		})
		t.Run(kind.name+", without an index", func(t *testing.T) {
			t.Parallel()
			if f.ordered(t, view) {
				t.Error("an index serves the key of a view")
			}
			f.pollOdd(t, kind, view, observer.DetectSnapshot, good[n])
		})
	}
}

func oddTable(n int) string { return "odd_" + number(n) }

func oddView(n int) string { return "odd_view_" + number(n) }

func shopOf(n int) string { return "s" + number(n/7%5) }

// oddTable makes the n-th table, and a view of it, with odd rows. It returns the keys of
// the others.
func (f Fixture) oddTable(place int, kind strange) (good []string) {
	table, null := oddTable(place), " NOT NULL"
	if kind.nulls {
		null = ""
	}
	f.exec("CREATE TABLE "+table+" (shop {name}"+null+", sku {name} NOT NULL, status {text}, note "+cmp.Or(kind.column, "{text}")+", updated_at {timestamp})",
		"CREATE INDEX "+table+"_key ON "+table+" (shop, sku)", "CREATE INDEX "+table+"_time ON "+table+" (updated_at, shop, sku)",
		"CREATE VIEW "+oddView(place)+" AS SELECT * FROM "+table)
	write := func(how func(int) string, n int, otherwise string) string {
		if how == nil || n%oddEvery != oddEvery/2 {
			return otherwise
		}
		return how(n)
	}
	var rows []string
	for n := range oddRows {
		shop, sku := shopOf(n), fmt.Sprintf("%06d", n)
		if n%oddEvery != oddEvery/2 {
			good = append(good, observer.JoinKey([]string{shop, sku}))
		}
		rows = append(rows, "("+strings.Join([]string{
			write(kind.shop, n, "'"+shop+"'"), write(kind.sku, n, "'"+sku+"'"), write(kind.status, n, "'a'"),
			write(kind.note, n, cmp.Or(kind.good, "'b'")), write(kind.at, n, "'"+second(n/3)+"'"),
		}, ", ")+")")
		if len(rows) == oddRows/2 {
			f.Exec("INSERT INTO " + table + " VALUES " + strings.Join(rows, ", "))
			rows = nil
		}
	}
	return good
}

func (f Fixture) pollOdd(t *testing.T, kind strange, q observer.Query, detect observer.Detect, good []string) {
	t.Helper()
	p := f.polls(detect)
	p.spec.Query, p.spec.ChunkRows, p.spec.MaxChanged = q, 100, oddPoll
	polls := 1
	for p.poll(t).Full {
		if polls++; polls > 50 {
			t.Fatal("the polls come to no end")
		}
	}
	view := strings.Contains(q.Table, "view")
	if !view && polls < len(good)/oddPoll {
		t.Errorf("%d rows took %d polls of %d", len(good), polls, oddPoll)
	}
	p.poll(t) // Nothing is new to it.
	want, dead := oddRows/oddEvery, p.db.Dead("orders")
	fine := detect == observer.DetectSnapshot && kind.dated || view && kind.table
	if fine || detect == observer.DetectNew && kind.snapshot {
		want = 0
	}
	for _, d := range dead {
		if !strings.Contains(strings.ToLower(d.Reason), strings.ToLower(kind.fault)) {
			t.Errorf("a poison row: %s, want that %s", d.Reason, kind.fault)
		}
	}
	if len(dead) != want {
		t.Errorf("%d poison rows, want %d", len(dead), want)
	}
	oddEvents(t, p, good, fine)
}

// oddEvents checks that each row has one event: the good ones alone, unless all are fine.
func oddEvents(t *testing.T, p *polls, good []string, fine bool) {
	t.Helper()
	count, all := make(map[string]int), p.db.Events("orders")
	for _, e := range all {
		if e.Change == events.ChangeNew {
			count[e.Subject]++
		}
	}
	for _, key := range good {
		if count[key] != 1 {
			t.Errorf("%s is new %d times", key, count[key])
		}
	}
	want := len(good)
	if fine {
		want = oddRows
	}
	if len(all) != want {
		t.Errorf("%d events, want %d", len(all), want)
	}
}

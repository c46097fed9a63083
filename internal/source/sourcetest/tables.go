package sourcetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// tables has a compound key in another order than that of its columns, a table without
// one, and a view.
func tables(t *testing.T, f Fixture) {
	f.exec("CREATE TABLE order_lines (sku {name} NOT NULL, changed_at {timestamp} DEFAULT ("+f.Now+") NOT NULL, order_id {integer} NOT NULL, due_at {timestamp}, updated_at {timestamp}, PRIMARY KEY (order_id, sku))",
		"CREATE INDEX lines_by_time ON order_lines (changed_at, sku)",
		"CREATE TABLE keyless (sku {name}, note {text})",
		"CREATE VIEW seen AS SELECT * FROM order_lines")
	all, err := f.Source.Tables(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]source.Table)
	for _, table := range all {
		found[strings.ToLower(table.FullName())] = table
	}
	lines, keyless, seen := found["order_lines"], found["keyless"], found["seen"]
	if lower(lines.Key) != "order_id sku" || lines.View || keyless.Name == "" || keyless.Key != nil || keyless.Times != nil || !seen.View || seen.Key != nil || seen.Rows != -1 {
		t.Errorf("tables are %+v", all)
	}
	if lines.Rows > source.ManyRows {
		t.Errorf("an empty table has %d rows", lines.Rows)
	}
	if len(lines.Times) < 2 || len(seen.Times) != len(lines.Times) {
		t.Fatalf("tables are %+v", all)
	}
	kept, free := lines.Times[0], lines.Times[len(lines.Times)-1]
	if !strings.EqualFold(kept.Name, "changed_at") || kept.Nullable || kept.Date || kept.Default != source.Yes || !kept.Kept() || kept.Indexed == source.No {
		t.Errorf("a column that the database sets is %+v", kept)
	}
	if !strings.EqualFold(free.Name, "updated_at") || !free.Nullable || free.Default != source.No || free.Kept() || free.Indexed == source.Yes {
		t.Errorf("a column that nothing keeps is %+v", free)
	}
	for _, c := range seen.Times {
		if c.Default != source.Unknown || c.OnUpdate != source.Unknown || c.Trigger != source.Unknown || c.Indexed != source.Unknown {
			t.Errorf("a column of a view is %+v", c)
		}
	}
	samples(t, f, lines)
	if all, err = f.Source.Tables(t.Context(), 1); err != nil || len(all) != 1 {
		t.Errorf("at most one table is %+v, %v", all, err)
	}
	if _, err := f.Unreachable.Tables(t.Context(), 1); err == nil {
		t.Error("an unreachable database has tables")
	}
}

// samples has more rows than a sample, of which the last have the newest times, a table
// whose defaults are other times, and an empty one.
func samples(t *testing.T, f Fixture, lines source.Table) {
	t.Helper()
	f.exec("CREATE TABLE marks (id {integer} PRIMARY KEY, made {timestamp} DEFAULT '1900-01-01 00:00:00' NOT NULL, moved {timestamp})",
		"INSERT INTO marks VALUES (1, '2024-05-01 10:00:00', '2024-05-01 10:00:00')")
	marks := f.listed(t, "marks")
	if made := marks.Times[0]; made.Default != source.No || !made.OtherDefault || marks.Times[1].OtherDefault {
		t.Errorf("a default that is not the present time: %+v", marks.Times)
	}
	if err := f.Source.Sample(t.Context(), &lines); err != nil || !lines.Counted || lines.Rows != 0 || lines.Times[0].Sampled != (source.Sampled{}) {
		t.Errorf("an empty table has %+v, %v", lines, err)
	}
	f.exec("INSERT INTO marks VALUES (2, '1900-01-01 00:00:00', NULL)", "INSERT INTO marks VALUES (3, '2023-05-01 10:00:00', NULL)")
	if err := f.Source.Sample(t.Context(), &marks); err != nil || !marks.Counted || marks.Rows != 3 {
		t.Fatalf("three rows: %+v, %v", marks, err)
	}
	newest := time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC)
	for n, want := range []source.Sampled{{Rows: 3, Empty: 1, Distinct: 2}, {Rows: 3, Empty: 2, Distinct: 1}} {
		got := marks.Times[n].Sampled
		if !got.Newest.Equal(newest) {
			t.Errorf("column %d: the newest time is %s", n, got.Newest)
		}
		if got.Newest = want.Newest; got != want {
			t.Errorf("column %d: %+v, want %+v", n, got, want)
		}
	}
	for n := range source.SampledRows {
		f.exec(fmt.Sprintf("INSERT INTO marks VALUES (%d, '2024-05-01 10:00:00', NULL)", 10+n))
	}
	marks = f.listed(t, "marks")
	if err := f.Source.Sample(t.Context(), &marks); err != nil || marks.Times[0].Sampled != (source.Sampled{Rows: source.SampledRows, Distinct: 1, Newest: marks.Times[0].Sampled.Newest}) || marks.Times[1].Sampled.Empty != source.SampledRows {
		t.Errorf("a sample of the last rows: %+v, %v", marks.Times, err)
	}
	if err := f.Unreachable.Sample(t.Context(), &marks); !errors.Is(err, observer.ErrUnreachable) {
		t.Errorf("of an unreachable database: %v", err)
	}
}

// listed is a table as it is listed.
func (f Fixture) listed(t *testing.T, name string) source.Table {
	t.Helper()
	all, err := f.Source.Tables(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	n := slices.IndexFunc(all, func(table source.Table) bool { return strings.EqualFold(table.Name, name) })
	if n < 0 {
		t.Fatalf("no table %s in %+v", name, all)
	}
	return all[n]
}

// primaryKeys are found in their order, in whatever case the table is written.
func primaryKeys(t *testing.T, f Fixture) {
	f.exec("CREATE TABLE order_lines (sku {name} NOT NULL, order_id {integer} NOT NULL, note {text}, PRIMARY KEY (order_id, sku))",
		"CREATE TABLE keyless (sku {name}, note {text})", "CREATE INDEX by_sku ON keyless (sku)",
		"CREATE VIEW seen AS SELECT * FROM order_lines")
	for table, want := range map[string]string{"order_lines": "order_id sku", "ORDER_LINES": "order_id sku", "keyless": "", "seen": ""} {
		if key, err := f.Source.PrimaryKey(t.Context(), observer.Query{Table: table}); err != nil || lower(key) != want {
			t.Errorf("%s: the primary key is %q, %v; want %q", table, key, err, want)
		}
	}
	q, err := observer.WithKey(t.Context(), f.Source, observer.Query{Table: "order_lines"})
	if err != nil {
		t.Fatal(err)
	}
	f.exec("INSERT INTO order_lines VALUES ('a', 7, 'x')")
	if rows := f.read(t, q, ""); keys(rows) != "7/a" {
		t.Errorf("keys are %s", keys(rows))
	}
	var missing *source.MissingError
	if _, err := f.Source.PrimaryKey(t.Context(), observer.Query{Table: "order_line"}); !errors.As(err, &missing) || observer.ClassOf(err) != observer.ClassQuery {
		t.Errorf("of a missing table: %v", err)
	}
	if _, err := f.Unreachable.PrimaryKey(t.Context(), observer.Query{Table: "order_lines"}); !errors.Is(err, observer.ErrUnreachable) {
		t.Errorf("of an unreachable database: %v", err)
	}
	if _, err := observer.WithKey(t.Context(), f.Source, observer.Query{Table: "keyless"}); observer.ClassOf(err) != observer.ClassQuery || !strings.Contains(err.Error(), "set key") {
		t.Errorf("without a primary key: %v", err)
	}
}

func lower(names []string) string { return strings.ToLower(strings.Join(names, " ")) }

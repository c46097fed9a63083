package oratest_test

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// all reads every value of a query's rows.
func all(t *testing.T, db *sql.DB, query string, args ...any) ([][]any, error) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var got [][]any
	for rows.Next() {
		row, into := make([]any, len(names)), make([]any, len(names))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return got, err
		}
		got = append(got, row)
	}
	return got, rows.Err()
}

func mustAll(t *testing.T, db *sql.DB, query string, args ...any) [][]any {
	t.Helper()
	got, err := all(t, db, query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return got
}

func TestValues(t *testing.T) {
	day := time.Date(2026, 2, 28, 23, 59, 58, 0, time.UTC)
	moment := day.Add(123456789)
	delhi := moment.In(time.FixedZone("", 5*3600+1800))
	newYork := moment.In(time.FixedZone("", -(3*3600 + 1800)))
	for _, tc := range []struct {
		name   string
		column wire.Column
		values []wire.Value
		want   []any
	}{
		{"varchar", wire.Column{Type: wire.TypeVarchar, Size: 4000},
			[]wire.Value{"a", "Grüße 日本 🚚", strings.Repeat("é", 2000), "", nil},
			[]any{"a", "Grüße 日本 🚚", strings.Repeat("é", 2000), nil, nil}},
		{"char", wire.Column{Type: wire.TypeChar, Size: 4}, []wire.Value{"ab  ", nil}, []any{"ab  ", nil}},
		{"raw", wire.Column{Type: wire.TypeRaw, Size: 16}, []wire.Value{[]byte{0, 1, 0xFF}, nil}, []any{[]byte{0, 1, 0xFF}, nil}},
		{"double", wire.Column{Type: wire.TypeBinaryDouble},
			[]wire.Value{1.5, -2.25, 0.0, math.MaxFloat64, math.SmallestNonzeroFloat64, nil},
			[]any{1.5, -2.25, 0.0, math.MaxFloat64, math.SmallestNonzeroFloat64, nil}},
		{"float", wire.Column{Type: wire.TypeBinaryFloat}, []wire.Value{1.5, -2.25, nil}, []any{float32(1.5), float32(-2.25), nil}},
		{"date", wire.Column{Type: wire.TypeDate}, []wire.Value{day, day.In(time.FixedZone("", 3600)), nil},
			[]any{day, day.Add(time.Hour), nil}},
		{"timestamp", wire.Column{Type: wire.TypeTimestamp, Scale: 9}, []wire.Value{moment, day, nil}, []any{moment, day, nil}},
		{"timestamp with time zone", wire.Column{Type: wire.TypeTimestampTZ, Scale: 9},
			[]wire.Value{moment, delhi, newYork, nil}, []any{moment, delhi, newYork, nil}},
		{"timestamp with local time zone", wire.Column{Type: wire.TypeTimestampLTZ, Scale: 9},
			[]wire.Value{delhi, nil}, []any{moment, nil}},
		{"rowid", wire.Column{Type: wire.TypeRowID}, []wire.Value{"AAAR3sAAEAAAACXAAA", nil}, []any{"AAAR3sAAEAAAACXAAA", nil}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, h := start(t, oratest.Options{})
			tc.column.Name = "V"
			var rows [][]wire.Value
			for _, v := range tc.values {
				rows = append(rows, []wire.Value{v})
			}
			h.rows("t", []wire.Column{tc.column}, rows...)
			got := mustAll(t, open(t, s), "SELECT v FROM t")
			if len(got) != len(tc.want) {
				t.Fatalf("%d rows, want %d", len(got), len(tc.want))
			}
			for i, row := range got {
				if !equal(row[0], tc.want[i]) {
					t.Errorf("row %d: %#v, want %#v", i, row[0], tc.want[i])
				}
			}
		})
	}
}

// equal compares times by instant and by offset, which a location hides.
func equal(got, want any) bool {
	a, timed := got.(time.Time)
	b, also := want.(time.Time)
	if !timed || !also {
		return reflect.DeepEqual(got, want)
	}
	return a.Equal(b) && a.Format(time.RFC3339Nano) == b.Format(time.RFC3339Nano)
}

var numbers = []string{
	"0", "1", "-1", "9", "10", "99", "100", "101", "-100", "0.5", "-0.5", "0.05", "0.005", "123.456", "-123.456",
	"12345678901234567890123456789012345678", "-12345678901234567890123456789012345678",
	"9999999999999999999999999999999999999999", "-9999999999999999999999999999999999999999",
	"1234567890123456789012345678901234567.8", "0.1234567890123456789012345678901234567",
	"0.00000000000000000000000000000000000001", "1000000000000000000000000000000000000000000",
	"9223372036854775807", "-9223372036854775808", "1.01", "1000000.000001",
}

func TestNumbers(t *testing.T) {
	s, h := start(t, oratest.Options{})
	var rows [][]wire.Value
	for _, n := range numbers {
		rows = append(rows, []wire.Value{n})
	}
	h.rows("t", []wire.Column{{Name: "N", Type: wire.TypeNumber}}, append(rows, []wire.Value{nil}, []wire.Value{"007.50"})...)
	got := mustAll(t, open(t, s, "PREFETCH_ROWS", "100"), "SELECT n FROM t")
	for i, n := range append(numbers, "", "7.5") {
		if text, _ := got[i][0].(string); text != n {
			t.Errorf("%q came as %#v", n, got[i][0])
		}
	}
}

func TestColumns(t *testing.T) {
	s, h := start(t, oratest.Options{})
	h.rows("t", []wire.Column{
		{Name: "N", Type: wire.TypeNumber}, {Name: "ID", Type: wire.TypeNumber, Precision: 19},
		{Name: "PRICE", Type: wire.TypeNumber, Precision: 12, Scale: 2}, {Name: "ROUND", Type: wire.TypeNumber, Precision: 5, Scale: -2},
		{Name: "NAME", Type: wire.TypeVarchar, Size: 40, Nullable: true}, {Name: "AT", Type: wire.TypeTimestamp, Scale: 6},
		{Name: "größe", Type: wire.TypeDate},
	})
	rows, err := open(t, s).Query("SELECT * FROM t")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range columns {
		precision, scale, _ := c.DecimalSize()
		length, _ := c.Length()
		nullable, _ := c.Nullable()
		got = append(got, fmt.Sprint(c.Name(), c.DatabaseTypeName(), precision, scale, length, nullable))
	}
	want := []string{
		"N NUMBER 38 255 0 false", "ID NUMBER 19 0 0 false", "PRICE NUMBER 12 2 0 false", "ROUND NUMBER 5 254 0 false",
		"NAME NCHAR 0 0 40 true", "AT TimeStampDTY 0 0 0 false", "größe DATE 0 0 0 false",
	}
	if rows.Next() || rows.Err() != nil {
		t.Errorf("a row of none, or %v", rows.Err())
	}
	for i := range want {
		if strings.ReplaceAll(got[i], " ", "") != strings.ReplaceAll(want[i], " ", "") {
			t.Errorf("column %d: %s, want %s", i, got[i], want[i])
		}
	}
}

func TestUnknownTypeIsAnError(t *testing.T) {
	s, h := start(t, oratest.Options{})
	h.rows("t", []wire.Column{{Name: "DOC", Type: wire.TypeJSON}}, []wire.Value{"{}"})
	if _, err := all(t, open(t, s), "SELECT doc FROM t"); err == nil || !strings.Contains(err.Error(), "unable to decode") {
		t.Errorf("error %v, want that of a type that cannot be decoded", err)
	}
}

func TestValueOfAnotherTypeIsRefused(t *testing.T) {
	s, h := start(t, oratest.Options{})
	h.rows("t", []wire.Column{{Name: "N", Type: wire.TypeNumber}}, []wire.Value{"one"})
	_, err := all(t, open(t, s), "SELECT n FROM t")
	wantCode(t, err, 600)
}

func TestCLOB(t *testing.T) {
	const unicode = "aé日🚚"
	texts := map[string]string{
		"one": "x", "4,000": strings.Repeat("q", 4000), "100,000": strings.Repeat(unicode, 25_000), "unicode": unicode,
	}
	columns := []wire.Column{{Name: "ID", Type: wire.TypeNumber}, {Name: "TXT", Type: wire.TypeCLOB}, {Name: "TXT2", Type: wire.TypeCLOB}}
	for _, way := range []string{"PRE", "POST"} {
		for name, text := range texts {
			t.Run(way+"/"+name, func(t *testing.T) {
				s, h := start(t, oratest.Options{})
				h.rows("t", columns,
					[]wire.Value{"1", text, nil}, []wire.Value{"2", nil, text}, []wire.Value{"3", "", "a"}, []wire.Value{"4", text, text})
				got := mustAll(t, open(t, s, "LOB FETCH", way, "PREFETCH_ROWS", "2"), "SELECT id, txt, txt2 FROM t")
				want := [][]any{{"1", text, nil}, {"2", nil, text}, {"3", nil, "a"}, {"4", text, text}}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%d rows that differ from those sent", len(got))
				}
			})
		}
	}
}

func TestBinds(t *testing.T) {
	s, h := start(t, oratest.Options{})
	h.on("t", func(_ context.Context, st wire.Statement) (wire.Result, error) {
		var row []wire.Value
		var columns []wire.Column
		for i, v := range st.Binds {
			columns = append(columns, wire.Column{Name: fmt.Sprintf("B%d", i), Type: wire.TypeVarchar})
			row = append(row, fmt.Sprintf("%d %T %v", st.BindTypes[i], v, v))
		}
		return wire.Result{Columns: columns, Rows: &list{rows: [][]wire.Value{row}}}, nil
	})
	long := strings.Repeat("ü", 20_000)
	at := time.Date(2026, 7, 1, 12, 0, 0, 5000, time.FixedZone("", 7200))
	args := []any{"text", 42, int64(-9223372036854775808), 1234.5, nil, []byte{1, 2, 255}, "", long, true, at, "after"}
	got := mustAll(t, open(t, s), "SELECT :1, :2, :3, :4, :5, :6, :7, :8, :9, :10, :11 FROM t", args...)
	varchar, number, raw, zoned := wire.TypeVarchar, wire.TypeNumber, wire.TypeRaw, wire.TypeTimestampTZ
	want := []string{
		fmt.Sprintf("%d string text", varchar), fmt.Sprintf("%d string 42", number),
		fmt.Sprintf("%d string -9223372036854775808", number), fmt.Sprintf("%d string 1234.5", number),
		fmt.Sprintf("%d <nil> <nil>", varchar), fmt.Sprintf("%d []uint8 [1 2 255]", raw), fmt.Sprintf("%d <nil> <nil>", varchar),
		fmt.Sprintf("%d string %s", varchar, long), fmt.Sprintf("%d string 1", number),
		fmt.Sprintf("%d time.Time %v", zoned, at), fmt.Sprintf("%d string after", varchar),
	}
	for i := range want {
		if got[0][i] != want[i] {
			t.Errorf("bind %d: %.80v, want %.80s", i+1, got[0][i], want[i])
		}
	}
	if seen := s.Statements(); len(seen) != 1 || len(seen[0].Binds) != len(args) || !seen[0].Executed || seen[0].User != "OBSERVER" {
		t.Errorf("received %d statements, the first with %d binds", len(seen), len(seen[0].Binds))
	}
}

// TestRepeats reads rows whose values are partly those of the row before.
func TestRepeats(t *testing.T) {
	s, h := start(t, oratest.Options{Repeats: true})
	var columns []wire.Column
	for i := range 9 {
		columns = append(columns, wire.Column{Name: fmt.Sprintf("C%d", i), Type: wire.TypeVarchar})
	}
	columns[5].Type, columns[7].Type = wire.TypeDate, wire.TypeRaw
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var rows [][]wire.Value
	var want [][]any
	for i := range 40 {
		row, sent := make([]wire.Value, 9), make([]any, 9)
		for j := range row {
			row[j] = fmt.Sprint(i / (j + 1))
			sent[j] = row[j]
		}
		row[5], sent[5] = day.AddDate(0, 0, i/6), any(day.AddDate(0, 0, i/6))
		row[7], sent[7] = []byte{byte(i / 8)}, any([]byte{byte(i / 8)})
		if i%7 == 0 {
			row[3], sent[3] = nil, nil
		}
		rows, want = append(rows, row), append(want, sent)
	}
	h.rows("t", columns, rows...)
	if got := mustAll(t, open(t, s, "PREFETCH_ROWS", "11"), "SELECT * FROM t"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

package oratest_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/wire"
)

func TestNumbers(t *testing.T) {
	numbers := []string{
		"0", "1", "-1", "9", "10", "99", "100", "101", "-100", "0.5", "-0.5", "0.05", "0.005", "123.456", "-123.456",
		"12345678901234567890123456789012345678", "-12345678901234567890123456789012345678",
		"9999999999999999999999999999999999999999", "-9999999999999999999999999999999999999999",
		"1234567890123456789012345678901234567.8", "0.1234567890123456789012345678901234567",
		"0.00000000000000000000000000000000000001", "1000000000000000000000000000000000000000000",
		"9223372036854775807", "-9223372036854775808", "1.01", "1000000.000001",
	}
	var rows [][]wire.Value
	for _, n := range numbers {
		rows = append(rows, []wire.Value{n})
	}
	s := start(t, oratest.Options{}, canned{"FROM t": table([]wire.Column{{Name: "N", Type: wire.TypeNumber}}, rows...)})
	got, err := all(t, open(t, s, "PREFETCH_ROWS", "100"), "SELECT n FROM t")
	if err != nil || len(got) != len(numbers) {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	for i, n := range numbers {
		if got[i][0] != n {
			t.Errorf("%q came as %#v", n, got[i][0])
		}
	}
}

// TestRepeats reads rows whose values are partly those of the row before.
func TestRepeats(t *testing.T) {
	var columns []wire.Column
	for i := range 9 {
		columns = append(columns, wire.Column{Name: fmt.Sprintf("C%d", i), Type: wire.TypeVarchar})
	}
	columns[5].Type, columns[7].Type = wire.TypeTimestamp, wire.TypeRaw
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var rows [][]wire.Value
	var want [][]any
	for i := range 40 {
		row, sent := make([]wire.Value, 9), make([]any, 9)
		for j := range row {
			row[j] = fmt.Sprint(i / (j + 1))
		}
		row[5], row[7] = day.AddDate(0, 0, i/6), []byte{byte(i / 8)}
		if i%7 == 0 {
			row[3] = nil
		}
		for j, v := range row {
			sent[j] = v
		}
		rows, want = append(rows, row), append(want, sent)
	}
	s := start(t, oratest.Options{Repeats: true}, canned{"FROM t": table(columns, rows...)})
	if got, err := all(t, open(t, s, "PREFETCH_ROWS", "11"), "SELECT * FROM t"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, got %v", err, got)
	}
}

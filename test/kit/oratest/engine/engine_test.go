package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// fixed is the clock of most tests: summer in Berlin.
var fixed = time.Date(2024, 5, 1, 10, 0, 0, 123456789, time.UTC)

func berlin(t testing.TB) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func start(t testing.TB, version int) *Engine {
	t.Helper()
	return New(Options{Version: version, OSZone: berlin(t), Now: func() time.Time { return fixed }})
}

func exec(t testing.TB, e *Engine, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if err := e.Exec(sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// code is the number of a refusal, 0 for none.
func code(t testing.TB, err error) int {
	t.Helper()
	var refusal *wire.Error
	if err != nil && !errors.As(err, &refusal) {
		t.Fatalf("not a refusal: %v", err)
	}
	if refusal == nil {
		return 0
	}
	return refusal.Code
}

// show writes a result as a(b, c): values joined by commas, rows by semicolons.
func show(rows [][]any) string {
	lines := make([]string, len(rows))
	for i, row := range rows {
		cells := make([]string, len(row))
		for k, v := range row {
			switch v := v.(type) {
			case nil:
				cells[k] = "NULL"
			case time.Time:
				cells[k] = v.Format("2006-01-02 15:04:05.999999999Z07:00")
			default:
				cells[k] = fmt.Sprint(v)
			}
		}
		lines[i] = strings.Join(cells, ",")
	}
	return strings.Join(lines, ";")
}

// shop makes the tables of most tests.
func shop(t testing.TB, e *Engine) {
	exec(t, e,
		`CREATE TABLE orders (id NUMBER(10) PRIMARY KEY, status VARCHAR2(20), code CHAR(4), total NUMBER(12,2), placed DATE, updated TIMESTAMP(6) NOT NULL)`,
		`CREATE INDEX orders_by_time ON orders (updated, id)`,
		`INSERT INTO orders VALUES (1, 'open', 'ab', 10.50, DATE '2024-05-01', TIMESTAMP '2024-05-01 10:00:00.5')`,
		`INSERT INTO orders VALUES (2, 'shut', 'cd', 20, NULL, TIMESTAMP '2024-05-01 10:00:01')`,
		`INSERT INTO orders VALUES (3, NULL, NULL, -0.25, DATE '2024-05-03', TIMESTAMP '2024-05-01 09:00:00')`)
}

package oracle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
	"github.com/observerd/observerd/test/kit/oratest/wire"
)

func orders() observer.Query {
	return observer.Query{Stream: "orders", Table: "orders", Key: []string{"order_id"}, Timestamp: "updated_at"}
}

// withOrders makes a table of so many rows, one a second.
func (d *database) withOrders(rows int) *database {
	d.t.Helper()
	d.exec("CREATE TABLE orders (order_id NUMBER(10) PRIMARY KEY, status VARCHAR2(20), updated_at DATE NOT NULL)",
		"CREATE INDEX orders_by_time ON orders (updated_at, order_id)")
	for i := range rows {
		d.exec(fmt.Sprintf("INSERT INTO orders VALUES (%d, 'confidential', DATE '2024-05-01' + %d/86400)", i+1, i))
	}
	return d
}

// theRead matches the statement that reads the rows.
func theRead(sql string) bool { return strings.Contains(sql, "/* observerd:orders */") }

func wantFault(t *testing.T, what string, err error, class observer.Class, code string) {
	t.Helper()
	var fault *observer.Fault
	if !errors.As(err, &fault) || fault.Class != class || fault.Code != code {
		t.Errorf("%s: %v (%+v), want class %s and code %s", what, err, fault, class, code)
		return
	}
	if errors.Is(err, observer.ErrUnreachable) != (class == observer.ClassUnreachable) {
		t.Errorf("%s: %v is ErrUnreachable: %t", what, err, errors.Is(err, observer.ErrUnreachable))
	}
	for _, secret := range []string{password, "p%40ss", "confidential"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v holds %s", what, err, secret)
		}
	}
	if !strings.Contains(err.Error(), "/ORCLPDB1") {
		t.Errorf("%s: %v does not name the database", what, err)
	}
}

// TestRefusals meets each class of failure in the statement that reads, before
// its first row and in the middle of them.
func TestRefusals(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{}).withOrders(40)
	s := d.open(oracle.Options{FetchSize: 10})
	sourcetest.ReadAll(t, s, orders(), observer.Range{})
	for code, class := range map[int]observer.Class{
		28: observer.ClassKilled, 2396: observer.ClassUnreachable, 3113: observer.ClassUnreachable, 1089: observer.ClassUnreachable,
		20: observer.ClassResource, 4031: observer.ClassResource, 1652: observer.ClassResource,
		904: observer.ClassQuery, 1031: observer.ClassQuery, 1722: observer.ClassData, 1476: observer.ClassData,
		1555: observer.ClassRetry, 8103: observer.ClassRetry, 600: observer.ClassDriver, 29999: observer.ClassUnknown,
	} {
		for stage, name := range map[oratest.Stage]string{oratest.Before: "before", oratest.Fetching: "fetching"} {
			fault := oratest.Fail(code)
			fault.At = stage
			trap := d.server.On(theRead, fault)
			rows, err := sourcetest.TryRead(s, orders(), observer.Range{})
			wantFault(t, fmt.Sprintf("%s, ORA-%05d", name, code), err, class, fmt.Sprintf("ORA-%05d", code))
			if trap.Hits() == 0 || stage == oratest.Before && len(rows) > 0 {
				t.Errorf("%s, ORA-%05d: %d hits, %d rows", name, code, trap.Hits(), len(rows))
			}
			trap.Release()
		}
	}
	if n := len(sourcetest.ReadAll(t, s, orders(), observer.Range{})); n != 40 {
		t.Errorf("%d rows after all that, want 40", n)
	}
}

// A result that was broken off is not taken for a whole one, however the driver
// sees it.
func TestShortResults(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{}).withOrders(40)
	s := d.open(oracle.Options{FetchSize: 10})
	for action, class := range map[oratest.Action]observer.Class{
		oratest.Reset: observer.ClassRetry, oratest.NoRows: observer.ClassRetry, oratest.Garbage: observer.ClassDriver,
		oratest.Cut: observer.ClassUnreachable, oratest.CutAnswer: observer.ClassUnreachable,
	} {
		trap := d.server.On(theRead, oratest.Fault{At: oratest.Fetching, Then: action, Times: 1})
		rows, err := sourcetest.TryRead(s, orders(), observer.Range{})
		wantFault(t, fmt.Sprintf("action %d", action), err, class, "")
		if len(rows) >= 40 || trap.Hits() != 1 {
			t.Errorf("action %d: %d rows, %d hits", action, len(rows), trap.Hits())
		}
		trap.Release()
		if n := len(sourcetest.ReadAll(t, s, orders(), observer.Range{})); n != 40 {
			t.Errorf("after action %d: %d rows, want 40", action, n)
		}
	}
}

// The sessions that idle in the pool were ended, as by a firewall or a restart:
// the next poll does not notice.
func TestIdleSessionsAreLost(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{}).withOrders(3)
	s := d.open(oracle.Options{PoolSize: 3})
	var all []observer.Rows
	for range 3 {
		rows, err := s.Read(t.Context(), orders(), observer.Range{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rows)
	}
	for _, rows := range all {
		_ = rows.Close()
	}
	d.server.Cut()
	if _, err := s.Identity(t.Context()); err != nil {
		t.Error(err)
	}
	d.server.Cut()
	if n := len(sourcetest.ReadAll(t, s, orders(), observer.Range{})); n != 3 {
		t.Errorf("%d rows, want 3", n)
	}
}

// The table is changed between its description and the read.
func TestTableChangesUnderway(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{}).withOrders(3)
	s := d.open(oracle.Options{PoolSize: 1})
	sourcetest.ReadAll(t, s, orders(), observer.Range{})
	once := true
	d.seen.instead(func(st wire.Statement) (bool, error) {
		if once && theRead(st.SQL) {
			once = false
			d.exec("ALTER TABLE orders DROP COLUMN status")
		}
		return false, nil
	})
	rows := sourcetest.ReadAll(t, s, orders(), observer.Range{})
	if once || len(rows) != 3 || string(rows[0].Data) != `{"ORDER_ID":1,"UPDATED_AT":"2024-05-01T00:00:00"}` {
		t.Errorf("rows = %+v", rows)
	}
	// Retyped, it is read by its new type, and cursors of the old one are refused.
	d.seen.instead(nil)
	d.exec("ALTER TABLE orders ADD at_zone TIMESTAMP WITH TIME ZONE", "UPDATE orders SET at_zone = TIMESTAMP '2024-05-01 00:00:00 +00:00'",
		"ALTER TABLE orders DROP COLUMN updated_at", "ALTER TABLE orders RENAME COLUMN at_zone TO updated_at")
	if _, err := sourcetest.TryRead(s, orders(), observer.Range{From: rows[0].Cursor}); observer.ClassOf(err) != observer.ClassQuery {
		t.Errorf("from a cursor of the old type: %v", err)
	}
	if again := sourcetest.ReadAll(t, s, orders(), observer.Range{}); len(again) != 3 || again[0].Cursor != "2024-05-01 00:00:00.000000000Z" {
		t.Errorf("rows = %+v", again)
	}
}

package oracle_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	go_ora "github.com/sijms/go-ora/v2"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/internal/source/oracle/client"
	"github.com/observerd/observerd/internal/source/sourcetest"
)

// realURL names a real database, in the form of host and service or SID.
const realURL = "OBSERVERD_TEST_ORACLE_URL"

// TestRealContract is TestContract against a real database. The stories share
// one schema, so they run one after the other.
func TestRealContract(t *testing.T) {
	t.Parallel()
	address := os.Getenv(realURL)
	if address == "" {
		t.Skip(realURL + " is not set")
	}
	var one sync.Mutex
	for column, now := range map[string]string{
		"DATE":                           "CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE)",
		"TIMESTAMP(6)":                   "SYS_EXTRACT_UTC(SYSTIMESTAMP)",
		"TIMESTAMP WITH TIME ZONE":       "SYSTIMESTAMP",
		"TIMESTAMP WITH LOCAL TIME ZONE": "SYSTIMESTAMP",
	} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			sourcetest.Run(t, func(t *testing.T) sourcetest.Fixture {
				one.Lock()
				t.Cleanup(one.Unlock)
				return realFixture(t, address, column, now)
			})
		})
	}
}

func realFixture(t *testing.T, address, column, now string) sourcetest.Fixture {
	t.Helper()
	db := realOwner(t, address)
	run := func(on interface {
		ExecContext(context.Context, string, ...any) (sql.Result, error)
	}, text string,
	) {
		t.Helper()
		for _, statement := range dialect(text) {
			if _, err := on.ExecContext(context.Background(), statement); err != nil {
				t.Fatalf("%s: %v", statement[:min(len(statement), 200)], err)
			}
		}
	}
	tables := []string{"orders", "stock", "loose", "plain", "unused", "t_integer", "t_decimal", "t_name", "t_timestamp"}
	views := []string{"shown"}
	for i := range 40 {
		tables = append(tables, fmt.Sprintf("edge_%d", i), fmt.Sprintf("odd_%d", i))
		views = append(views, fmt.Sprintf("odd_view_%d", i))
	}
	clear := func() {
		for _, table := range tables {
			_, err := db.ExecContext(context.Background(), "DROP TABLE "+table+" PURGE")
			if err != nil && !strings.Contains(err.Error(), "ORA-00942") {
				t.Fatal(err)
			}
		}
		for _, view := range views {
			_, err := db.ExecContext(context.Background(), "DROP VIEW "+view)
			if err != nil && !strings.Contains(err.Error(), "ORA-00942") {
				t.Fatal(err)
			}
		}
	}
	clear()
	t.Cleanup(clear)
	run(db, "CREATE TABLE unused (id NUMBER, at DATE)")
	f := contract(column, now)
	f.Source = open(t, oracle.Options{URL: address})
	d, err := f.Source.Describe(t.Context(), observer.Query{Table: "unused", Key: []string{"id"}, Timestamp: "at"})
	if err != nil {
		t.Fatal(err)
	}
	f.Exact = d.HorizonExact
	f.Unreachable = open(t, oracle.Options{URL: "oracle://someone:secret@127.0.0.1:1/nowhere"})
	f.In = func(loc *time.Location) sourcetest.Source {
		return open(t, oracle.Options{URL: address, Location: loc})
	}
	f.Exec = func(text string) {
		run(db, text)
		if strings.Contains(text, "CREATE TABLE orders") {
			run(db, "CREATE OR REPLACE FUNCTION empty_orders RETURN NUMBER IS BEGIN DELETE FROM orders; RETURN 1; END;")
		}
	}
	f.Begin = func() (func(string), func()) {
		tx, err := db.BeginTx(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return func(text string) { run(tx, text) }, func() {
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.Query = func(text string) [][]string { return sourcetest.RowsOf(t, db, text) }
	f.Explain = func(text string) string {
		return realPlan(t, db, strings.ReplaceAll(text, "Z'", " +00:00'"))
	}
	return f
}

// realOwner connects as the owner of the tables, without the layers under test.
func realOwner(t *testing.T, address string) *sql.DB {
	t.Helper()
	target, err := client.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(target.Servers[0])
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	options := map[string]string{"SERVER LOCATION": "UTC"}
	if target.SID != "" {
		options["SID"] = target.SID
	}
	connector, ok := go_ora.NewConnector(go_ora.BuildUrl(host, number, target.Service, target.User, target.Password, options)).(*go_ora.OracleConnector)
	if !ok {
		t.Fatal("the driver's connector has changed")
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	for name, value := range map[string]string{
		"TIME_ZONE": "+00:00", "NLS_DATE_FORMAT": "YYYY-MM-DD HH24:MI:SS", "NLS_TIMESTAMP_FORMAT": "YYYY-MM-DD HH24:MI:SS.FF",
	} {
		if err := go_ora.AddSessionParam(db, name, value); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func realPlan(t *testing.T, db *sql.DB, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "EXPLAIN PLAN FOR "+text); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.QueryContext(ctx, "SELECT OPERATION || ' ' || OPTIONS || ' ' || OBJECT_NAME FROM PLAN_TABLE ORDER BY PLAN_ID, ID")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&plan, line)
	}
	_, rollback := conn.ExecContext(ctx, "ROLLBACK")
	if err := errors.Join(rows.Err(), rollback); err != nil {
		t.Fatal(err)
	}
	return strings.ToLower(plan.String())
}

package mysql_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/mysql"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/mariatest"
)

// A lock that lasts for longer than the query timeout is a fault; the
// connections survive it.
func TestLockedForTooLong(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	owner := connect(t, address)
	exec(t, owner, "CREATE TABLE orders (id int PRIMARY KEY); LOCK TABLES orders WRITE")
	gate := &book{}
	s := open(t, mysql.Options{URL: address, QueryTimeout: 5 * time.Second, Gate: gate})
	query := observer.Query{SQL: "SELECT * FROM orders", Key: []string{"id"}}
	isLocked := func(what string, err error) {
		t.Helper()
		var f *observer.Fault
		if !errors.As(err, &f) || f.Class != observer.ClassTimeout || f.Code != "1205" {
			t.Errorf("%s: %v, want a timeout with code 1205", what, err)
		}
	}
	_, err := s.Horizon(t.Context(), query)
	isLocked("horizon of a query", err)
	_, err = s.Read(t.Context(), query, observer.Range{})
	isLocked("read of a query", err)
	rows, err := s.Read(t.Context(), observer.Query{Table: "orders", Key: []string{"id"}}, observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	if rows.Next() {
		t.Error("a row of a locked table")
	}
	isLocked("read", rows.Err())
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
	exec(t, owner, "UNLOCK TABLES")
	if _, err := s.Describe(t.Context(), query); err != nil || gate.said() != "allow accepted" {
		t.Errorf("afterwards: %v, logons: %s", err, gate.said())
	}
}

// waits waits until somebody waits for a table, or nobody does, with such a
// statement.
func waits(t *testing.T, conn *sql.Conn, info string, somebody bool) {
	t.Helper()
	eventually(t, fmt.Sprintf("a statement like %q that waits is %t", info, somebody), func() bool {
		return (count(t, conn, `SELECT COUNT(*) FROM information_schema.processlist
			WHERE db = DATABASE() AND state LIKE 'Waiting for table%' AND info LIKE '`+info+`'`) > 0) == somebody
	})
}

// gaveUp waits until somebody has waited for a table in vain.
func gaveUp(t *testing.T, conn *sql.Conn, info string) {
	t.Helper()
	waits(t, conn, info, true)
	waits(t, conn, info, false)
}

// Whoever held the lock may have altered the table.
func TestAlteredUnderTheLock(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	owner, other := connect(t, address), connect(t, address)
	exec(t, owner, `CREATE TABLE orders (id int PRIMARY KEY, v int, doc longtext, at datetime(6) NOT NULL, KEY (at, id));
		INSERT INTO orders VALUES (1, 7, '{}', NOW(6))`)
	s := open(t, mysql.Options{URL: address, PoolSize: 1})
	query := observer.Query{Table: "orders", Key: []string{"id"}, Timestamp: "at", Columns: []string{"v", "doc"}}
	for _, test := range []struct{ alter, want string }{
		{"MODIFY v varchar(20)", ""},
		{"MODIFY v double", ""},
		{"MODIFY doc json", ""}, // It is sent as before.
		{"MODIFY at timestamp(6) NOT NULL", ""},
		{"ADD KEY (v)", `{"v":8,"doc":"{}"}`},
	} {
		exec(t, owner, "LOCK TABLES orders WRITE")
		rows, err := s.Read(t.Context(), query, observer.Range{})
		if err != nil {
			t.Fatal(err)
		}
		read := make(chan []string, 1)
		go func() {
			var data []string
			for rows.Next() {
				data = append(data, string(rows.Row().AskedData()))
			}
			read <- data
		}()
		gaveUp(t, other, "%FROM%orders%")
		// Whoever has the connection keeps the read from trying in the midst of it.
		taken, err := s.Read(t.Context(), observer.Query{SQL: "SELECT 1 AS id", Key: []string{"id"}}, observer.Range{})
		if err != nil {
			t.Fatal(err)
		}
		exec(t, owner, "ALTER TABLE orders "+test.alter+"; UPDATE orders SET v = 8; UNLOCK TABLES")
		if err := taken.Close(); err != nil {
			t.Error(err)
		}
		data := strings.Join(<-read, " ")
		err = rows.Err()
		if data != test.want || (observer.ClassOf(err) == observer.ClassRetry) != (test.want == "") || err != nil && test.want != "" {
			t.Errorf("%s: %s, %v, want %q, or else class retry", test.alter, data, err, test.want)
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
		if rows := sourcetest.ReadAll(t, s, query, observer.Range{}); len(rows) != 1 || rows[0].Err != nil {
			t.Errorf("%s: %+v afterwards", test.alter, rows)
		}
		exec(t, owner, "ALTER TABLE orders MODIFY v int, MODIFY doc longtext, MODIFY at datetime(6) NOT NULL")
	}
}

// The server says nothing of an ALTER TABLE that rebuilds no table, nor of any
// where there are no snapshots.
func TestAlteredInSilence(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	owner, s := connect(t, address), open(t, mysql.Options{URL: address})
	query := observer.Query{Table: "orders", Key: []string{"id"}}
	for name, test := range map[string]struct{ engine, alter string }{
		"names alone":  {"InnoDB", "RENAME COLUMN v TO w, RENAME COLUMN w TO v"},
		"no snapshots": {"Aria", "MODIFY v varchar(20)"},
	} {
		exec(t, owner, "CREATE OR REPLACE TABLE orders (id int PRIMARY KEY, v int, w varchar(20)) ENGINE = "+test.engine+`;
			INSERT INTO orders VALUES (1, 5, 'A-7')`)
		rows, err := s.Read(t.Context(), query, observer.Range{})
		if err != nil {
			t.Fatal(err)
		}
		exec(t, owner, "ALTER TABLE orders "+test.alter)
		for rows.Next() {
			t.Errorf("%s: a row %s, %v", name, rows.Row().Data, rows.Row().Err)
		}
		if err := rows.Err(); observer.ClassOf(err) != observer.ClassRetry {
			t.Errorf("%s: %v, want class retry", name, err)
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
		if n := len(sourcetest.ReadAll(t, s, query, observer.Range{})); n != 1 {
			t.Errorf("%s: %d rows afterwards", name, n)
		}
	}
}

// A read that goes on among the rows of one timestamp needs the collation of now: in another
// order it would leave rows out.
func TestCollatedAnewAfterTheHorizon(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	owner := connect(t, address)
	exec(t, owner, `CREATE TABLE orders (id varchar(20) COLLATE utf8mb4_bin PRIMARY KEY, at datetime(6) NOT NULL, KEY (at, id));
		INSERT INTO orders VALUES ('B', '2024-05-01'), ('a', '2024-05-01')`)
	s := open(t, mysql.Options{URL: address})
	query := observer.Query{Table: "orders", Key: []string{"id"}, Timestamp: "at"}
	in := observer.Range{Part: observer.PartDated, From: "2024-05-01 00:00:00.000000"}
	horizon := func() {
		t.Helper()
		if _, err := s.Horizon(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	horizon()
	rows, err := s.Read(t.Context(), query, in)
	if err != nil {
		t.Fatal(err)
	}
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	in.Key, in.Order = rows.Row().Key, rows.KeyOrder()
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
	horizon()
	exec(t, owner, "ALTER TABLE orders MODIFY id varchar(20) COLLATE utf8mb4_general_ci")
	if rows, err := sourcetest.TryRead(s, query, in); observer.ClassOf(err) != observer.ClassRetry {
		t.Errorf("%+v, %v from %s in the order %q", rows, err, in.Key, in.Order)
	}
}

// rename begins to rename orders, which waits for a table that comes after it:
// nobody sees more of orders than its name until end is called.
func rename(t *testing.T, address string) (end func()) {
	t.Helper()
	owner, holder, renamer := connect(t, address), connect(t, address), connect(t, address)
	exec(t, holder, "LOCK TABLES zzz WRITE")
	done := make(chan error, 1)
	go func() {
		_, err := renamer.ExecContext(t.Context(), "RENAME TABLE orders TO old, old TO orders, zzz TO aaa, aaa TO zzz")
		done <- err
	}()
	waits(t, owner, "RENAME%", true)
	return func() {
		t.Helper()
		exec(t, holder, "UNLOCK TABLES")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

const renamed = `CREATE TABLE orders (id int PRIMARY KEY, at datetime(6) NOT NULL, KEY (at, id));
	INSERT INTO orders VALUES (1, NOW(6));
	CREATE TABLE zzz (id int); CREATE VIEW seen AS SELECT * FROM orders`

// A table under an exclusive lock is in the catalogue without its engine and its
// columns, which is no lack of them.
func TestExclusivelyLocked(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	exec(t, connect(t, address), renamed)
	end := rename(t, address)
	s := open(t, mysql.Options{URL: address, QueryTimeout: 8 * time.Second})
	table := observer.Query{Table: "orders", Key: []string{"id"}, Timestamp: "at"}
	view := table
	view.Table = "seen"
	var all sync.WaitGroup // They wait side by side.
	for what, test := range map[string]struct {
		operation string
		run       func() error
	}{
		"horizon":         {"look up the table", func() error { _, err := s.Horizon(t.Context(), table); return err }},
		"read":            {"look up the table", func() error { _, err := s.Read(t.Context(), table, observer.Range{}); return err }},
		"describe a view": {"read columns", func() error { _, err := s.Describe(t.Context(), view); return err }},
		"indexes":         {"read indexes", func() error { return s.Indexes(t.Context(), database(address), "orders") }},
	} {
		all.Go(func() {
			var f *observer.Fault
			err := test.run()
			if !errors.As(err, &f) || f.Class != observer.ClassTimeout || f.Code != "1205" || !strings.HasPrefix(f.Error(), test.operation+":") {
				t.Errorf("%s: %v, want a timeout with code 1205 of %q", what, err, test.operation)
			}
		})
	}
	all.Wait()
	end()
	for _, query := range []observer.Query{table, view} {
		if d := described(t, s, query); !d.HorizonExact || len(sourcetest.ReadAll(t, s, query, observer.Range{})) != 1 {
			t.Errorf("afterwards: %+v", d)
		}
	}
}

// A read that finds its table so has it when it is free.
func TestExclusivelyLockedForAWhile(t *testing.T) {
	t.Parallel()
	address := mariatest.New(t)
	owner := connect(t, address)
	exec(t, owner, renamed)
	end := rename(t, address)
	s := open(t, mysql.Options{URL: address})
	read := make(chan error, 1)
	go func() {
		rows, err := s.Read(t.Context(), observer.Query{Table: "orders", Key: []string{"id"}}, observer.Range{})
		if err == nil && !rows.Next() {
			err = errors.Join(errors.New("no row"), rows.Err())
		}
		if rows != nil {
			err = errors.Join(err, rows.Close())
		}
		read <- err
	}()
	gaveUp(t, owner, "%FROM information_schema.tables%")
	end()
	if err := <-read; err != nil {
		t.Error(err)
	}
}

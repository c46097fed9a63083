package engine

import (
	"context"
	"testing"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// client is a session as the server of the wire has one.
type client struct {
	t       testing.TB
	engine  *Engine
	session *wire.Session
}

func connect(t testing.TB, e *Engine, user string) *client {
	c := &client{t, e, &wire.Session{User: user, Program: "test", SerialNo: 7}}
	t.Cleanup(func() { e.Closed(c.session) })
	return c
}

func (c *client) run(sql string, binds ...wire.Value) (string, error) {
	c.t.Helper()
	result, err := c.engine.Execute(context.Background(), wire.Statement{SQL: sql, Binds: binds, Session: c.session})
	if err != nil || result.Rows == nil {
		return "", err
	}
	defer result.Rows.Close()
	var all [][]any
	for {
		row, ok := result.Rows.Next()
		if !ok {
			return show(all), result.Rows.(interface{ Err() error }).Err()
		}
		cells := make([]any, len(row))
		for i, v := range row {
			cells[i] = v
		}
		all = append(all, cells)
	}
}

// must is run for statements that have to succeed, with the result that is
// wanted.
func (c *client) must(want, sql string, binds ...wire.Value) {
	c.t.Helper()
	got, err := c.run(sql, binds...)
	if err != nil || got != want {
		c.t.Errorf("%s: %q, %v, want %q", sql, got, err, want)
	}
}

func (c *client) refused(want int, sql string, binds ...wire.Value) {
	c.t.Helper()
	got, err := c.run(sql, binds...)
	if code(c.t, err) != want {
		c.t.Errorf("%s: %q, %v, want ORA-%05d", sql, got, err, want)
	}
}

func TestSnapshots(t *testing.T) {
	t.Parallel()
	e := start(t, 19)
	shop(t, e)
	a, b := connect(t, e, "app"), connect(t, e, "APP")
	a.must("", "INSERT INTO orders (id, updated) VALUES (4, SYSDATE)")
	a.must("", "DELETE FROM orders WHERE id = 1")
	a.must("", "UPDATE orders SET status = 'new' WHERE id = 2")
	a.must("2,new;3,NULL;4,NULL", "SELECT id, status FROM orders ORDER BY id")
	b.must("1,open;2,shut;3,NULL", "SELECT id, status FROM orders ORDER BY id")
	b.must("", "SET TRANSACTION READ ONLY")
	b.must("", "COMMIT")
	b.must("", "SET TRANSACTION READ ONLY")
	a.must("", "COMMIT")
	b.must("1;2;3", "SELECT id FROM orders ORDER BY id")
	b.must("", "ROLLBACK")
	b.must("2,new;3,NULL;4,NULL", "SELECT id, status FROM orders ORDER BY id")
	a.must("", "DELETE FROM orders")
	a.must("", "ROLLBACK")
	a.must("3", "SELECT COUNT(*) FROM orders")
}

// A statement keeps its snapshot while its rows are fetched.
func TestStatementSnapshot(t *testing.T) {
	t.Parallel()
	e := start(t, 19)
	shop(t, e)
	c := connect(t, e, "APP")
	result, err := e.Execute(context.Background(), wire.Statement{SQL: "SELECT id FROM orders ORDER BY updated", Session: c.session})
	if err != nil {
		t.Fatal(err)
	}
	result.Rows.Next()
	exec(t, e, "DELETE FROM orders", "INSERT INTO orders (id, updated) VALUES (9, SYSDATE)")
	rest := 0
	for {
		if _, ok := result.Rows.Next(); !ok {
			break
		}
		rest++
	}
	result.Rows.Close()
	if rest != 2 {
		t.Errorf("%d more rows, want those of the beginning, 2", rest)
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	e := start(t, 19)
	shop(t, e)
	exec(t, e, "CREATE FUNCTION empty_orders RETURN NUMBER IS BEGIN DELETE FROM orders; RETURN 1; END;")
	c := connect(t, e, "APP")
	c.must("", "SET TRANSACTION READ ONLY")
	for _, sql := range []string{
		"DELETE FROM orders", "UPDATE orders SET status = 'x'", "INSERT INTO orders (id, updated) VALUES (9, SYSDATE)",
		"SELECT empty_orders AS x FROM dual", "EXPLAIN PLAN FOR SELECT id FROM orders",
	} {
		c.refused(1456, sql)
	}
	c.refused(1453, "SET TRANSACTION READ ONLY")
	c.must("3", "SELECT COUNT(*) FROM orders")
	c.must("", "COMMIT")
	c.refused(14551, "SELECT empty_orders AS x FROM dual")
}

// Two writers of one row: the second waits for the first, and then sees what
// it did.
func TestWriters(t *testing.T) {
	t.Parallel()
	e := start(t, 19)
	exec(t, e, "CREATE TABLE n (id NUMBER PRIMARY KEY, v NUMBER)", "INSERT INTO n VALUES (1, 0)")
	tx := e.Begin()
	if err := tx.Exec("UPDATE n SET v = v + 1"); err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 2)
	go func() { second <- e.Exec("UPDATE n SET v = v + 10 WHERE id = 1") }()
	go func() { second <- e.Exec("UPDATE n SET v = v + 100 WHERE id = 1") }()
	tx.Commit()
	for range 2 {
		if err := <-second; err != nil {
			t.Fatal(err)
		}
	}
	connect(t, e, "APP").must("1,111", "SELECT id, v FROM n")

	// A key that another transaction has inserted, and takes back.
	tx = e.Begin()
	if err := tx.Exec("INSERT INTO n VALUES (2, 0)"); err != nil {
		t.Fatal(err)
	}
	go func() { second <- e.Exec("INSERT INTO n VALUES (2, 1)") }()
	tx.Rollback()
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	if got := code(t, e.Exec("INSERT INTO n VALUES (2, 1)")); got != 1 {
		t.Errorf("ORA-%05d for a key that is there", got)
	}
	// Keys may be exchanged by one statement.
	exec(t, e, "UPDATE n SET id = 3 - id")
	connect(t, e, "APP").must("1,1;2,111", "SELECT id, v FROM n ORDER BY id")
}

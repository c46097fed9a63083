package sourcetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

// connections are those of a source whose options name no number, at most.
const connections = 4

// lockedTable reads a table that is locked over there with every connection
// that there is, and another one beside it. The readers of the first have their
// rows when it is free.
func lockedTable(t *testing.T, f Fixture) {
	f.exec(ordersTable, `INSERT INTO orders VALUES (1, 'a', '2024-05-01 10:00:00')`,
		"CREATE TABLE tasks (order_id {integer} PRIMARY KEY, updated_at {timestamp} NOT NULL)",
		`INSERT INTO tasks VALUES (7, '2024-05-01 10:00:00')`)
	unlock := f.lock()
	var wait sync.WaitGroup
	began := make(chan error, connections+2)
	for range cap(began) {
		wait.Go(func() {
			rows, err := f.Source.Read(t.Context(), orders(), observer.Range{})
			began <- err
			if err != nil {
				return
			}
			n := 0
			for rows.Next() {
				n++
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil || n != 1 {
				t.Errorf("the locked table: %d rows, %v", n, err)
			}
		})
	}
	for range connections {
		if err := <-began; err != nil {
			t.Errorf("read the locked table: %v", err)
		}
	}
	f.readBeside(t)
	unlock()
	wait.Wait()
}

// readBeside takes each step of a poll of another table, within half of the
// time for which a source waits for a lock by default.
func (f Fixture) readBeside(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 15*time.Second, errors.New("held up by the locked table"))
	defer cancel()
	q := orders()
	q.Table = "tasks"
	_, identity := f.Source.Identity(ctx)
	_, horizon := f.Source.Horizon(ctx, q)
	rows, read := f.Source.Read(ctx, q, observer.Range{})
	if err := errors.Join(identity, horizon, read); err != nil {
		t.Errorf("the other table: %v", err)
	}
	if read == nil {
		if got := keys(drain(t, rows)); got != "7" {
			t.Errorf("the other table has keys %q, want 7", got)
		}
	}
}

// lock locks the table orders as strongly as the database can.
func (f Fixture) lock() (unlock func()) {
	if f.Lock != nil {
		return f.Lock()
	}
	exec, commit := f.Begin()
	exec("UPDATE orders SET status = 'b'")
	return commit
}

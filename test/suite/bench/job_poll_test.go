package main

import (
	"errors"
	"testing"
	"time"
)

// TestPollOfManyStatements counts the rows of a poll that needs more than one
// statement, as one of more than ten seconds does: it reads some rows twice.
func TestPollOfManyStatements(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const rows = 500
	database, err := c.coordination(t.Context(), "poll")
	if err != nil {
		t.Fatal(err)
	}
	j := job{Source: makeTable(t, c, "INSERT INTO orders"+ordersOf(rows)), Origin: kindPostgres, Table: "orders", Chunk: 50, StatementTime: time.Nanosecond}
	unkept, errNowhere := pollSource(t.Context(), j, &stopwatch{})
	j.Database = database
	kept, err := pollSource(t.Context(), j, &stopwatch{})
	if err := errors.Join(err, errNowhere); err != nil || kept != rows || unkept <= rows {
		t.Errorf("polls counted %d and, keeping nothing, %d rows of %d: %v", kept, unkept, rows, err)
	}
}

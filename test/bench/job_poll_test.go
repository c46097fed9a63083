package main

import (
	"errors"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/postgres"
)

// TestPollOfManyStatements counts the rows of a poll that needs more than one
// statement, as one of more than ten seconds does: it reads some rows twice.
func TestPollOfManyStatements(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const rows = 500
	src, err := postgres.Open(postgres.Options{URL: makeTable(t, c, "INSERT INTO orders"+ordersOf(rows))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}()
	where, err := c.coordination(t.Context(), "poll")
	if err != nil {
		t.Fatal(err)
	}
	db, err := openStore(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	spec := orderSpec(stream, 50)
	spec.StatementTime = time.Nanosecond // so that polls have several statements
	o, err := observer.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := pollOnce(t.Context(), o, src, db, &stopwatch{})
	unkept, errNowhere := pollNowhere(t.Context(), o, src, &stopwatch{})
	if err := errors.Join(err, errNowhere); err != nil || kept != rows || unkept <= rows {
		t.Errorf("polls counted %d and, keeping nothing, %d rows of %d: %v", kept, unkept, rows, err)
	}
}

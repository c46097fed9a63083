package goora_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/oracle/client"
	"github.com/observerd/observerd/test/kit/oratest"
)

const deadline = 50 * time.Millisecond

// fails checks an error that the end of a context must have left.
func fails(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, context.DeadlineExceeded) || client.Classify(err).Class != observer.ClassTimeout {
		t.Errorf("%v; want the deadline", err)
	}
}

func TestSlowStatement(t *testing.T) {
	s := start(t)
	at := target(s)
	at.Grace = 2 * soon
	db := open(t, at)
	trap := s.On(oratest.SQL("slow"), oratest.Fault{Hang: true})
	right(t, db)
	ctx, took := upon(t, trap.Reached())
	_, err := ask(ctx, db, "SELECT slow")
	fails(t, err)
	took(soon) // The break is answered: nobody waits for grace.
	if s.Breaks() != 1 {
		t.Error(s.Breaks(), "breaks")
	}
	right(t, db)
}

func TestDeafStatement(t *testing.T) {
	s := start(t)
	db := open(t, target(s))
	trap := s.On(oratest.SQL("deaf"), oratest.Fault{Hang: true, Deaf: true})
	right(t, db)
	ctx, took := upon(t, trap.Reached())
	_, err := ask(ctx, db, "SELECT deaf")
	fails(t, err)
	took(soon)
	right(t, db)
	if !eventually(func() bool { return s.Open() == 1 }) {
		t.Error(s.Open(), "connections are open")
	}
}

func TestDeafExecution(t *testing.T) {
	s := start(t)
	db := open(t, target(s))
	right(t, db)
	trap := s.On(oratest.SQL("DELETE"), oratest.Fault{Hang: true, Deaf: true})
	ctx, took := upon(t, trap.Reached())
	_, err := db.ExecContext(ctx, "DELETE deaf")
	fails(t, err)
	took(soon)
	right(t, db)
}

// The driver does not know the context of a query any more when it fetches.
func TestFetchHangs(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		s := start(t)
		db := open(t, target(s))
		right(t, db)
		trap := s.On(oratest.SQL("ROWS"), oratest.Fault{At: oratest.Fetching, Skip: 1, Hang: true, Deaf: deaf})
		ctx, took := upon(t, trap.Reached())
		n, err := read(ctx, db, "SELECT ROWS 60")
		fails(t, err)
		took(soon)
		// Nobody waits until the deaf have read it.
		if n != 20 || !eventually(func() bool { return s.Breaks() == 1 }) {
			t.Errorf("%d rows, %d breaks", n, s.Breaks())
		}
		right(t, db)
	}
}

// A deadline that passes between two rows costs the connection, and no wait,
// whether the reader or database/sql, which closes the rows, notices it first.
func TestDeadlineBetweenRows(t *testing.T) {
	s := start(t)
	at := target(s)
	at.Grace = 2 * soon
	db := open(t, at)
	ctx, cancel := context.WithCancel(t.Context())
	rows, err := db.QueryContext(ctx, "SELECT ROWS 60")
	if err != nil || !rows.Next() {
		t.Fatal(err)
	}
	s.OnCall(oratest.Ping, oratest.Fault{Hang: true, Deaf: true}) // With which cursors are closed.
	took := stopwatch(t)
	cancel()
	for rows.Next() { // Ends when database/sql has noticed, too.
		continue
	}
	if err := errors.Join(rows.Err(), rows.Close()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	took(soon)
	s.ClearFaults()
	right(t, db)
	if s.Logons() != 2 {
		t.Error(s.Logons(), "logons")
	}
}

func TestCauseIsKept(t *testing.T) {
	s := start(t)
	db := open(t, target(s))
	right(t, db)
	trap := s.On(oratest.SQL("slow"), oratest.Fault{Hang: true})
	ctx, silence := source.WatchSilence(t.Context(), deadline)
	defer silence.Stop()
	go func() {
		<-trap.Reached()
		silence.Wait()
	}()
	_, err := ask(ctx, db, "SELECT slow")
	if !errors.Is(err, context.Canceled) || !errors.Is(err, source.ErrSilent) || client.Classify(err).Class != observer.ClassTimeout {
		t.Error(err)
	}
}

func TestCloseHangs(t *testing.T) {
	s := start(t)
	db := open(t, target(s))
	rows, err := db.QueryContext(t.Context(), "SELECT ROWS 60")
	if err != nil || !rows.Next() {
		t.Fatal(err)
	}
	s.OnCall(oratest.Ping, oratest.Fault{Hang: true, Deaf: true}) // With which cursors are closed.
	begun := time.Now()
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took < grace || took > soon {
		t.Errorf("it took %v", took)
	}
	s.ClearFaults()
	right(t, db)
}

func TestLogoffHangs(t *testing.T) {
	s := start(t)
	db := open(t, target(s))
	right(t, db)
	s.OnCall(oratest.Logoff, oratest.Fault{Hang: true, Deaf: true})
	took := stopwatch(t)
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	took(soon)
}

// A connection that is not trusted is closed without a round trip.
func TestTaintedCloseSaysNothing(t *testing.T) {
	s := start(t)
	at := target(s)
	at.Grace = 2 * soon
	db := open(t, at)
	right(t, db)
	trap := s.On(oratest.SQL("slow"), oratest.Fault{Hang: true})
	s.OnCall(oratest.Logoff, oratest.Fault{Hang: true, Deaf: true})
	s.OnCall(oratest.Ping, oratest.Fault{Hang: true, Deaf: true})
	ctx, took := upon(t, trap.Reached())
	_, err := ask(ctx, db, "SELECT slow")
	fails(t, err)
	took(soon)
	if !eventually(func() bool { return s.Open() == 0 }) {
		t.Error("the connection stays open")
	}
}

// Rows that end with an error of the database are no short result.
func TestErrorInFetch(t *testing.T) {
	s := start(t)
	db := open(t, target(s))
	f := oratest.Fail(1555)
	f.At, f.Skip = oratest.Fetching, 1
	s.On(oratest.SQL("ROWS"), f)
	n, err := read(t.Context(), db, "SELECT ROWS 60")
	if fault := client.Classify(err); n != 20 || fault == nil || fault.Class != observer.ClassRetry || fault.Code != "ORA-01555" {
		t.Error(n, err)
	}
	right(t, db)
	if s.Logons() != 1 {
		t.Error("a clean refusal cost the connection")
	}
}

func TestErrorsHoldNoValues(t *testing.T) {
	s := start(t)
	db := open(t, target(s))
	f := oratest.Fail(1722)
	f.Err.Text = "unable to convert string value containing Smith to a number"
	s.On(oratest.SQL("Smith"), f)
	_, err := ask(t.Context(), db, "SELECT Smith")
	if err == nil || strings.Contains(err.Error(), "Smith") || !strings.Contains(err.Error(), "ORA-01722") {
		t.Error(err)
	}
}

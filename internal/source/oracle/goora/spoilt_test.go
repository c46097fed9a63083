package goora_test

import (
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/oracle/client"
	"github.com/observerd/observerd/test/kit/oratest"
)

// A connection that dies after a statement was executed must not make
// database/sql execute it again, and again.
func TestExecutedOnce(t *testing.T) {
	for name, f := range map[string]oratest.Fault{
		"cut":         {At: oratest.After, Then: oratest.Cut},
		"half cut":    {At: oratest.After, Then: oratest.CutAnswer},
		"killed":      {At: oratest.After, Then: oratest.Kill},
		"end of file": {At: oratest.After, Then: oratest.Refuse, Err: oratest.Fail(3113).Err},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			db := open(t, target(s))
			f.Times = 1
			s.On(oratest.SQL("once"), f)
			_, err := ask(t.Context(), db, "SELECT once")
			if err == nil || errors.Is(err, driver.ErrBadConn) {
				t.Error(err)
			}
			want := observer.ClassUnreachable
			if name == "killed" {
				want = observer.ClassKilled
			}
			if fault := client.Classify(err); fault.Class != want {
				t.Errorf("%v is %s", err, fault.Class)
			}
			if n := executed(s, "SELECT once"); n != 1 {
				t.Errorf("executed %d times", n)
			}
			right(t, db)
			if s.Logons() != 2 {
				t.Error(s.Logons(), "logons")
			}
		})
	}
}

func TestKilledInFetch(t *testing.T) {
	s := start(t)
	db := open(t, target(s))
	s.On(oratest.SQL("ROWS"), oratest.Fault{At: oratest.Fetching, Skip: 1, Then: oratest.Kill})
	n, err := read(t.Context(), db, "SELECT ROWS 60")
	if fault := client.Classify(err); n != 20 || fault == nil || fault.Code != "ORA-00028" || fault.Class != observer.ClassKilled {
		t.Error(n, err)
	}
	right(t, db)
}

// A session that was killed while it was idle fails the next statement, which
// is sent once.
func TestKilledWhileIdle(t *testing.T) {
	s := start(t)
	db := open(t, target(s))
	right(t, db)
	s.KillSessions()
	_, err := ask(t.Context(), db, "SELECT next")
	if fault := client.Classify(err); fault == nil || fault.Class != observer.ClassKilled && fault.Class != observer.ClassUnreachable {
		t.Error(err)
	}
	right(t, db)
}

// The answer to a statement that was given up arrives when the next one waits.
func TestStaleAnswer(t *testing.T) {
	s := start(t)
	db := open(t, target(s))
	right(t, db)
	trap := s.On(oratest.SQL("slow"), oratest.Fault{At: oratest.After, Hang: true, Deaf: true})
	ctx, _ := upon(t, trap.Reached())
	_, err := ask(ctx, db, "SELECT slow")
	fails(t, err)
	trap.Release()
	right(t, db)
}

func TestPanicsAreErrors(t *testing.T) {
	for name, f := range map[string]oratest.Fault{
		"no result": {Then: oratest.Reset},
		"garbage":   {Then: oratest.Garbage},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			db := open(t, target(s))
			right(t, db)
			s.On(oratest.SQL("bad"), f)
			ctx, _ := within(t, soon)
			_, err := ask(ctx, db, "SELECT bad")
			if !errors.Is(err, client.ErrProtocol) || client.Classify(err).Class != observer.ClassDriver {
				t.Error(err)
			}
			right(t, db)
			if s.Logons() != 2 {
				t.Error(s.Logons(), "logons")
			}
		})
	}
}

// None of these is told from the end of the rows by the driver.
func TestShortResults(t *testing.T) {
	for _, query := range []string{"SELECT ROWS 60", "SELECT LOBS 60"} {
		for name, f := range map[string]oratest.Fault{
			"first":         {Then: oratest.NoRows},
			"no rows":       {At: oratest.Fetching, Then: oratest.NoRows},
			"no rows later": {At: oratest.Fetching, Skip: 3, Then: oratest.NoRows},
			"reset":         {At: oratest.Fetching, Then: oratest.Reset},
			"reset later":   {At: oratest.Fetching, Skip: 3, Then: oratest.Reset},
		} {
			t.Run(query+" "+name, func(t *testing.T) {
				s := start(t)
				db := open(t, target(s))
				trap := s.On(oratest.SQL(query), f)
				n, err := read(t.Context(), db, query)
				if n == 60 || !errors.Is(err, client.ErrShort) && !errors.Is(err, client.ErrProtocol) {
					t.Errorf("%d rows, %v", n, err)
				}
				if f.At == oratest.Fetching && !errors.Is(err, client.ErrShort) {
					t.Error(err)
				}
				trap.Release()
				if n, err := read(t.Context(), db, query); n != 60 || err != nil {
					t.Errorf("%d rows, %v", n, err)
				}
				if s.Logons() != 2 || trap.Hits() != 1 {
					t.Error(s.Logons(), "logons,", trap.Hits(), "hits")
				}
			})
		}
	}
}

package oratest_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	go_ora "github.com/sijms/go-ora/v2"
	"github.com/sijms/go-ora/v2/network"

	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// These tests show that each fault bites, and so what the bare driver makes of it. What
// else the server does is in the tests of those who use it.

// counting returns a server with 60 rows in t.
func counting(t *testing.T) *oratest.Server {
	t.Helper()
	rows := make([][]wire.Value, 60)
	for i := range rows {
		rows[i] = []wire.Value{fmt.Sprint(i + 1)}
	}
	return start(t, oratest.Options{}, canned{
		"FROM t": table([]wire.Column{{Name: "ID", Type: wire.TypeNumber, Precision: 38}}, rows...),
		"FROM binds": func(st wire.Statement) wire.Result {
			return table([]wire.Column{{Name: "NAME"}}, st.Binds)(st)
		},
	})
}

func executed(s *oratest.Server) int {
	n := 0
	for _, r := range s.Statements() {
		if r.Executed {
			n++
		}
	}
	return n
}

func TestCutBeforeAndAfterTheExecution(t *testing.T) {
	for _, tc := range []struct {
		name     string
		fault    oratest.Fault
		executed int
	}{
		{"before", oratest.Fault{Then: oratest.Cut}, 0},
		// The pool takes the lost answer for a connection that was never any
		// good, and executes again.
		{"after", oratest.Fault{At: oratest.After, Then: oratest.Cut}, 3},
		{"killed", oratest.Fault{At: oratest.After, Then: oratest.Kill}, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := counting(t)
			trap := s.On(oratest.SQL("FROM t"), tc.fault)
			_, err := all(t, open(t, s), "SELECT id FROM t")
			if !errors.Is(err, driver.ErrBadConn) {
				t.Errorf("error %v, want that of a bad connection", err)
			}
			if executed(s) != tc.executed || trap.Hits() != 3 || s.Logons() != 3 {
				t.Errorf("executed %d times of %d on %d connections, want %d of 3 on 3", executed(s), trap.Hits(), s.Logons(), tc.executed)
			}
		})
	}
}

func TestFetchFaults(t *testing.T) {
	for _, tc := range []struct {
		name   string
		action oratest.Action
		// silent says that the driver reports the part as the whole.
		silent bool
	}{
		{"cut", oratest.Cut, false}, {"cut answer", oratest.CutAnswer, false}, {"garbage", oratest.Garbage, false},
		{"kill", oratest.Kill, false}, {"reset", oratest.Reset, true}, {"no rows", oratest.NoRows, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := counting(t)
			s.On(oratest.SQL("FROM t"), oratest.Fault{At: oratest.Fetching, Skip: 1, Then: tc.action})
			got, err := all(t, open(t, s, "PREFETCH_ROWS", "10"), "SELECT id FROM t")
			if len(got) != 20 || (err == nil) != tc.silent {
				t.Errorf("%d rows, error %v; want the 20 before the fault", len(got), err)
			}
			if executed(s) != 1 {
				t.Errorf("executed %d times", executed(s))
			}
		})
	}
}

// failing are rows that end too early.
type failing struct{ list }

func (*failing) Err() error { return &wire.Error{Code: 1555} }

// TestRowsThatFail shows that such rows are no whole result.
func TestRowsThatFail(t *testing.T) {
	columns := []wire.Column{{Name: "ID", Type: wire.TypeNumber}}
	s := start(t, oratest.Options{}, canned{"FROM t": func(wire.Statement) wire.Result {
		return wire.Result{Columns: columns, Rows: &failing{list{[][]wire.Value{{"1"}, {"2"}, {"3"}}}}}
	}})
	got, err := all(t, open(t, s, "PREFETCH_ROWS", "2"), "SELECT id FROM t")
	var refused *network.OracleError
	if !errors.As(err, &refused) || refused.ErrCode != 1555 || len(got) != 2 {
		t.Errorf("%d rows, error %v; want the two of the first fetch, and ORA-01555", len(got), err)
	}
}

func TestBrokenAnswers(t *testing.T) {
	for _, action := range []oratest.Action{oratest.Garbage, oratest.CutAnswer} {
		s := counting(t)
		s.On(oratest.SQL("FROM t"), oratest.Fault{Then: action})
		if got, err := all(t, open(t, s), "SELECT id FROM t"); err == nil {
			t.Errorf("action %d gave %d rows without an error", action, len(got))
		}
	}
}

// TestEmptyAnswer is the panic that awaits whoever trusts the driver's rows.
func TestEmptyAnswer(t *testing.T) {
	s := counting(t)
	s.On(oratest.SQL("FROM t"), oratest.Fault{Then: oratest.Reset})
	conn, err := go_ora.NewConnector(s.URL(user, password, "SERVER LOCATION", "UTC")).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := conn.(driver.QueryerContext).QueryContext(t.Context(), "SELECT id FROM t", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("reading the columns of no rows went well")
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	rows.Columns()
}

// TestLateAnswer shows a connection that is used again after a timeout, and
// hands out the answers of the questions before.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	s := counting(t)
	db := open(t, s, "TIMEOUT", "1") // Of each read, those of a logon too.
	eventually(t, "there is a session", func() bool {
		conn, err := db.Conn(t.Context())
		return err == nil && conn.Close() == nil
	})
	trap := s.On(oratest.SQL("FROM binds"), oratest.Fault{Times: 1, Hang: true, Deaf: true})
	began := time.Now()
	var got string
	err := db.QueryRow("SELECT :1 FROM binds", "slow").Scan(&got)
	if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) < time.Second {
		t.Fatalf("error %v after %v, want the driver's own timeout", err, time.Since(began))
	}
	trap.Release()
	// The answer to this question is still on its way when the row is closed,
	// which is an error of its own. The late one may miss this question as well.
	eventually(t, "an answer", func() bool {
		_ = db.QueryRow("SELECT :1 FROM binds", "fast").Scan(&got)
		return got != ""
	})
	if got != "slow" {
		t.Errorf("the answer is %q, want the one that came too late", got)
	}
}

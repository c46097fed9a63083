package oratest_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/wire"
)

var idColumn = []wire.Column{{Name: "ID", Type: wire.TypeNumber, Precision: 38}}

func ids(n int) [][]wire.Value {
	rows := make([][]wire.Value, n)
	for i := range rows {
		rows[i] = []wire.Value{fmt.Sprint(i + 1)}
	}
	return rows
}

// TestFetches reads results around the size of a fetch: the word that there
// are no more rows comes with fewer rows than asked for, or in a call of its own.
func TestFetches(t *testing.T) {
	const size = 10
	for _, tc := range []struct{ rows, fetches int }{
		{0, 0}, {1, 0}, {size - 1, 0}, {size, 1}, {size + 1, 1}, {2 * size, 2}, {2*size + 1, 2}, {1000, 100},
	} {
		t.Run(fmt.Sprint(tc.rows), func(t *testing.T) {
			s, h := start(t, oratest.Options{PacketSize: 512})
			h.rows("t", idColumn, ids(tc.rows)...)
			got := mustAll(t, open(t, s, "PREFETCH_ROWS", fmt.Sprint(size)), "SELECT id FROM t")
			if len(got) != tc.rows || s.Fetches() != tc.fetches {
				t.Fatalf("%d rows by %d fetches, want %d by %d", len(got), s.Fetches(), tc.rows, tc.fetches)
			}
			for i, row := range got {
				if row[0] != fmt.Sprint(i+1) {
					t.Fatalf("row %d is %v", i, row[0])
				}
			}
		})
	}
}

func TestPageIsOneRoundTrip(t *testing.T) {
	s, h := start(t, oratest.Options{})
	h.rows("t", idColumn, ids(500)...)
	db := open(t, s, "PREFETCH_ROWS", "501")
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	before := s.RoundTrips()
	mustAll(t, db, "SELECT id FROM t")
	// One to execute and fetch, one to close the cursor.
	if n := s.RoundTrips() - before; n != 2 {
		t.Errorf("%d round trips for a page, want 2", n)
	}
}

func TestRowsAreClosed(t *testing.T) {
	s, h := start(t, oratest.Options{})
	whole, part := &list{rows: ids(3)}, &list{rows: ids(100)}
	h.on("whole", func(context.Context, wire.Statement) (wire.Result, error) {
		return wire.Result{Columns: idColumn, Rows: whole}, nil
	})
	h.on("part", func(context.Context, wire.Statement) (wire.Result, error) {
		return wire.Result{Columns: idColumn, Rows: part}, nil
	})
	db := open(t, s)
	mustAll(t, db, "SELECT id FROM whole")
	rows, err := db.Query("SELECT id FROM part")
	if err != nil {
		t.Fatal(err)
	}
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	if n := s.Cursors(); n != 0 {
		t.Errorf("%d cursors are open", n)
	}
	if whole.closed != 1 || part.closed != 1 {
		t.Errorf("closed %d and %d times, want once each", whole.closed, part.closed)
	}
}

type failing struct{ list }

func (*failing) Err() error { return &wire.Error{Code: 1555} }

func TestRowsThatFail(t *testing.T) {
	s, h := start(t, oratest.Options{})
	h.on("t", func(context.Context, wire.Statement) (wire.Result, error) {
		return wire.Result{Columns: idColumn, Rows: &failing{list{rows: ids(15)}}}, nil
	})
	got, err := all(t, open(t, s, "PREFETCH_ROWS", "10"), "SELECT id FROM t")
	wantCode(t, err, 1555)
	if len(got) != 10 {
		t.Errorf("%d rows before the error, want those of the first fetch", len(got))
	}
}

func TestPreparedStatementIsExecutedAgain(t *testing.T) {
	s, h := start(t, oratest.Options{})
	h.on("SELECT", func(_ context.Context, st wire.Statement) (wire.Result, error) {
		name := []wire.Column{{Name: "NAME", Type: wire.TypeVarchar}}
		return wire.Result{Columns: name, Rows: &list{rows: [][]wire.Value{{st.Binds[0]}}}}, nil
	})
	h.on("UPDATE", func(_ context.Context, st wire.Statement) (wire.Result, error) {
		return wire.Result{Affected: len(st.Binds[0].(string))}, nil
	})
	db := open(t, s)
	query, err := db.Prepare("SELECT :1 FROM t")
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	update, err := db.Prepare("UPDATE u SET a = :1")
	if err != nil {
		t.Fatal(err)
	}
	defer update.Close()
	for i := range 3 {
		for _, bind := range []string{"same", strings.Repeat("9", i+1)} {
			var got string
			if err := query.QueryRow(bind).Scan(&got); err != nil || got != bind {
				t.Errorf("execution %d gave %q for %q, %v", i, got, bind, err)
			}
		}
		result, err := update.Exec([]string{"a", "bb", "ccc"}[i])
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := result.RowsAffected(); n != int64(i+1) {
			t.Errorf("execution %d changed %d rows", i, n)
		}
	}
}

func TestTransaction(t *testing.T) {
	s, h := start(t, oratest.Options{})
	var commits []bool
	done := func(_ context.Context, st wire.Statement) (wire.Result, error) {
		commits = append(commits, st.Commit)
		return wire.Result{Affected: 2}, nil
	}
	var ends []string
	end := func(_ context.Context, st wire.Statement) (wire.Result, error) {
		ends = append(ends, st.SQL)
		return wire.Result{}, nil
	}
	h.on("INSERT", done)
	h.on("COMMIT", end)
	h.on("ROLLBACK", end)
	db := open(t, s)
	if _, err := db.Exec("INSERT INTO t VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	for _, finish := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("INSERT INTO t VALUES (2)"); err != nil {
			t.Fatal(err)
		}
		if err := finish(tx); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(commits, ends) != "[true false false] [COMMIT ROLLBACK]" {
		t.Errorf("committed with the statement: %v; ended with %v", commits, ends)
	}
}

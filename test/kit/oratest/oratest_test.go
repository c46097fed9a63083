package oratest_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	go_ora "github.com/sijms/go-ora/v2"

	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// canned answers the statements that contain a text.
type canned map[string]func(s wire.Statement) wire.Result

func (h canned) Execute(_ context.Context, s wire.Statement) (wire.Result, error) {
	for text, answer := range h {
		if strings.Contains(s.SQL, text) {
			return answer(s), nil
		}
	}
	return wire.Result{}, &wire.Error{Code: 942}
}

func (canned) Closed(*wire.Session) {}

// table answers with the same rows at any time.
func table(columns []wire.Column, rows ...[]wire.Value) func(wire.Statement) wire.Result {
	return func(wire.Statement) wire.Result { return wire.Result{Columns: columns, Rows: &list{rows}} }
}

type list struct{ rows [][]wire.Value }

func (l *list) Next() ([]wire.Value, bool) {
	if len(l.rows) == 0 {
		return nil, false
	}
	row := l.rows[0]
	l.rows = l.rows[1:]
	return row, true
}

func (*list) Close() {}

const (
	user     = "observer"
	password = "p@ss/w:rd %#?&+"
)

func start(t *testing.T, o oratest.Options, h canned) *oratest.Server {
	t.Helper()
	o.Handler, o.Users = h, map[string]string{user: password}
	return oratest.Start(t, o)
}

// open returns a pool of one connection, without the query for the server's
// time zone.
func open(t *testing.T, s *oratest.Server, options ...string) *sql.DB {
	t.Helper()
	options = append([]string{"SERVER LOCATION", "UTC"}, options...)
	db := sql.OpenDB(go_ora.NewConnector(s.URL(user, password, options...)))
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("waited in vain: %s", what)
			return
		}
	}
}

// all reads every value of a query's rows.
func all(t *testing.T, db *sql.DB, query string, args ...any) ([][]any, error) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var got [][]any
	for rows.Next() {
		row, into := make([]any, len(names)), make([]any, len(names))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return got, err
		}
		got = append(got, row)
	}
	return got, rows.Err()
}

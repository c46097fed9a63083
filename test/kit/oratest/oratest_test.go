package oratest_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"

	go_ora "github.com/sijms/go-ora/v2"
	"github.com/sijms/go-ora/v2/network"

	"github.com/observerd/observerd/test/kit/oratest"
	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// canned answers statements with what a test has put down for them.
type canned struct {
	mu      sync.Mutex
	answers map[string]func(ctx context.Context, s wire.Statement) (wire.Result, error)
	closed  []int
}

func (h *canned) on(text string, answer func(ctx context.Context, s wire.Statement) (wire.Result, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.answers == nil {
		h.answers = make(map[string]func(ctx context.Context, s wire.Statement) (wire.Result, error))
	}
	h.answers[text] = answer
}

func (h *canned) rows(text string, columns []wire.Column, rows ...[]wire.Value) {
	h.on(text, func(context.Context, wire.Statement) (wire.Result, error) {
		return wire.Result{Columns: columns, Rows: &list{rows: rows}}, nil
	})
}

func (h *canned) Execute(ctx context.Context, s wire.Statement) (wire.Result, error) {
	h.mu.Lock()
	var answer func(ctx context.Context, s wire.Statement) (wire.Result, error)
	for text, a := range h.answers {
		if strings.Contains(s.SQL, text) {
			answer = a
		}
	}
	h.mu.Unlock()
	if answer == nil {
		return wire.Result{}, &wire.Error{Code: 942, Position: 14}
	}
	return answer(ctx, s)
}

func (h *canned) Closed(s *wire.Session) {
	h.mu.Lock()
	h.closed = append(h.closed, s.SerialNo)
	h.mu.Unlock()
}

type list struct {
	rows   [][]wire.Value
	closed int
}

func (l *list) Next() ([]wire.Value, bool) {
	if len(l.rows) == 0 {
		return nil, false
	}
	row := l.rows[0]
	l.rows = l.rows[1:]
	return row, true
}

func (l *list) Close() { l.closed++ }

const (
	user     = "observer"
	password = "p@ss/w:rd %#?&+"
)

func start(t *testing.T, o oratest.Options) (*oratest.Server, *canned) {
	t.Helper()
	h := &canned{}
	o.Handler = h
	if o.Users == nil {
		o.Users = map[string]string{user: password}
	}
	return oratest.Start(t, o), h
}

// open returns a pool of one connection, without the query for the server's
// time zone.
func open(t *testing.T, s *oratest.Server, options ...string) *sql.DB {
	t.Helper()
	return openAs(t, s, user, password, options...)
}

func openAs(t *testing.T, s *oratest.Server, user, password string, options ...string) *sql.DB {
	t.Helper()
	options = append([]string{"SERVER LOCATION", "UTC"}, options...)
	db := sql.OpenDB(go_ora.NewConnector(s.URL(user, password, options...)))
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func wantCode(t *testing.T, err error, code int) {
	t.Helper()
	var refused *network.OracleError
	if !errors.As(err, &refused) || refused.ErrCode != code {
		t.Errorf("error %v, want ORA-%05d", err, code)
	}
}

func TestSelectOneRow(t *testing.T) {
	s, h := start(t, oratest.Options{})
	h.rows("FROM orders", []wire.Column{
		{Name: "ID", Type: wire.TypeNumber, Precision: 38},
		{Name: "STATUS", Type: wire.TypeVarchar, Size: 20, Nullable: true},
	}, []wire.Value{"7", "new"})
	db := open(t, s)
	var id, status string
	if err := db.QueryRow("SELECT id, status FROM orders").Scan(&id, &status); err != nil {
		t.Fatal(err)
	}
	if id != "7" || status != "new" {
		t.Errorf("row = %s, %s", id, status)
	}
	if err := db.QueryRow("SELECT 1 FROM nowhere").Scan(&id); err == nil {
		t.Error("a missing table gave no error")
	} else {
		wantCode(t, err, 942)
	}
	if s.Logons() != 1 || s.Connects() != 1 {
		t.Errorf("%d logons, %d connects; want one of each", s.Logons(), s.Connects())
	}
}

func TestWrongPassword(t *testing.T) {
	s, _ := start(t, oratest.Options{})
	db := openAs(t, s, user, "another")
	wantCode(t, db.Ping(), 1017)
	if s.Logons() != 0 || s.FailedLogons() != 1 {
		t.Errorf("%d logons, %d failed; want only a failed one", s.Logons(), s.FailedLogons())
	}
}

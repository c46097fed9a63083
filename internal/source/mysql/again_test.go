package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/test/kit/mariatest"
)

// refuser makes connections that refuse to wait for a lock whenever a statement
// begins with the first of next, and write down the others.
type refuser struct {
	driver.Connector
	next []string
	ran  []string
}

func (r *refuser) Connect(ctx context.Context) (driver.Conn, error) {
	made, err := r.Connector.Connect(ctx)
	if c, ok := made.(*conn); ok {
		c.driverConn = refusing{c.driverConn, r}
	}
	return made, err
}

type refusing struct {
	driverConn
	by *refuser
}

func (c refusing) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if r := c.by; len(r.next) > 0 && strings.HasPrefix(query, r.next[0]) {
		r.next = r.next[1:]
		return nil, &mysql.MySQLError{Number: lockWaitTimeout, Message: "locked"}
	}
	c.by.ran = append(c.by.ran, query)
	return c.driverConn.QueryContext(ctx, query, args)
}

func refuse(t *testing.T) (*Source, *refuser) {
	t.Helper()
	s, err := Open(Options{URL: mariatest.New(t), PoolSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	known, r := s.db, &refuser{}
	address, err := parseURL(s.options.URL)
	if err != nil {
		t.Fatal(err)
	}
	if r.Connector, err = newConnector(s.options, address, s.sockets); err != nil {
		t.Fatal(err)
	}
	s.db = sql.OpenDB(r)
	s.db.SetMaxOpenConns(1)
	if err := known.Close(); err != nil {
		t.Fatal(err)
	}
	return s, r
}

// A server of a cluster may refuse a snapshot as it refuses a locked table: what
// comes after that must not be read outside of one.
func TestNoReadOutsideOfASnapshot(t *testing.T) {
	t.Parallel()
	const begin, read, end = "START TRANSACTION", "SET STATEMENT max_statement_time = 0 FOR SELECT", "COMMIT"
	s, refuser := refuse(t)
	query := observer.Query{SQL: "SELECT 1 AS id", Key: []string{"id"}}
	found, err := s.Read(t.Context(), query, observer.Range{})
	if err != nil {
		t.Fatal(err)
	}
	refuser.next, refuser.ran = []string{read, begin}, nil
	if !found.Next() || found.Next() {
		t.Errorf("there is not one row: %v", found.Err())
	}
	if err := errors.Join(found.Err(), found.Close()); err != nil {
		t.Error(err)
	}
	var order []string
	for _, sql := range refuser.ran {
		for _, word := range []string{begin, read, end} {
			if strings.HasPrefix(sql, word) {
				order = append(order, word)
			}
		}
	}
	if !slices.Equal(order, []string{end, end, begin, read, end}) {
		t.Errorf("after the refusals: %q", refuser.ran)
	}
}

package engine

import (
	"context"
	"time"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// ownerTimeout bounds how long a statement of the owner waits for a row that
// another transaction has changed.
const ownerTimeout = 30 * time.Second

// Exec runs a statement as the owner, and commits. Binds are text or nil.
func (e *Engine) Exec(sql string, binds ...any) error {
	tx := e.Begin()
	if err := tx.Exec(sql, binds...); err != nil {
		tx.Rollback()
		return err
	}
	tx.Commit()
	return nil
}

// Tx is a session of the owner with a transaction of its own. It is not safe
// for concurrent use.
type Tx struct {
	session *session
}

// Begin opens a session of the owner. The transaction itself begins with its
// first change, as V$TRANSACTION shows.
func (e *Engine) Begin() *Tx { return e.begin(e.options.Owner) }

func (e *Engine) begin(user string) *Tx {
	return &Tx{e.session(&wire.Session{User: user, Program: "owner"})}
}

// Exec runs a statement.
func (t *Tx) Exec(sql string, binds ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), ownerTimeout)
	defer cancel()
	values := make([]wire.Value, len(binds))
	for i, b := range binds {
		values[i] = b
	}
	_, err := t.session.execute(ctx, sql, values)
	return err
}

// Commit ends the transaction and the session.
func (t *Tx) Commit() {
	t.session.endTransaction(true)
	t.session.engine.Closed(t.session.wire)
}

// Rollback ends the transaction and the session.
func (t *Tx) Rollback() { t.session.engine.Closed(t.session.wire) }

// Query returns all rows of a SELECT in a session of the user. A NUMBER is its exact
// decimal text, a time without a zone its wall clock in UTC.
func (e *Engine) Query(user, sql string) ([][]any, error) {
	tx := e.begin(user)
	defer tx.Rollback()
	result, err := tx.session.execute(context.Background(), sql, nil)
	if err != nil {
		return nil, err
	}
	rows, ok := result.Rows.(*wireRows)
	if !ok {
		return nil, refuse(900)
	}
	defer rows.Close()
	var all [][]any
	for row, ok := rows.Next(); ok; row, ok = rows.Next() {
		out := make([]any, len(row))
		for i, v := range row {
			out[i] = v
		}
		all = append(all, out)
	}
	return all, rows.Err()
}

// Plan returns how a SELECT of the owner would be run: a line for each step, as in "INDEX RANGE
// SCAN ORDERS_BY_TIME" or "TABLE ACCESS FULL ORDERS"; "SORT ORDER BY" is one of
// them where the result is sorted. Its placeholders stand for NULL.
func (e *Engine) Plan(sql string) (plan string, err error) {
	tx := e.Begin()
	defer tx.Rollback()
	err = protect(func() {
		st, names := parse(sql, e.options.Version)
		q, ok := st.(selectStatement)
		if !ok {
			panic(refuse(900))
		}
		c := &compiler{session: tx.session, user: tx.session.user}
		for range names {
			c.binds = append(c.binds, boundValue{typ: varchar(4000)})
		}
		plan = c.query(q.query).plan.String()
	})
	return plan, err
}

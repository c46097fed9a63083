package oratest

import (
	"context"
	"slices"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// cursor is a statement that a client has open.
type cursor struct {
	id  int
	sql string

	columns []wire.Column
	rows    wire.Rows
	// long are the columns whose values the client has defined to come whole,
	// nil before it has.
	long []bool
	// before is the row before.
	before []wire.Value
}

// closeRows gives the rows back, once.
func (cur *cursor) closeRows() {
	if cur.rows != nil {
		cur.rows.Close()
		cur.rows = nil
	}
}

// waits says that no row may be sent before the client has seen the columns, and has
// defined its LOBs to come whole.
func (cur *cursor) waits() bool {
	return slices.ContainsFunc(cur.columns, func(c wire.Column) bool { return c.Type == wire.TypeCLOB })
}

// cursors are those of one session, by number.
type cursors struct {
	all  map[int]*cursor
	next int
}

func (all *cursors) keep(cur *cursor) int {
	all.next++
	cur.id = all.next
	all.all[cur.id] = cur
	return cur.id
}

func (all *cursors) get(id int) (*cursor, error) {
	if cur := all.all[id]; cur != nil {
		return cur, nil
	}
	return nil, &wire.Error{Code: 1001}
}

func (all *cursors) close(id int) {
	if cur := all.all[id]; cur != nil {
		cur.closeRows()
		delete(all.all, id)
	}
}

func (all *cursors) closeAll() {
	for id := range all.all {
		all.close(id)
	}
}

// firstRows answers the execution of a query: the columns, and as many rows as the
// client has asked for.
func (c *conn) firstRows(cur *cursor, result wire.Result, fetch int) ([]byte, error) {
	e := &encoder{}
	cur.columns, cur.rows = result.Columns, result.Rows
	c.cursors.keep(cur)
	e.describe(cur.columns)
	if cur.waits() {
		e.snapshot()
		e.summary(summary{cursor: cur.id})
		return e.buf, nil
	}
	return c.moreRows(e, cur, fetch)
}

// define answers how the client wants the columns of an open cursor.
func (c *conn) define(x execution) ([]byte, error) {
	cur, err := c.cursors.get(x.cursor)
	if err != nil {
		return nil, err
	}
	cur.long = make([]bool, len(x.defines))
	for i, d := range x.defines {
		cur.long[i] = d.long()
	}
	e := &encoder{}
	e.summary(summary{cursor: cur.id})
	return e.buf, nil
}

// fetch serves a call for more rows.
func (c *conn) fetch(d *decoder) error {
	id, n := d.int(), d.int()
	c.server.counters.fetches.Add(1)
	return c.call(func(ctx context.Context) ([]byte, error) {
		cur, err := c.cursors.get(id)
		if err != nil {
			return nil, err
		}
		if err := c.suffer(ctx, Statement, Fetching, cur.sql); err != nil {
			return nil, err
		}
		return c.moreRows(&encoder{}, cur, n)
	})
}

// moreRows adds up to n rows to an answer, and the word that there are no more
// when it meets their end.
func (c *conn) moreRows(e *encoder, cur *cursor, n int) ([]byte, error) {
	end := summary{cursor: cur.id}
	var row []wire.Value
	for ; end.row < n; end.row++ {
		more := cur.rows != nil
		if more {
			row, more = cur.rows.Next()
		}
		if !more {
			end.code, end.text = 1403, message(&wire.Error{Code: 1403})
			break
		}
		if end.row == 0 {
			e.rowHeader(len(cur.columns), n)
		}
		if err := c.addRow(e, cur, row, end.row > 0); err != nil {
			return nil, err
		}
	}
	if end.code != 0 {
		failed, _ := cur.rows.(interface{ Err() error })
		if failed != nil && failed.Err() != nil {
			return nil, failed.Err()
		}
		cur.closeRows()
	}
	e.snapshot()
	e.summary(end)
	return e.buf, nil
}

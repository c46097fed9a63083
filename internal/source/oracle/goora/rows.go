package goora

import (
	"database/sql/driver"
	"errors"
	"io"

	go_ora "github.com/sijms/go-ora/v2"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/source/oracle/client"
)

// column is what the database has said about a column.
type column struct {
	name, kind string
	nullable   bool
}

// rows are a result. The context of their query is that of all its fetches.
type rows struct {
	conn    *conn
	watch   *watch
	inner   *go_ora.DataSet
	columns []column
	// into and next belong to one call of Next; a closure a row would cost more
	// than all the rest here.
	into []driver.Value
	next func() error
	done bool
}

var (
	_ driver.RowsColumnTypeDatabaseTypeName = (*rows)(nil)
	_ driver.RowsColumnTypeNullable         = (*rows)(nil)
)

// take accepts the driver's rows, if they are any: it returns none, and no
// error, for an answer that was broken off.
func (r *rows) take(found driver.Rows) error {
	inner, ok := found.(*go_ora.DataSet)
	if !ok || inner == nil {
		return errNoRows
	}
	for i, name := range inner.Columns() {
		c := column{name: name, kind: inner.ColumnTypeDatabaseTypeName(i)}
		c.nullable, _ = inner.ColumnTypeNullable(i)
		r.columns = append(r.columns, c)
	}
	if len(r.columns) == 0 {
		return errNoRows
	}
	r.inner, r.next = inner, r.fetch
	return nil
}

// Next implements [driver.Rows]. It returns io.EOF only for a result of which
// the database has said that it is whole.
func (r *rows) Next(into []driver.Value) error {
	if r.done {
		return io.EOF
	}
	r.into = into
	err := r.watch.do(r.next)
	r.into = nil
	switch {
	case errors.Is(err, driver.ErrBadConn): // The query was sent long ago.
		return client.ErrLost
	case errors.Is(err, errEnd):
		r.done = true
		return io.EOF
	}
	return err
}

// errEnd is the end of a result that is whole; io.EOF may also be the end of a
// connection.
var errEnd = errors.New("end of the result")

func (r *rows) fetch() error {
	written := r.conn.socket.written.Load()
	err := r.inner.Next(r.into)
	switch err {
	case nil:
		if r.conn.socket.written.Load() != written && interrupted(r.conn.inner) {
			return client.ErrShort
		}
	case io.EOF: //nolint:errorlint // Only the bare one is the driver's word for an end.
		if !whole(r.inner) {
			return client.ErrShort
		}
		return errEnd
	}
	return err
}

// Close implements [driver.Rows]. Rows that end with the connection need none.
// A context that ended before the rows did costs the connection even when no
// call was at work: a caller that gave up does not wait for the cursor's good-bye.
func (r *rows) Close() error {
	if !r.done && r.watch.ctx.Err() != nil {
		r.conn.spoil()
	}
	r.conn.tidy(r.inner.Close)
	r.watch.finish()
	return nil
}

// Columns implements [driver.Rows].
func (r *rows) Columns() []string {
	return fn.Each(r.columns, func(c column) string { return c.name })
}

// ColumnTypeDatabaseTypeName implements the interface of that name. The names
// are the driver's, not Oracle's.
func (r *rows) ColumnTypeDatabaseTypeName(i int) string { return r.columns[i].kind }

// ColumnTypeNullable implements the interface of that name.
func (r *rows) ColumnTypeNullable(i int) (nullable, ok bool) { return r.columns[i].nullable, true }

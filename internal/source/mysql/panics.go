package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"reflect"

	"github.com/go-sql-driver/mysql"

	"github.com/observerd/observerd/internal/source"
)

// errPanic stands for a panic of the driver over an answer that no server gives:
// of what stands in the way of one, or of something else that listens there.
var errPanic = errors.New("the driver panicked")

// recovered makes an error of a panic. It is deferred.
func recovered(err *error) {
	if recover() != nil {
		*err = errPanic
	}
}

// recoveringConn is a connection of the driver whose panics are errors: they end the
// connection, and not the process.
type recoveringConn struct {
	driverConn
	socket *source.Socket
}

// QueryContext is that of the driver. It hides that from a pool, which has no statements
// of its own to run.
func (c recoveringConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (_ driverRows, err error) {
	defer recovered(&err)
	rows, err := c.driverConn.QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	typed, ok := rows.(driverRows)
	if !ok {
		return nil, errors.Join(errInterface, rows.Close())
	}
	return recoveringRows{typed, c.socket}, nil
}

// PrepareContext implements [driver.ConnPrepareContext].
func (c recoveringConn) PrepareContext(ctx context.Context, query string) (_ driver.Stmt, err error) {
	defer recovered(&err)
	return c.driverConn.PrepareContext(ctx, query)
}

// driverRows is what the driver's rows offer beyond [driver.Rows].
type driverRows interface {
	driver.Rows
	driver.RowsColumnTypeDatabaseTypeName
	driver.RowsColumnTypePrecisionScale
}

type recoveringRows struct {
	driverRows
	socket *source.Socket
}

// Next implements [driver.Rows]. The driver says io.EOF for the end of a result,
// and for a row that is shorter than it claims: that is no end.
func (r recoveringRows) Next(values []driver.Value) (err error) {
	defer recovered(&err)
	err = r.driverRows.Next(values)
	if err == io.EOF && !r.isWhole() { //nolint:errorlint // The driver's contract is this very value.
		return mysql.ErrMalformPkt
	}
	return err
}

// isWhole reports whether the server has said that a result has no more rows: the
// driver lets go of the connection then, in a field that it does not export. A
// version of the driver without that field panics here, and reads nothing.
func (r recoveringRows) isWhole() bool {
	return reflect.ValueOf(r.driverRows).Elem().FieldByName("mc").IsNil()
}

// Close implements [driver.Rows]. The driver would read what is left of a result,
// for as long as that takes: it is left nothing to read it from, and the
// connection is of no more use.
func (r recoveringRows) Close() (err error) {
	defer recovered(&err)
	if !r.isWhole() {
		_ = r.socket.Close()
	}
	return r.driverRows.Close()
}

package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	sqlite3 "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

const (
	// sqliteBusy is how long a statement waits for another process of the host.
	sqliteBusy = 10 * time.Second
	// sqliteRetry is how often a connection is tried meanwhile.
	sqliteRetry = 10 * time.Millisecond
)

// sqliteConnector waits for a file that is busy. SQLite does so by itself in
// every statement except the switch of a new file's journal to WAL: of
// processes that start together on one, some would fail at once.
type sqliteConnector struct {
	driver driver.Driver
	dsn    string
}

// openSQLitePool returns a pool whose connections wait for each other, also
// while they are made.
func openSQLitePool(dsn string) (*sql.DB, error) {
	registered, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	c := sqliteConnector{driver: registered.Driver(), dsn: dsn}
	return sql.OpenDB(c), registered.Close()
}

// Connect implements [driver.Connector].
func (c sqliteConnector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, sqliteBusy)
	defer cancel()
	retry := time.NewTicker(sqliteRetry)
	defer retry.Stop()
	for {
		conn, err := c.driver.Open(c.dsn)
		if err == nil {
			return sqliteConn{conn.(sqliteDriverConn)}, nil
		}
		if !isBusy(err) {
			return nil, err
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Driver implements [driver.Connector].
func (c sqliteConnector) Driver() driver.Driver { return c.driver }

// sqliteDriverConn is what database/sql uses of the driver's connection.
type sqliteDriverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// sqliteConn wraps the context's error that ends a call, so that it differs from
// that of a call which had no connection yet: see [BusyPool].
type sqliteConn struct{ sqliteDriverConn }

// BeginTx implements [driver.ConnBeginTx]. Here a writer waits for another process.
func (c sqliteConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.sqliteDriverConn.BeginTx(ctx, o)
	return tx, begun(err)
}

// ExecContext implements [driver.ExecerContext].
func (c sqliteConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.sqliteDriverConn.ExecContext(ctx, text, args)
	return result, begun(err)
}

// QueryContext implements [driver.QueryerContext].
func (c sqliteConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.sqliteDriverConn.QueryContext(ctx, text, args)
	return rows, begun(err)
}

func begun(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the file did not answer: %w", err)
	}
	return err
}

func isBusy(err error) bool {
	var lite *sqlite3.Error
	return errors.As(err, &lite) && lite.Code()&0xff == sqlitelib.SQLITE_BUSY
}

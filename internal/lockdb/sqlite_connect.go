package lockdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
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
// every statement but the one that makes a new file's journal a WAL: of
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
		if err == nil || !isBusy(err) {
			return conn, err
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

func isBusy(err error) bool {
	var lite *sqlite3.Error
	return errors.As(err, &lite) && lite.Code()&0xff == sqlitelib.SQLITE_BUSY
}

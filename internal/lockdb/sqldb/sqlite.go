package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite" // Registers the driver "sqlite".
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/observerd/observerd/internal/wait"
	"github.com/observerd/observerd/migrations"
)

// SQLiteVersion is the version of the SQLite that is built in.
const SQLiteVersion = sqlitelib.SQLITE_VERSION

// sqlitePragmas make a commit durable before it is answered (FULL), let
// readers go on beside a writer (WAL), and let processes of one host wait for
// each other instead of failing.
const sqlitePragmas = "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)" +
	"&_pragma=wal_autocheckpoint(10000)&_pragma=foreign_keys(ON)"

func openSQLite(o Options) (*DB, error) {
	path := strings.TrimPrefix(o.URL, "sqlite:")
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return nil, errors.New("coordination database: sqlite needs a file; use sqlite:PATH")
	}
	if !o.ReadOnly {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return nil, fmt.Errorf("coordination database: make its folder: %w", err)
		}
		createSQLite(path)
	}
	db := newDB(newRenderings(sqliteDialect()), o.Logger)
	db.path = path
	file := &sqliteFile{path: path}
	for pool, size := range map[**sql.DB]int{&db.Main: 1, &db.Read: o.PoolSize} {
		dsn := sqliteDSN(path, pool == &db.Read)
		if o.ReadOnly {
			dsn = sqliteUntouched(path)
		}
		opened, err := openSQLitePool(dsn, file)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("coordination database: %w", err), db.Close())
		}
		opened.SetMaxOpenConns(size)
		opened.SetMaxIdleConns(size)
		*pool = opened
	}
	// All writes of a node use one connection, for which the pool draws among the
	// calls that wait. Among several connections SQLite's busy handler would
	// decide: one that writes without a pause starves the others.
	db.Lease, db.Acquire = db.Main, db.Main
	db.schema = sqliteSchema(db.Main, db.Read, path, migrations.SQLite())
	return db, nil
}

// sqliteFileMode is that of a new file, before the umask: it holds row values and
// events. SQLite gives the -wal and the -shm beside it the same.
const sqliteFileMode = 0o640

// creating keeps a file from being opened by a pool while it is created: its
// closing would give back the locks that this process holds on it.
var creating sync.Mutex

// createSQLite makes a file that is missing. SQLite would let every user read it.
// What keeps it from being made, SQLite meets too, and says.
func createSQLite(path string) {
	creating.Lock()
	defer creating.Unlock()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, sqliteFileMode)
	if _, missing := os.Stat(path); errors.Is(missing, os.ErrNotExist) { // A link leads to it.
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, sqliteFileMode)
	}
	if err == nil {
		_ = f.Close() // Nothing was written.
	}
}

// sqliteUntouched leaves the journal of the file as it is. With mode=ro SQLite could not
// take away the files that it makes beside it even to read.
func sqliteUntouched(path string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?mode=rw&_pragma=busy_timeout(10000)&_pragma=query_only(1)"
}

// sqliteDSN makes writers take the write lock when a transaction begins: one
// that read first and wrote later would fail instead of waiting. SQLite makes no file: one that
// was removed would come back empty, for all users.
func sqliteDSN(path string, readOnly bool) string {
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?mode=rw&" + sqlitePragmas
	if readOnly {
		return dsn + "&_pragma=query_only(1)"
	}
	return dsn + "&_txlock=immediate"
}

// noDatabase names the file that SQLite cannot read, and what to do about it:
// only a person knows what else it is.
func noDatabase(path string, err error) error {
	var lite *sqlite3.Error
	if !errors.As(err, &lite) {
		return err
	}
	switch lite.Code() & 0xff {
	case sqlitelib.SQLITE_NOTADB, sqlitelib.SQLITE_CORRUPT:
	default:
		return err
	}
	if full, absErr := filepath.Abs(path); absErr == nil {
		path = full
	}
	return fmt.Errorf("%w: %s is left as it is; name another file at database.url, or move this one away and bring back a backup, if there is one: %w",
		ErrNoDatabase, path, err)
}

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
	file   *sqliteFile
}

// sqliteFile is the file that a process began with.
type sqliteFile struct {
	path string

	mu   sync.Mutex
	info os.FileInfo // nil before it was there
}

// check returns [ErrReplaced] where the file is not at its path any more: what is written into
// it is lost with the process, and other processes work on another one.
func (f *sqliteFile) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := os.Stat(f.path)
	switch {
	case f.info == nil && err == nil:
		f.info = now
	case f.info != nil && (err != nil || !os.SameFile(f.info, now)):
		return fmt.Errorf("%w: %s", ErrReplaced, f.path)
	}
	return nil
}

// openSQLitePool returns a pool whose connections wait for each other, also
// while they are made.
func openSQLitePool(dsn string, file *sqliteFile) (*sql.DB, error) {
	registered, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	c := sqliteConnector{driver: registered.Driver(), dsn: dsn, file: file}
	return sql.OpenDB(c), registered.Close()
}

// Connect implements [driver.Connector].
func (c sqliteConnector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, sqliteBusy)
	defer cancel()
	for {
		if err := c.file.check(); err != nil {
			return nil, err
		}
		conn, err := c.driver.Open(c.dsn)
		if err == nil {
			return sqliteConn{conn.(sqliteDriverConn), c.file}, nil
		}
		if !isBusy(err) || !wait.For(ctx, sqliteRetry) {
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
type sqliteConn struct {
	sqliteDriverConn
	file *sqliteFile
}

// ResetSession implements [driver.SessionResetter]: it comes before each further use. The error
// ends the connection, and the next one says why there is none.
func (c sqliteConn) ResetSession(ctx context.Context) error {
	if c.file.check() != nil {
		return driver.ErrBadConn
	}
	return c.sqliteDriverConn.ResetSession(ctx)
}

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

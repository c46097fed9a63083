package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	sqlite3 "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/observerd/observerd/internal/turn"
)

var (
	// ErrSchemaNewer reports a database that a newer binary has migrated.
	ErrSchemaNewer = errors.New("the schema of the coordination database is newer than this binary; install the version that migrated it, or a later one")
	// ErrUnreleased reports a database that a commit before the first release has made.
	ErrUnreleased = errors.New("the tables of the coordination database are those of a build before the first release, and stay as they are; " +
		"name an empty database or schema in database.url, or drop all obs_ tables, views, sequences and functions to start over")
	// ErrPending reports that migrations must run first.
	ErrPending = errors.New("the coordination database has pending migrations; run 'observerd migrate up'")
	// ErrNoTables is the [ErrPending] of a database that was never migrated.
	ErrNoTables error = noTablesError{}
	// ErrMixedTable reports an INT_LOCK that is neither generation of
	// Spring's table, or one that both could write to without seeing each
	// other's locks. The fault and its remedy follow where it is wrapped.
	ErrMixedTable = errors.New("INT_LOCK is neither generation of Spring's lock table")
	// ErrSearchPath reports a search_path by which our tables cannot be found. Why, and
	// what to do, follows where it is wrapped.
	ErrSearchPath = errors.New("the search_path of database.url, or else of its role, does not say where the tables are")
	// ErrReadOnly reports a server that cannot be written: mostly a standby, which
	// may be promoted, so a node waits. See [Unavailable].
	ErrReadOnly = errors.New("the server is a standby or set to read only; name the primary in database.url, or wait until this one is promoted")
	// ErrPooler reports a connection pooler through which no node can work. Why, and
	// what to do, follows where it is wrapped.
	ErrPooler = errors.New("the connection pooler before the coordination database is in transaction mode")
	// ErrEncoding reports a session or a database of PostgreSQL that would change texts.
	// Which, and what to do, follows where it is wrapped.
	ErrEncoding = errors.New("the texts of the coordination database would not come back as they were written")
	// ErrReplaced reports an SQLite file that was removed or replaced under the process.
	ErrReplaced = errors.New("the file of the coordination database was removed or replaced while this process worked on it; put it back, or restart the process on what is there")
	// ErrNoDatabase reports an SQLite file that holds something else. Which one,
	// and what to do, follows where it is wrapped.
	ErrNoDatabase = errors.New("the file of the coordination database is not an SQLite database, or is damaged")
)

type noTablesError struct{}

func (noTablesError) Error() string {
	return "no node has started yet on the coordination database; 'observerd run' or 'observerd migrate up' creates its tables"
}

// Is makes it an [ErrPending].
func (noTablesError) Is(target error) bool { return target == ErrPending }

// KeyTaken reports whether a row of the table was to be written under the key of another.
func KeyTaken(err error, table string) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "23505" && pg.TableName == table
	}
	lite, ok := errors.AsType[*sqlite3.Error](err)
	return ok && lite.Code() == sqlitelib.SQLITE_CONSTRAINT_PRIMARYKEY && strings.Contains(lite.Error(), table+".")
}

// Unavailable reports whether the error means that the coordination database
// cannot be reached or is busy or full, so that waiting may help.
func Unavailable(err error) bool {
	if errors.Is(err, ErrPooler) || errors.Is(err, ErrSearchPath) || errors.Is(err, ErrEncoding) {
		return false
	}
	if NoSession(err) { // Of several hosts one may refuse, and another come back.
		return Refusal(err) == ""
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return unavailableState(pg.Code)
	}
	var lite *sqlite3.Error
	if errors.As(err, &lite) {
		return unavailableCode(lite.Code())
	}
	// Not every net.Error is one: a bare errno, such as a missing right, has its
	// methods too.
	return errors.As(err, new(*net.OpError)) || errors.As(err, new(*net.DNSError)) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, context.DeadlineExceeded) || connectionLost(err)
}

// Unreachable reports whether further statements would fail too: no server answers,
// or it refuses sessions. An answer of a server concerns one statement, such as a row
// that another client has locked; a file is busy or full for all statements.
func Unreachable(err error) bool {
	if NoSession(err) {
		return true
	}
	return !errors.As(err, new(*pgconn.PgError)) && Unavailable(err)
}

// Obstacle says in a text for everyone why a server that answers does not do what it is asked; it is
// empty for other errors.
func Obstacle(err error) string {
	switch server, ok := errors.AsType[*pgconn.PgError](err); {
	case ok && server.Code == "42501" && !NoSession(err):
		return contextual[server.Code]
	case ok && server.Code == lockNotAvailable:
		return "another session has locked for too long what the statement needs"
	}
	return ""
}

// unavailableState knows the SQLSTATEs of a server that is down, starting,
// out of connections, out of disk, read-only after a failover, or busy.
func unavailableState(code string) bool {
	switch code {
	case "25006", "40001", "40P01", "55P03", "57014":
		return true
	}
	return slices.ContainsFunc([]string{"08", "53", "57", "58"}, func(class string) bool { return strings.HasPrefix(code, class) })
}

func unavailableCode(code int) bool {
	switch code & 0xff {
	case sqlitelib.SQLITE_BUSY, sqlitelib.SQLITE_LOCKED, sqlitelib.SQLITE_FULL,
		sqlitelib.SQLITE_IOERR, sqlitelib.SQLITE_CANTOPEN, sqlitelib.SQLITE_INTERRUPT:
		return true
	}
	return false
}

// connectionLost reports whether pgx lost the connection.
func connectionLost(err error) bool {
	return pgconn.Timeout(err) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// LockTableChanged reports whether a statement does not fit the table any more: a
// column that it does not know must not be NULL, or one that it knows is gone.
func LockTableChanged(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "23502" || pg.Code == "42703")
}

// OutcomeUnknown reports whether a statement that failed with this error may
// have committed all the same: it was sent, as one that found no connection was
// not, and the server did not say no.
// SQLite has no server: what fails there has not happened. pgconn.SafeToRetry
// is no help: pgx says it of a COMMIT whose answer was lost (see the tests).
func OutcomeUnknown(err error) bool {
	if NoSession(err) || errors.As(err, new(*sqlite3.Error)) || errors.Is(err, turn.ErrBusy) {
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.HasPrefix(pg.Code, "57") && pg.Code != "57014" || strings.HasPrefix(pg.Code, "08")
	}
	return true
}

// BusyPool tells a call that found all connections of its pool busy until its time
// was over from one that the database did not answer: the first is [turn.ErrBusy]
// too. It ended with the bare error of its context, as nothing does that pgx or
// [sqliteConn] has begun.
func BusyPool(pool *sql.DB, err error) error {
	if err != context.DeadlineExceeded { //nolint:errorlint // A wrapped one is the driver's.
		return err
	}
	if s := pool.Stats(); s.InUse < s.MaxOpenConnections {
		return err
	}
	return fmt.Errorf("%w: %w", turn.ErrBusy, err)
}

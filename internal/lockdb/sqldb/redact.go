package sqldb

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	sqlite3 "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/observerd/observerd/internal/pgsession"
)

// Redacted leaves the database's message out of the failure of a statement that
// carries rows, where it may hold their values: a trigger, a constraint or a rule
// of another role on our tables may say anything, under any code.
func Redacted(err error) error {
	const left = "its message is left out, as it may contain values of rows: see the server's log"
	var pg *pgconn.PgError
	var lite *sqlite3.Error
	switch {
	case errors.As(err, &pg) && mayHoldValues(pg):
		what := cmp.Or(contextual[pg.Code], "the server refused what was to be written")
		return &pgsession.WordedError{Text: fmt.Sprintf("%s (SQLSTATE %s); %s", what, pg.Code, left), Err: err}
	case errors.As(err, &lite) && (lite.Code()&0xff == sqlitelib.SQLITE_CONSTRAINT || lite.Code()&0xff == sqlitelib.SQLITE_ERROR):
		what := cmp.Or(sqlite3.ErrorCodeString[lite.Code()], "SQLite refused what was to be written")
		return &pgsession.WordedError{Text: fmt.Sprintf("%s (%d); its message is left out, as it may contain values of rows: do the tables have a foreign trigger?", what, lite.Code()), Err: err}
	}
	return err
}

// mayHoldValues reports whether a message may hold values of rows. None does of the
// classes for the connection, the transaction, the session's end and the server's
// resources; nor of class 42 where the server points at a place of our statement, which
// it parsed: the constraint or index of another role has no place in it, and can say
// that the relation "4711" does not exist. All with a context may, which those have that
// a trigger has raised, or a line of COPY.
func mayHoldValues(pg *pgconn.PgError) bool {
	if pg.Where != "" {
		return true
	}
	switch pg.Code[:min(2, len(pg.Code))] {
	case "08", "25", "26", "28", "3D", "40", "53", "57", "58":
		return false
	case "42":
		return pg.Position == 0
	}
	return true
}

// contextual words errors that name where the server stood, without any trigger.
var contextual = map[string]string{
	"23502": "a column that must not be NULL was",
	"40001": "the server could not serialize the commit",
	"40P01": "a deadlock",
	"42501": "the role lacks a right that 'observerd doctor' names",
	"53100": "the server's disk is full",
	"55P03": "a lock could not be acquired in time",
	"57014": "the commit was cancelled, or took longer than the server's limit",
	"57P01": "the server shut down, or an administrator ended the session",
}

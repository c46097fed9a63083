package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// refusedError is why the server will never take an event as it is.
type refusedError struct {
	text string
	err  error
}

func (e *refusedError) Error() string { return e.text }
func (e *refusedError) Unwrap() error { return e.err }

// failure is an error of the driver in words that hold no value of a row. What it wraps
// is for decisions alone.
type failure struct {
	text string
	err  error
}

func (e *failure) Error() string { return e.text }
func (e *failure) Unwrap() error { return e.err }

// advice says what to do, by SQLSTATE.
var advice = map[string]string{
	"25006": "the server is a standby, or set to read only; name the primary in url, or several hosts",
	"28P01": "correct the role or its password in url",
	"3D000": "make the database, or correct its name in url",
	"3F000": "the schema is not there; make it, correct schema, or set create: true",
	"42501": "the role lacks a right; run GRANT USAGE ON SCHEMA, GRANT SELECT, INSERT, UPDATE ON obs_feed and GRANT SELECT, INSERT ON obs_feed_event; with create: true also CREATE ON SCHEMA",
	"42703": "a table has other columns than 'observerd sinks sql' prints",
	"42804": "a table has other columns than 'observerd sinks sql' prints",
	"42P01": "the tables are not there; run what 'observerd sinks sql' prints, or set create: true",
	"42P10": "a table lacks a unique key that 'observerd sinks sql' prints",
	"53300": "the server has no connection left",
	"55P03": "another session has locked the row of the sink in obs_feed, or a table, for too long",
	"57014": "the statement took longer than 30 s, or was cancelled",
}

// explained words an error of the driver: what failed, why, and what to do.
func explained(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = context.Cause(ctx)
	}
	var server *pgconn.PgError
	var connect *pgconn.ConnectError
	switch {
	case errors.As(err, &connect) && !errors.As(err, &server): // It says user, database and address.
		return &failure{what + ": " + strings.Join(strings.Fields(err.Error()), " "), err}
	case !errors.As(err, &server):
		return fmt.Errorf("%s: %w", what, err)
	case refuses(server):
		return &refusedError{"the server refuses it with SQLSTATE " + server.Code + constraint(server), err}
	}
	text := fmt.Sprintf("%s: SQLSTATE %s", what, server.Code)
	if speaksOfNoRow(server) {
		text = fmt.Sprintf("%s: %s (SQLSTATE %s)", what, strings.Join(strings.Fields(server.Message), " "), server.Code)
	}
	if hint := advice[server.Code]; hint != "" {
		text += "; " + hint
	}
	return &failure{text, err}
}

// refuses reports whether the server will refuse an event for ever: for its data, for a
// constraint, for its size, or because a trigger or a view of its owner does.
func refuses(server *pgconn.PgError) bool {
	switch server.Code[:min(2, len(server.Code))] {
	case "22", "23", "44", "54":
		return true
	}
	return server.Code == "P0001"
}

// constraint names the constraint that refuses an event. One that a function names may
// hold anything.
func constraint(server *pgconn.PgError) string {
	if server.ConstraintName == "" || server.Where != "" {
		return ""
	}
	return fmt.Sprintf(" (constraint %s of %s)", server.ConstraintName, server.TableName)
}

// speaksOfNoRow reports whether the message is about the connection, the transaction, the
// server's resources or a name in our statement, and not raised by a function.
func speaksOfNoRow(server *pgconn.PgError) bool {
	if server.Where != "" {
		return false
	}
	switch server.Code[:min(2, len(server.Code))] {
	case "08", "25", "26", "28", "3D", "3F", "40", "53", "55", "57", "58":
		return true
	case "42":
		return server.Position > 0 || server.Code == "42501"
	}
	return false
}

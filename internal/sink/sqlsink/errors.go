package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/pgsession"
)

// serverError is an error of the server or the driver, in words that hold no value of a
// row. What it wraps is for decisions alone.
type serverError struct {
	text string
	err  error
	// refuses says that the server will never take an event as it is.
	refuses bool
}

func (e *serverError) Error() string { return e.text }
func (e *serverError) Unwrap() error { return e.err }

// advice says what is wrong and what to do, by SQLSTATE.
var advice = map[string]string{
	leftOut: "a trigger or a rule of obs_feed_event leaves it out",
	"22021": "a text has a character that the encoding of the database lacks",
	"22P02": "its data is not JSON",
	"22P05": "a text has a character that the encoding of the database lacks",
	"25006": "the server is a standby, or set to read only; name the primary in url",
	"28P01": "correct the role or its password in url",
	"3D000": "make the database, or correct its name in url",
	"3F000": missing,
	"42501": "the role lacks a right; run GRANT USAGE on the schema, SELECT, INSERT, UPDATE on obs_feed, and SELECT, INSERT on obs_feed_event",
	"42703": strange,
	"42804": strange,
	"42P01": missing,
	"42P10": strange + ": a unique key is missing",
	"55P03": "another session has locked the row of the sink in obs_feed, or a table, for too long",
	"57014": "the statement took longer than 30 s, or was cancelled",
}

const (
	leftOut = "22012" // See storeSQL.
	missing = "the tables do not exist; run what 'observerd sinks sql' prints, or set create: true"
	strange = "the tables are not those that 'observerd sinks sql' prints"
)

// explained words an error: what failed, why, and what to do.
func explained(ctx context.Context, what string, err error) error {
	switch server, is := errors.AsType[*pgconn.PgError](err); {
	case ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)):
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	case is:
		text, refuses := worded(server)
		return &serverError{text: what + ": " + text, err: err, refuses: refuses}
	case errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(*pgconn.ConnectError)):
		what += ": no answer in time; another session may have locked obs_feed or obs_feed_event (pg_blocking_pids)"
	}
	return fmt.Errorf("%s: %w", what, pgsession.WordSession(err, "url"))
}

// worded leaves the server's message out where it may hold a value: a constraint, a trigger
// or a rule of others may say anything. It reports whether an event is refused for ever: for its
// data, for a constraint, for its size, or because a trigger or a view does.
func worded(server *pgconn.PgError) (text string, refuses bool) {
	class := server.Code[:min(2, len(server.Code))]
	text, refuses = "the server refuses it", server.Code == "P0001" || slices.Contains([]string{"22", "23", "44", "54"}, class)
	known := server.Code == "42501" || class == "42" && server.Position > 0 || slices.Contains([]string{"08", "25", "28", "3D", "40", "53", "55", "57", "58"}, class)
	if known && server.Where == "" { // What a function raises has a context.
		text = strings.Join(strings.Fields(server.Message), " ")
	}
	text += " (SQLSTATE " + server.Code
	if refuses && server.ConstraintName != "" && server.Where == "" {
		text += ", constraint " + server.ConstraintName + " of " + server.TableName
	}
	text += ")"
	if what := advice[server.Code]; what != "" && (server.Code != leftOut || server.Where == "") { // Else a trigger has divided.
		text += "; " + what
	}
	return text, refuses
}

package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/pgsession"
	"github.com/observerd/observerd/internal/source"
)

// Error is a refusal by the server. It never holds the server's detail, nor a
// message that could quote a row.
type Error struct {
	// SQLSTATE is the five-character code.
	SQLSTATE string
	// Position is the character of a statement that evaluated rows at which the
	// server stood, from 1; 0 where it does not say.
	Position int
	text     string
	// advice follows the code.
	advice string
}

func (e *Error) Error() string {
	text := e.text + " (SQLSTATE " + e.SQLSTATE
	if e.Position > 0 {
		text += fmt.Sprintf(", at character %d", e.Position)
	}
	text += ")"
	if e.advice != "" {
		text += "; " + e.advice
	}
	return text
}

// quotable reports whether a message holds no value of a row. Of statements that are
// neither planned nor run, messages of these classes name settings, identifiers and
// states of the server. One with a context was raised by a function.
func quotable(e *pgconn.PgError, p source.Phase) bool {
	if p == source.Reading || e.Where != "" {
		return false
	}
	switch classPrefix(e.Code) {
	case "08", "25", "28", "3D", "3F", "42", "53", "57":
		return true
	}
	return false
}

// words are what codes mean, and the classes of codes.
var words = map[string]string{
	"08":             "a connection to another server failed",
	"0A":             "the server does not support what the query asks for",
	"21":             "a subquery returned more than one row",
	"22":             "a value cannot be converted as the query asks",
	"22012":          "a division by zero",
	"23":             "a constraint was violated",
	"25":             "the transaction does not allow what the query asks for",
	"25006":          "the query writes, but a source is only read",
	idleTransaction:  "the server ended a read that was idle for longer than its idle_in_transaction_session_timeout; set a longer one for the role: ALTER ROLE … SET idle_in_transaction_session_timeout = '10min'",
	longTransaction:  "the server ended a read that took longer than its transaction_timeout; disable it for the role: ALTER ROLE … SET transaction_timeout = 0",
	"28":             "a logon to another server was refused",
	"3D":             "a database does not exist",
	"3F":             "a schema does not exist",
	"40":             "the server cancelled the read in favour of others, as a standby does for what it replays",
	"42":             "a name, a type or a right does not fit",
	missingRight:     "a right is missing",
	"42601":          "a syntax error",
	"42602":          "a name is not valid",
	undefinedColumn:  "a column does not exist",
	"42704":          "an object or a setting does not exist",
	"42883":          "a function or an operator does not exist",
	undefinedTable:   "a table does not exist",
	"53":             "the server has no room",
	"53100":          "the server's disk is full",
	"53200":          "the server is out of memory",
	"53300":          "the server has no free session",
	"54":             "a limit of the server is exceeded",
	lockNotAvailable: "somebody has locked a table, an index or what else is read here, as by ALTER TABLE, LOCK TABLE or REINDEX: wait for that session, or end it",
	"57":             "the server ended the session or the statement",
	queryCanceled:    "the statement was cancelled, or met a time limit of the server",
	"57P01":          "the server shut down, or an administrator ended the session",
	"58":             "the server failed at its files or its operating system",
	"P0":             "a function raised an error",
	"XX":             "the server failed internally",
}

func classPrefix(code string) string { return code[:min(2, len(code))] }

func serverError(e *pgconn.PgError, p source.Phase) *Error {
	if quotable(e, p) {
		return &Error{SQLSTATE: e.Code, text: e.Message}
	}
	refused := &Error{SQLSTATE: e.Code, text: cmp.Or(words[e.Code], words[classPrefix(e.Code)], "the database refused")}
	if p == source.Reading && e.Code != lockNotAvailable {
		refused.Position = int(e.Position)
	}
	refused.advice = p.Advice(classOf(e.Code, p))
	return refused
}

// classes are the SQLSTATEs that are treated unlike the rest of their class,
// which is named by its first two characters.
var classes = map[string]observer.Class{
	"08":    observer.ClassUnreachable,
	"57P01": observer.ClassUnreachable, // The server is shut down, or the session was ended.
	"57P02": observer.ClassUnreachable,
	"57P03": observer.ClassUnreachable, // It is starting up.
	"57P05": observer.ClassKilled,
	// Limits of the account.
	idleTransaction: observer.ClassKilled,
	longTransaction: observer.ClassKilled,
	// No free session: the next node has more luck, if its limit is its own.
	"53300":          observer.ClassUnreachable,
	"53":             observer.ClassResource,
	"55":             observer.ClassResource,
	lockNotAvailable: observer.ClassTimeout,
	"28P01":          observer.ClassCredentials, // A wrong password.
	"28":             observer.ClassSettings,    // No line of pg_hba.conf fits this host, or the role may not log on.
	"3D":             observer.ClassSettings,    // There is no such database.
	"57014":          observer.ClassTimeout,
	"22":             observer.ClassData,
	"21":             observer.ClassData,  // A subquery returned more than one row.
	"40":             observer.ClassRetry, // A replica cancelled the statement, among others.
	"25":             observer.ClassQuery, // It writes.
	"3F":             observer.ClassQuery,
	"42":             observer.ClassQuery,
	"0A":             observer.ClassQuery,
}

func classOf(code string, p source.Phase) observer.Class {
	if p != source.Connecting && classPrefix(code) == "28" {
		return observer.ClassQuery // It is that of another server; see [source.Phase.Class].
	}
	if p == source.Connecting && code == "42704" {
		return observer.ClassSettings // The server does not know a parameter of the URL.
	}
	class, ok := classes[code]
	if !ok {
		class = cmp.Or(classes[classPrefix(code)], observer.ClassUnknown)
	}
	return p.Class(class)
}

// fault makes a refusal a classified failure. A wrong password or a missing
// database would meet every node, a server that is down need not.
func (s *Source) fault(p source.Phase, operation string, refused *Error) error {
	f := &observer.Fault{Class: classOf(refused.SQLSTATE, p), Code: refused.SQLSTATE, Err: fmt.Errorf("%s: %w", operation, refused)}
	if f.Class == observer.ClassUnreachable {
		f.Err = fmt.Errorf("%s: %w: %s: %w", operation, observer.ErrUnreachable, s.target, refused)
	}
	return f
}

// translate makes of a driver's error one that says what was being done, as an
// [observer.Fault].
func (s *Source) translate(ctx context.Context, p source.Phase, operation string, err error) error {
	switch server, is := errors.AsType[*pgconn.PgError](err); {
	case err == nil:
		return nil
	case errors.As(err, new(*observer.Fault)), errors.As(err, new(*Error)): // Of the gate, for example.
		return fmt.Errorf("%s: %w", operation, err)
	// A context that ends makes the server cancel: then the cause is the reason.
	case is && (ctx.Err() == nil || server.Code != queryCanceled):
		return s.fault(p, operation, serverError(server, p))
	case ctx.Err() != nil:
		return source.Ended(ctx, operation)
	}
	return &observer.Fault{
		Class: observer.ClassUnreachable,
		Err:   fmt.Errorf("%s: %w: %s: %s", operation, observer.ErrUnreachable, s.target, reason(err)),
	}
}

// reason words a failure of the connection without the driver's own text,
// which repeats the user and the database several times over.
func reason(err error) string {
	timeout, _ := errors.AsType[net.Error](err)
	switch op, ok := errors.AsType[*net.OpError](err); {
	case errors.As(err, new(*net.DNSError)):
		return "the host's name cannot be resolved"
	case timeout != nil && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case ok && op.Err != nil:
		return op.Err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	case pgsession.IsForeign(err):
		return "the server does not answer as PostgreSQL does"
	}
	if inner := source.RootCause(err); !strings.Contains(inner.Error(), "://") {
		return inner.Error()
	}
	return "the connection failed"
}

// lockNotAvailable is the SQLSTATE of a lock that was not to be had within
// lock_timeout.
const lockNotAvailable = "55P03"

// locked reports whether a table could not be read because another session has
// locked it.
func locked(err error) bool { return hasState(err, lockNotAvailable) }

// missingRight is the SQLSTATE of a refusal for want of a right.
const missingRight = "42501"

// rightsRoutine is what the server calls the function that refuses for want of a right. No
// function that RAISEs can say so.
const rightsRoutine = "aclcheck_error"

// unlockable reports whether LOCK TABLE was refused for want of a right, or because
// it is not meant for that kind of relation.
func unlockable(err error) bool { return hasState(err, missingRight) || hasState(err, "42809") }

// wrongValue is the SQLSTATE of a value that a setting cannot have.
const wrongValue = "22023"

// SQLSTATEs of sessions that the server has ended for a limit of the account.
const (
	idleTransaction = "25P03"
	longTransaction = "25P04"
)

// changedResult is the SQLSTATE of a prepared statement whose columns have other types now, among
// others.
const changedResult = "0A000"

// SQLSTATEs of text that the database cannot have, and of what is not there.
const (
	untranslatable  = "22P05"
	wrongEncoding   = "22021"
	undefinedSchema = "3F000"
	undefinedTable  = "42P01"
	undefinedColumn = "42703"
)

func hasState(err error, state string) bool {
	refused, is := errors.AsType[*Error](err)
	return is && refused.SQLSTATE == state
}

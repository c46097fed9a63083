package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// Error is a refusal by the server. It never holds the server's detail, nor a
// message that could quote a row.
type Error struct {
	// SQLSTATE is the five-character code.
	SQLSTATE string
	// Constraint is set where the server names one.
	Constraint string
	text       string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.text)
	fmt.Fprintf(&b, " (SQLSTATE %s", e.SQLSTATE)
	if e.Constraint != "" {
		fmt.Fprintf(&b, ", constraint %s", e.Constraint)
	}
	b.WriteString(")")
	return b.String()
}

// quotable tells whether messages of a class name settings, identifiers and
// states of the server, but no values; the rest is told by the class alone.
func quotable(class string) bool {
	switch class {
	case "08", "25", "28", "3D", "3F", "42", "53", "57":
		return true
	}
	return false
}

func serverError(e *pgconn.PgError) *Error {
	text := "the database refused"
	class := e.Code[:min(2, len(e.Code))]
	switch {
	case e.Code == lockNotAvailable:
		text = "somebody has locked a table, an index or what else is read here, as by ALTER TABLE, LOCK TABLE or REINDEX: wait for that session, or end it"
	case quotable(class):
		text = e.Message
	case class == "22":
		text = "a value cannot be converted as the query asks"
	}
	return &Error{SQLSTATE: e.Code, Constraint: e.ConstraintName, text: text}
}

// classes are the SQLSTATEs that are treated unlike the rest of their class,
// which is named by its first two characters.
var classes = map[string]observer.Class{
	"08":    observer.ClassUnreachable,
	"57P01": observer.ClassUnreachable, // The server is shut down, or the session was ended.
	"57P02": observer.ClassUnreachable,
	"57P03": observer.ClassUnreachable, // It is starting up.
	"57P05": observer.ClassKilled,
	// No free session: the next node has more luck, if its limit is its own.
	"53300":          observer.ClassUnreachable,
	"53":             observer.ClassResource,
	"55":             observer.ClassResource,
	lockNotAvailable: observer.ClassTimeout,
	"28":             observer.ClassCredentials,
	"3D":             observer.ClassSettings, // There is no such database.
	"57014":          observer.ClassTimeout,
	"22":             observer.ClassData,
	"21":             observer.ClassData,  // A subquery returned more than one row.
	"40":             observer.ClassRetry, // A replica cancelled the statement, among others.
	"25":             observer.ClassQuery, // It writes.
	"3F":             observer.ClassQuery,
	"42":             observer.ClassQuery,
	"0A":             observer.ClassQuery,
}

func classOf(code string) observer.Class {
	if class, ok := classes[code]; ok {
		return class
	}
	if class, ok := classes[code[:min(2, len(code))]]; ok {
		return class
	}
	return observer.ClassUnknown
}

// fault makes a refusal a classified failure. A wrong password or a missing
// database would meet every node, a server that is down need not.
func (s *Source) fault(operation string, refused *Error) error {
	f := &observer.Fault{Class: classOf(refused.SQLSTATE), Code: refused.SQLSTATE, Err: fmt.Errorf("%s: %w", operation, refused)}
	if f.Class == observer.ClassUnreachable {
		f.Err = fmt.Errorf("%s: %w: %s: %w", operation, observer.ErrUnreachable, s.target, refused)
	}
	return f
}

// translate makes of a driver's error one that says what was being done, as an
// [observer.Fault].
func (s *Source) translate(ctx context.Context, operation string, err error) error {
	var server *pgconn.PgError
	var mine *Error
	var classified *observer.Fault // of the gate, for example
	switch {
	case err == nil:
		return nil
	case errors.As(err, &classified), errors.As(err, &mine):
		return fmt.Errorf("%s: %w", operation, err)
	// A context that ends makes the server cancel: then the cause is the reason.
	case errors.As(err, &server) && (ctx.Err() == nil || server.Code != queryCanceled):
		return s.fault(operation, serverError(server))
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
	var dns *net.DNSError
	var op *net.OpError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		return "the host's name cannot be resolved"
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &op) && op.Err != nil:
		return op.Err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	}
	if inner := rootCause(err); !strings.Contains(inner.Error(), "://") {
		return inner.Error()
	}
	return "the connection failed"
}

func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// lockNotAvailable is the SQLSTATE of a lock that was not to be had within
// lock_timeout.
const lockNotAvailable = "55P03"

// locked tells whether a table could not be read because somebody else has
// locked it.
func locked(err error) bool { return hasState(err, lockNotAvailable) }

// forbidden tells whether the server refused for want of a right.
func forbidden(err error) bool { return hasState(err, "42501") }

// unlockable tells whether LOCK TABLE was refused for want of a right, or because
// it is not meant for that kind of relation.
func unlockable(err error) bool { return forbidden(err) || hasState(err, "42809") }

// undefinedTable is the SQLSTATE of a table that is not there.
const undefinedTable = "42P01"

func hasState(err error, state string) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.SQLSTATE == state
}

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
	case quotable(class):
		text = e.Message
	case class == "22":
		text = "a value cannot be converted as the query asks"
	}
	return &Error{SQLSTATE: e.Code, Constraint: e.ConstraintName, text: text}
}

// unreachable tells whether another node may have more luck. A wrong password
// or a missing database would meet all of them.
func unreachable(code string) bool {
	switch code {
	case "57P01", "57P02", "57P03", "53300":
		return true
	}
	return strings.HasPrefix(code, "08")
}

// translate makes of a driver's error one that says what was being done, and
// wraps [observer.ErrUnreachable] where that is what it means.
func (s *Source) translate(ctx context.Context, operation string, err error) error {
	var server *pgconn.PgError
	var mine *Error
	var missing *source.MissingError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &missing), errors.As(err, &mine):
		return fmt.Errorf("%s: %w", operation, err)
	// A context that ends makes the server cancel: then the cause is the reason.
	case errors.As(err, &server) && (ctx.Err() == nil || server.Code != queryCanceled):
		refused := serverError(server)
		if unreachable(server.Code) {
			return fmt.Errorf("%s: %w: %s: %w", operation, observer.ErrUnreachable, s.target, refused)
		}
		return fmt.Errorf("%s: %w", operation, refused)
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", operation, context.Cause(ctx))
	}
	return fmt.Errorf("%s: %w: %s: %s", operation, observer.ErrUnreachable, s.target, reason(err))
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

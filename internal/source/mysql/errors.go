package mysql

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// Error is a refusal by the server. It never holds a message that could quote
// a row.
type Error struct {
	// Number is the server's own, such as 1146.
	Number uint16
	text   string
	// advice follows the number.
	advice string
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s (MySQL error %d)", e.text, e.Number)
	if e.advice != "" {
		text += "; " + e.advice
	}
	return text
}

// serverError is a refusal in words that may be shown. A LIMIT 0 and EXPLAIN do not keep
// the server from filling derived tables: that is reading.
func serverError(server *mysql.MySQLError, p source.Phase) *Error {
	k, e := refusals[server.Number], &Error{Number: server.Number}
	if k.quotable && p != source.Reading {
		e.text = strings.ToValidUTF8(server.Message, "?")
		return e
	}
	class := classOf(server.Number, p)
	e.text = cmp.Or(k.text, words[class], "the database refused")
	e.advice = p.Advice(class)
	return e
}

func code(number uint16) string { return strconv.Itoa(int(number)) }

// translate makes of a driver's error one that says what was being done, and of
// what class it is.
func (s *Source) translate(ctx context.Context, p source.Phase, operation string, err error) error {
	switch server, refused := errors.AsType[*mysql.MySQLError](err); {
	case err == nil:
		return nil
	case errors.As(err, new(*observer.Fault)): // the gate's
		return fmt.Errorf("%s: %w", operation, err)
	case errors.As(err, new(*source.MissingError)):
		return &observer.Fault{Class: observer.ClassQuery, Err: fmt.Errorf("%s: %w", operation, err)}
	// A context that ends has the statement interrupted: then the cause is the reason.
	case refused && (ctx.Err() == nil || !interrupted(server.Number)):
		return s.refusal(p, operation, serverError(server, p))
	case ctx.Err() != nil:
		return source.Ended(ctx, operation)
	}
	class, reason := connectionFault(err)
	return &observer.Fault{Class: class, Err: fmt.Errorf("%s: %s: %s", operation, s.target, reason)}
}

func (s *Source) refusal(p source.Phase, operation string, refused *Error) error {
	class := classOf(refused.Number, p)
	f := &observer.Fault{Class: class, Code: code(refused.Number), Err: fmt.Errorf("%s: %w", operation, refused)}
	if class == observer.ClassUnreachable || class == observer.ClassResource {
		f.Err = fmt.Errorf("%s: %s: %w", operation, s.target, refused)
	}
	return f
}

// protocol are the driver's words for an answer that it did not understand,
// logons are those for one that it may not or cannot give.
var (
	protocol = []error{mysql.ErrMalformPkt, mysql.ErrPktSync, mysql.ErrPktSyncMul, mysql.ErrBusyBuffer, mysql.ErrPktTooLarge, errPanic}
	logons   = []error{mysql.ErrNoTLS, mysql.ErrCleartextPassword, mysql.ErrNativePassword, mysql.ErrOldPassword,
		mysql.ErrUnknownPlugin, mysql.ErrOldProtocol}
)

// connectionFault words a failure of the connection without the driver's own
// text, and says of what class it is.
func connectionFault(err error) (observer.Class, string) {
	timeout, _ := errors.AsType[net.Error](err)
	errno, failed := errors.AsType[syscall.Errno](err)
	switch {
	case isAny(err, logons):
		return observer.ClassSettings, strings.ToValidUTF8(source.RootCause(err).Error(), "?")
	case isAny(err, protocol):
		return observer.ClassDriver, "the driver did not understand the server"
	case source.IsTLS(err):
		return observer.ClassSettings, "TLS: " + source.RootCause(err).Error()
	case errors.As(err, new(*net.DNSError)):
		return observer.ClassUnreachable, "the host's name cannot be resolved"
	case timeout != nil && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return observer.ClassUnreachable, "no answer in time"
	case failed:
		return observer.ClassUnreachable, errno.Error()
	case errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrClosed):
		return observer.ClassUnreachable, "the connection was closed"
	}
	return observer.ClassUnreachable, "the connection failed"
}

func isAny(err error, targets []error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

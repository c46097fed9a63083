package client

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// Classify makes a classified failure of an error of a driver or of the network
// below it; nil of nil. The end of the caller's own context is no failure of a
// source: it is of class unknown unless a deadline passed, and better asked
// about first.
func Classify(err error) *observer.Fault {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*observer.Fault](err); ok { // Of the gate, for example.
		return &observer.Fault{Class: known.Class, Code: known.Code, Err: err}
	}
	if refused, ok := errors.AsType[*Error](err); ok {
		return &observer.Fault{Class: refused.Class(), Code: ora(refused.root()), Err: err}
	}
	return &observer.Fault{Class: classOf(err), Err: err}
}

func classOf(err error) observer.Class {
	switch {
	case errors.Is(err, ErrShort), errors.Is(err, ErrProtocol):
		return observer.ClassDriver
	case errors.Is(err, ErrType):
		return observer.ClassQuery
	case errors.Is(err, ErrHandshake), source.IsTLS(err):
		return observer.ClassSettings
	case errors.Is(err, ErrConnect):
		return classOfLogon(err)
	case errors.Is(err, source.ErrTimeout), errors.Is(err, source.ErrSilent), errors.Is(err, context.DeadlineExceeded):
		return observer.ClassTimeout
	case errors.Is(err, context.Canceled):
		return observer.ClassUnknown
	case unreachable(err):
		return observer.ClassUnreachable
	}
	return observer.ClassUnknown
}

// classOfLogon tells a database that cannot be reached from one that will not
// be reached by waiting: whatever is no matter of the network is one of names,
// versions and files.
func classOfLogon(err error) observer.Class {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return observer.ClassSettings
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || unreachable(err) {
		return observer.ClassUnreachable
	}
	return observer.ClassSettings
}

func unreachable(err error) bool {
	return slices.ContainsFunc([]error{
		ErrLost, driver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE,
		syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ETIMEDOUT,
	}, func(lost error) bool { return errors.Is(err, lost) }) || errors.As(err, new(net.Error)) // Of dialling, resolving, reading and writing.
}

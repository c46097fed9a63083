package goora

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"

	"github.com/sijms/go-ora/v2/network"

	"github.com/observerd/observerd/internal/source/oracle/client"
)

// protect makes an error of a panic of the driver. What it panics with may hold
// a value, unless it is the runtime that complains.
func protect(call func() error) (err error) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case runtime.Error:
			err = fmt.Errorf("%w: panic: %w", client.ErrProtocol, reason)
		default:
			err = fmt.Errorf("%w: panic", client.ErrProtocol)
		}
	}()
	return call()
}

// ended is the error of a call whose context has ended: the context's own, and
// the cause where there is another.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return context.Cause(ctx)
}

// translate words an error of the driver without a value of a row in it.
func (c *conn) translate(err error) error {
	switch refused, ok := errors.AsType[*network.OracleError](err); {
	case errors.Is(err, client.ErrShort), errors.Is(err, client.ErrProtocol):
		return err
	case ok:
		return refusalOf(refused)
	// The driver's word for errors that it has already thrown away, among them
	// the code of a session that was killed.
	case errors.Is(err, driver.ErrBadConn):
		if killed := c.lastRefusal(); killed != nil {
			return killed
		}
		return client.ErrLost
	case errors.As(err, new(*net.OpError)), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return fmt.Errorf("%w: %w", client.ErrLost, err)
	case strings.Contains(err.Error(), "unable to decode oracle type"):
		return client.ErrType
	}
	return fmt.Errorf("%w%s", client.ErrProtocol, known(err))
}

func (c *conn) lastRefusal() (e *client.Error) {
	_ = protect(func() error {
		e = refusal(c.inner)
		return nil
	})
	return e
}

// refusalOf counts the position from 1; the driver has 0 for most errors that
// are about no position at all.
func refusalOf(e *network.OracleError) error {
	position := e.ErrPos()
	if position > 0 {
		position++
	}
	return client.Refusal(e.ErrCode, e.ErrMsg, position)
}

// known returns the driver's own words where they hold nothing but numbers of
// the protocol, led by ": ".
func known(err error) string {
	text := client.FirstLine(err.Error())
	for _, harmless := range []string{
		"TTC error: received code", "buffer under-run", "invalid size for GetInt64", "receive abnormal packet type",
		"connection break", "closed connection", "attempt to",
	} {
		if strings.Contains(text, harmless) {
			return ": " + text
		}
	}
	return ""
}

// hungUp reports whether the other side ended a connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

package oratest

import (
	"context"
	"errors"
	"fmt"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// The messages of the session layer (TTC).
const (
	msgProtocol        = 1
	msgTypes           = 2
	msgFunction        = 3
	msgSummary         = 4
	msgRowHeader       = 6
	msgRow             = 7
	msgParameters      = 8
	msgDone            = 9
	msgDescribe        = 16
	msgPiggyback       = 17
	msgRepeats         = 21
	msgServerPiggyback = 23
)

// The functions that a client calls.
const (
	fnFetch        = 0x05
	fnLogoff       = 0x09
	fnRollback     = 0x0F
	fnVersion      = 0x3B
	fnExecute      = 0x5E
	fnCloseCursors = 0x69
	fnAuthenticate = 0x73
	fnSessionKey   = 0x76
	fnPing         = 0x93
)

// next serves the next message of the client.
func (c *conn) next() (err error) {
	defer func() {
		switch failure := recover().(type) {
		case nil:
		case malformed:
			err = failure.error
		default:
			panic(failure)
		}
	}()
	first, err := c.receive()
	if err != nil {
		return err
	}
	c.server.counters.roundTrips.Add(1)
	d := &decoder{buf: first, more: c.receive}
	for {
		switch kind := d.byte(); kind {
		case msgProtocol:
			return c.send(c.protocol())
		case msgTypes:
			skipTypes(d)
			return c.send(c.types())
		case msgPiggyback:
			c.piggyback(d)
		case msgFunction:
			fn := d.byte()
			d.byte() // the sequence number
			return c.function(fn, d)
		default:
			return fmt.Errorf("a message of kind %d", kind)
		}
	}
}

// piggyback serves what comes before a function, and has no answer.
func (c *conn) piggyback(d *decoder) {
	if fn := d.byte(); fn != fnCloseCursors {
		d.fail("a piggyback of function %#x", fn)
	}
	d.skip(2)
	for range d.int() {
		c.cursors.close(d.int())
	}
}

// function serves one call.
func (c *conn) function(fn byte, d *decoder) error {
	switch fn {
	case fnSessionKey, fnAuthenticate:
		if c.session == nil {
			return c.logOn(fn, d)
		}
	case fnVersion:
		if c.session != nil {
			return c.send(c.version())
		}
	}
	if c.session == nil {
		return fmt.Errorf("function %#x before a logon", fn)
	}
	switch fn {
	case fnExecute:
		return c.execute(d)
	case fnFetch:
		return c.fetch(d)
	case fnPing:
		return c.simple(Ping, "")
	case fnRollback:
		return c.simple(Rollback, "ROLLBACK")
	case fnLogoff:
		return c.logOff()
	}
	return fmt.Errorf("the unknown function %#x", fn)
}

func (c *conn) logOn(fn byte, d *decoder) error {
	r := decodeLogon(d)
	if fn == fnSessionKey {
		return c.send(c.sessionKey(r))
	}
	var refused *wire.Error
	return c.call(func(ctx context.Context) ([]byte, error) {
		err := c.suffer(ctx, Logon, Before, "")
		var said []byte
		if err == nil {
			said, err = c.authenticate(r)
		}
		if errors.As(err, &refused) {
			c.server.counters.failedLogons.Add(1)
		}
		return said, err
	})
}

func (c *conn) logOff() error {
	return c.call(func(ctx context.Context) ([]byte, error) {
		err := c.suffer(ctx, Logoff, Before, "")
		if err == nil {
			c.cursors.closeAll()
			c.server.opts.Handler.Closed(c.session)
			c.session = nil
		}
		e := &encoder{}
		e.done()
		return e.buf, err
	})
}

// simple serves a call that has no result, and is a statement to the handler.
func (c *conn) simple(kind Call, sql string) error {
	return c.call(func(ctx context.Context) ([]byte, error) {
		err := c.suffer(ctx, kind, Before, sql)
		if err == nil && sql != "" {
			_, err = c.server.opts.Handler.Execute(ctx, wire.Statement{SQL: sql, Session: c.session})
		}
		if err == nil {
			err = c.suffer(ctx, kind, After, sql)
		}
		e := &encoder{}
		e.done()
		return e.buf, err
	})
}

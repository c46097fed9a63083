package oratest

import (
	"context"
	"errors"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// call runs one call of the client, with a context that a break ends, and says
// what came of it.
func (c *conn) call(run func(context.Context) ([]byte, error)) error {
	ctx, stop := context.WithCancelCause(c.ctx)
	defer stop(nil)
	c.begin(stop)
	said, err := run(ctx)
	cause := c.finish(ctx)
	switch {
	case c.ctx.Err() != nil:
		return errGone
	case errors.Is(cause, errKilled):
		return errors.Join(c.refuse(&wire.Error{Code: 28}), errGone)
	case errors.Is(cause, errBroken):
		return errors.Join(c.reset(), c.say(&wire.Error{Code: 1013}))
	case err != nil:
		return c.failed(err)
	}
	return c.send(said)
}

// begin lets breaks reach a call. One that came before it, too late for the
// call that it was meant for, stops this one.
func (c *conn) begin(stop context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = stop
	switch {
	case c.killed:
		stop(errKilled)
	case c.broken:
		stop(errBroken)
	}
}

// finish returns why a call was stopped, nil when it was not.
func (c *conn) finish(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running, c.deaf = nil, false
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// failed says why a call has failed.
func (c *conn) failed(err error) error {
	var refusal *wire.Error
	var plain *last
	switch {
	case errors.As(err, &plain):
		return plain.say(c)
	case errors.As(err, &refusal):
		return c.refuse(refusal)
	case errors.Is(err, errGone):
		return err
	}
	c.server.counters.problem(err)
	return c.refuse(&wire.Error{Code: 600, Text: "internal error code: " + err.Error()})
}

// refuse sends an ORA- error, after the markers that come before it.
func (c *conn) refuse(r *wire.Error) error {
	if err := c.reset(); err != nil {
		return err
	}
	return c.say(r)
}

func (c *conn) say(r *wire.Error) error {
	e := &encoder{}
	e.summary(summary{code: r.Code, position: r.Position, text: message(r)})
	return c.send(e.buf)
}

package goora

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/observerd/observerd/internal/source/oracle/client"
)

// watch is the guard over what one context asks of a connection: a statement
// and all fetches of its rows, or a logon's setup. Calls are made in the
// caller's goroutine; when the context ends during one, the database is asked
// to stop, and the socket is closed under the driver once grace has passed.
type watch struct {
	conn *conn
	ctx  context.Context
	stop func() bool
	// Both are guarded by conn.mu: calling says that the driver is at work, over
	// that the connection may be another's by now.
	calling, over bool
}

// watch begins to guard; finish must be called.
func (c *conn) watch(ctx context.Context) *watch {
	w := &watch{conn: c, ctx: ctx}
	w.stop = context.AfterFunc(ctx, w.ended)
	return w
}

// ended runs when the context has ended. A context that ended always costs the
// connection: an answer, or the answer to our interruption, may be on its way.
func (w *watch) ended() {
	c := w.conn
	c.mu.Lock()
	if w.over {
		c.mu.Unlock()
		return
	}
	c.spoilt = true
	calling := w.calling
	if calling {
		c.hurry()
	}
	c.mu.Unlock()
	if calling && c.plain {
		c.socket.interrupt()
	}
}

// hurry closes the socket after grace, unless the call that is at work returns
// before. c.mu is held.
func (c *conn) hurry() {
	if c.closing == nil {
		c.closing = time.AfterFunc(c.grace, c.drop)
	}
}

// drop ends the connection without a word.
func (c *conn) drop() {
	c.spoil()
	_ = c.socket.Close()
}

func (c *conn) spoil() {
	c.mu.Lock()
	c.spoilt = true
	c.mu.Unlock()
}

func (c *conn) isSpoilt() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spoilt
}

// finish ends the guard. What the context does afterwards is not our business.
func (w *watch) finish() {
	w.conn.mu.Lock()
	w.over = true
	w.conn.mu.Unlock()
	w.stop()
}

// do makes a call of the driver. Its errors are ours: the context's, or those
// of package client. They are driver.ErrBadConn only when nothing was sent.
func (w *watch) do(call func() error) error {
	if err := w.enter(); err != nil {
		return err
	}
	err := protect(call)
	w.leave()
	switch {
	case w.ctx.Err() != nil:
		w.conn.spoil()
		return ended(w.ctx)
	case err == nil, errors.Is(err, errEnd):
		return err
	}
	return w.conn.judge(err)
}

func (w *watch) enter() error {
	w.conn.mu.Lock()
	defer w.conn.mu.Unlock()
	switch {
	case w.ctx.Err() != nil:
		return ended(w.ctx)
	case w.conn.spoilt:
		return driver.ErrBadConn
	}
	w.calling = true
	return nil
}

func (w *watch) leave() {
	w.conn.mu.Lock()
	defer w.conn.mu.Unlock()
	w.calling = false
	w.conn.calm()
}

// calm takes hurry back, or makes sure that no caller gets a connection that is
// about to be closed. c.mu is held.
func (c *conn) calm() {
	if c.closing != nil && !c.closing.Stop() {
		c.spoilt = true
	}
	c.closing = nil
}

// tidy makes a call that has no context: good-byes of cursors, transactions and
// sessions. It may take as long as grace; a connection on which it fails is not
// used again, and its error is dropped.
func (c *conn) tidy(call func() error) {
	c.mu.Lock()
	if c.spoilt {
		c.mu.Unlock()
		return
	}
	c.hurry()
	c.mu.Unlock()
	err := protect(call)
	c.mu.Lock()
	c.calm()
	c.mu.Unlock()
	if err != nil {
		_ = c.judge(err)
	}
}

// judge words an error of the driver, and spoils the connection unless the
// error is known to leave it as it was.
func (c *conn) judge(err error) error {
	err = c.translate(err)
	if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Spoils() {
		c.spoil()
	}
	return err
}

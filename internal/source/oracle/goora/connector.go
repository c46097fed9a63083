package goora

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	go_ora "github.com/sijms/go-ora/v2"
	"github.com/sijms/go-ora/v2/network"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/oracle/client"
)

// Connector opens sessions of one target, one at a time: what the driver keeps of a
// target is not safe for several.
type Connector struct {
	target client.Target
	inner  *go_ora.OracleConnector
	turn   chan struct{} // holds one token

	mu      sync.Mutex
	warning error
}

// Warning is what went wrong, at the latest logon, in a part of the session's setup that
// it can do without, such as the name under which a DBA sees it; nil when all went well.
func (c *Connector) Warning() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.warning
}

// Driver implements [driver.Connector].
func (c *Connector) Driver() driver.Driver { return c.inner.Driver() }

// Connect implements [driver.Connector].
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: others were still trying: %w", client.ErrConnect, ended(ctx))
	}
	ended, err := c.target.Gate.Allow(ctx)
	if err != nil {
		return nil, err
	}
	a, era := newAttempt(), c.target.Era.Now()
	opened, err := c.logOn(ctx, a)
	a.tell(ctx, err, ended)
	if err != nil {
		return nil, err
	}
	opened.isFormer = func() bool { return c.target.Era.Now() != era }
	return opened, nil
}

// tell passes the outcome of a logon on to its gate; ctx is the caller's.
func (a *attempt) tell(ctx context.Context, err error, ended func(error)) {
	if err == nil {
		ended(nil)
		return
	}
	fault := client.Classify(err)
	if fault.Class == observer.ClassCredentials || ctx.Err() == nil || a.known(err) {
		ended(fault)
	}
}

// known reports whether a logon that failed with that error has ended over there
// as well, though it may have been given up: a database that has not answered
// may have the password already, and take its time to refuse it.
func (a *attempt) known(err error) bool {
	return a.socket() == nil || errors.As(err, new(*client.Error))
}

// logOn opens a session and sets it up. The whole has one deadline, at which the
// socket is closed: the driver itself watches over no more than the dialling.
func (c *Connector) logOn(ctx context.Context, a *attempt) (*conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.target.ConnectTimeout, errSlow)
	defer cancel()
	a.ctx = ctx
	stop := context.AfterFunc(ctx, a.end)
	opened, err := c.open(ctx, a)
	if !stop() && err == nil {
		err = fmt.Errorf("%w: %w", client.ErrConnect, ended(ctx))
	}
	if err != nil {
		a.end()
		return nil, err
	}
	return opened, nil
}

var errSlow = errors.New("the database did not answer within the connect timeout")

func (c *Connector) open(ctx context.Context, a *attempt) (*conn, error) {
	var inner driver.Conn
	err := protect(func() (err error) {
		inner, err = c.inner.Connect(a.below(ctx))
		return err
	})
	if err != nil {
		return nil, c.explain(ctx, a, err)
	}
	session, ok := inner.(*go_ora.Connection)
	if !ok || a.socket() == nil {
		return nil, fmt.Errorf("%w: its connection has changed", client.ErrProtocol)
	}
	opened := &conn{inner: session, socket: a.socket(), grace: c.target.Grace, plain: c.plain()}
	warning, err := opened.setUp(ctx, c.target)
	if err != nil {
		return nil, c.explain(ctx, a, err)
	}
	c.mu.Lock()
	c.warning = warning
	c.mu.Unlock()
	return opened, nil
}

// plain reports whether sessions go without TLS. A descriptor may ask for it.
func (c *Connector) plain() bool {
	return !c.target.TLS && !strings.Contains(strings.ToUpper(c.target.Descriptor), "TCPS")
}

// explain words the failure of a logon.
func (c *Connector) explain(ctx context.Context, a *attempt, err error) error {
	var refused *client.Error
	var said *network.OracleError
	switch s := a.socket(); {
	// What the database has said counts, however late: a wrong password that is
	// taken for a timeout is tried again.
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &said):
		return refusalOf(said)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", client.ErrConnect, ended(ctx))
	case errors.Is(err, client.ErrProtocol), errors.Is(err, client.ErrLost):
		return fmt.Errorf("%w: %w", client.ErrConnect, err)
	case s != nil && s.heard.Load() == 0 && hungUp(err):
		return fmt.Errorf("%w: %w", client.ErrConnect, client.ErrHandshake)
	case errors.Is(err, driver.ErrBadConn):
		return fmt.Errorf("%w: %w", client.ErrConnect, io.ErrUnexpectedEOF)
	case strings.Contains(err.Error(), "://"): // It could be the driver's URL, with the password.
		return fmt.Errorf("%w: the driver refused the target", client.ErrConnect)
	}
	return fmt.Errorf("%w: %w", client.ErrConnect, err)
}

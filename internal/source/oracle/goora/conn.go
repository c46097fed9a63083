package goora

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"

	go_ora "github.com/sijms/go-ora/v2"

	"github.com/observerd/observerd/internal/source/oracle/client"
)

// conn is a session. As package database/sql wants it, it serves one goroutine
// at a time; only contexts that end come from elsewhere.
type conn struct {
	inner  *go_ora.Connection
	socket *socket
	grace  time.Duration
	// plain says that the socket carries the protocol as it is, without TLS.
	plain bool
	// isFormer reports whether it is one with a former database.
	isFormer func() bool

	mu sync.Mutex
	// spoilt says that the connection may not be used again.
	spoilt bool
	// closing is set while a call has to hurry.
	closing *time.Timer
}

var (
	_ driver.QueryerContext    = (*conn)(nil)
	_ driver.ExecerContext     = (*conn)(nil)
	_ driver.ConnBeginTx       = (*conn)(nil)
	_ driver.Validator         = (*conn)(nil)
	_ driver.SessionResetter   = (*conn)(nil)
	_ driver.NamedValueChecker = (*conn)(nil)
)

// below is the context that the driver is given. Through a plain socket we
// interrupt ourselves, in fetches too; through TLS only the driver can, and it
// does so while a statement is executed.
func (c *conn) below(ctx context.Context) context.Context {
	if c.plain {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// QueryContext implements [driver.QueryerContext].
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	w := c.watch(ctx)
	r := &rows{conn: c, watch: w}
	err := w.do(func() error {
		found, err := c.inner.QueryContext(c.below(ctx), query, args)
		if err != nil {
			return err
		}
		return r.take(found)
	})
	if err != nil {
		w.finish()
		return nil, err
	}
	return r, nil
}

// ExecContext implements [driver.ExecerContext].
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result, err error) {
	w := c.watch(ctx)
	defer w.finish()
	err = w.do(func() error {
		result, err = c.inner.ExecContext(c.below(ctx), query, args)
		return err
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// BeginTx implements [driver.ConnBeginTx] for reading: all statements see the
// database as it is now.
func (c *conn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if !options.ReadOnly || options.Isolation != 0 {
		return nil, errors.New("only read-only transactions of the default isolation are offered")
	}
	var inner driver.Tx
	w := c.watch(ctx)
	defer w.finish()
	err := w.do(func() (err error) {
		if inner, err = c.inner.BeginTx(context.WithoutCancel(ctx), driver.TxOptions{}); err != nil {
			return err
		}
		_, err = c.inner.ExecContext(c.below(ctx), "SET TRANSACTION READ ONLY", nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &tx{c, inner}, nil
}

// tx is a transaction that has nothing to keep, so both ends are the same.
type tx struct {
	conn  *conn
	inner driver.Tx
}

// Commit implements [driver.Tx].
func (t *tx) Commit() error { return t.Rollback() }

// Rollback implements [driver.Tx].
func (t *tx) Rollback() error {
	t.conn.tidy(t.inner.Rollback)
	return nil
}

// CheckNamedValue implements [driver.NamedValueChecker]. It refuses what the
// driver binds otherwise than one would think.
func (c *conn) CheckNamedValue(v *driver.NamedValue) (err error) {
	if v.Name != "" {
		return errors.New("bind by position: the driver misreads names behind comments and quotes")
	}
	if _, ok := v.Value.(time.Time); ok {
		return errors.New("bind times as text and convert them in the statement: a time is bound with a zone, which no index serves")
	}
	v.Value, err = driver.DefaultParameterConverter.ConvertValue(v.Value)
	if _, ok := v.Value.(time.Time); ok && err == nil {
		err = fmt.Errorf("bind times as text, not as %T", v.Value)
	}
	return err
}

// IsValid implements [driver.Validator].
func (c *conn) IsValid() bool { return !c.isSpoilt() }

// ResetSession implements [driver.SessionResetter].
func (c *conn) ResetSession(context.Context) error {
	if c.isSpoilt() || c.isFormer() {
		return driver.ErrBadConn
	}
	return nil
}

// Close implements [driver.Conn]. It logs off within grace, or hangs up where
// the connection is not to be trusted.
func (c *conn) Close() error {
	c.tidy(c.inner.Close)
	c.drop()
	return nil
}

// Prepare implements [driver.Conn].
func (c *conn) Prepare(string) (driver.Stmt, error) {
	return nil, fmt.Errorf("%w: prepared statements are not offered", errors.ErrUnsupported)
}

// Begin implements [driver.Conn].
func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{ReadOnly: true})
}

var errNoRows = fmt.Errorf("%w: a query without a result", client.ErrProtocol)

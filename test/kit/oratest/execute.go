package oratest

import (
	"context"
	"errors"
	"fmt"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// What an execution is asked to do.
const (
	opParse   = 0x01
	opExecute = 0x20
	opDefine  = 0x10
	opCommit  = 0x100
)

// execution is a client's request to parse, execute or define a statement.
type execution struct {
	op, cursor int
	fetch      int
	iterations int
	query      bool
	sql        string
	defines    []definition
	binds      []definition
	values     [][]wire.Value
}

func decodeExecution(d *decoder) execution {
	var x execution
	x.op, x.cursor = d.int(), d.int()
	d.byte()
	d.int() // the length of the statement, which stands before it too
	d.byte()
	d.int()
	d.skip(3)
	x.fetch = d.int()
	d.int() // how much of a LOB to send
	d.byte()
	binds := d.int()
	d.skip(6)
	defines := d.int()
	d.skip(3 + 5)
	d.byte()
	d.int() // how many rows an array binds
	d.byte()
	d.skip(5 + 2)
	if x.op&opParse != 0 {
		x.sql = string(d.clr())
	}
	options := [13]int{}
	for i := range options {
		options[i] = int(d.uint())
	}
	x.iterations, x.query = options[1], options[7] == 1
	x.defines = decodeDefinitions(d, defines)
	x.binds = decodeDefinitions(d, binds)
	if x.op&opExecute != 0 {
		x.values = decodeRows(d, x.binds, max(1, rowsOf(x)))
	}
	return x
}

// rowsOf is how many rows of binds come with an execution. Those of a query
// have another meaning for the number.
func rowsOf(x execution) int {
	if x.query {
		return 1
	}
	return x.iterations
}

// execute serves a statement that comes with its text, or the definition of
// the columns of one that was executed before.
func (c *conn) execute(d *decoder) error {
	x := decodeExecution(d)
	if d.err != nil {
		return fmt.Errorf("an execution: %w", d.err)
	}
	return c.call(func(ctx context.Context) ([]byte, error) {
		if x.op&opDefine != 0 {
			return c.define(x)
		}
		cur := &cursor{sql: x.sql}
		if x.op&opParse == 0 {
			// Executed again, with binds that are longer than before.
			if cur = c.cursors.get(x.cursor); cur == nil {
				return nil, invalidCursor()
			}
		}
		cur.binds, cur.commit = x.binds, x.op&opCommit != 0
		return c.run(ctx, cur, x.values, max(x.fetch, x.iterations))
	})
}

// reexecute serves a statement that the client has kept open.
func (c *conn) reexecute(fn byte, d *decoder) error {
	cur := c.cursors.get(d.int())
	fetch := d.int()
	d.int()
	d.int()
	if d.err != nil {
		return fmt.Errorf("an execution: %w", d.err)
	}
	if cur == nil {
		return c.refuse(invalidCursor())
	}
	rows := 1
	if fn == fnReexecute {
		rows = fetch
	}
	values := decodeRows(d, cur.binds, rows)
	if d.err != nil {
		return fmt.Errorf("an execution: %w", d.err)
	}
	return c.call(func(ctx context.Context) ([]byte, error) {
		return c.run(ctx, cur, values, fetch)
	})
}

// run executes a statement once for each row of binds.
func (c *conn) run(ctx context.Context, cur *cursor, values [][]wire.Value, fetch int) ([]byte, error) {
	affected := 0
	var result wire.Result
	for _, binds := range values {
		one, err := c.runOnce(ctx, cur, binds)
		if err != nil {
			return nil, err
		}
		affected += one.Affected
		result = one
	}
	if len(result.Columns) == 0 {
		e := &encoder{}
		e.summary(summary{row: affected, cursor: c.cursors.keep(cur)})
		return e.buf, nil
	}
	return c.firstRows(cur, result, fetch)
}

func (c *conn) runOnce(ctx context.Context, cur *cursor, binds []wire.Value) (wire.Result, error) {
	seen := &Received{SQL: cur.sql, Binds: binds, User: c.session.User, Serial: c.serial}
	c.server.counters.received(seen)
	if err := c.suffer(ctx, Statement, Before, cur.sql); err != nil {
		return wire.Result{}, c.noted(seen, err)
	}
	if ctx.Err() != nil {
		return wire.Result{}, errGone
	}
	c.server.counters.executed(seen)
	result, err := c.server.opts.Handler.Execute(ctx, wire.Statement{
		SQL: cur.sql, Binds: binds, BindTypes: kinds(cur.binds), Commit: cur.commit, Session: c.session,
	})
	if err == nil {
		err = c.suffer(ctx, Statement, After, cur.sql)
	}
	if err != nil && result.Rows != nil {
		result.Rows.Close()
	}
	return result, c.noted(seen, err)
}

// noted keeps with a statement what it is refused with.
func (c *conn) noted(r *Received, err error) error {
	var refused *wire.Error
	if errors.As(err, &refused) {
		c.server.counters.refused(r, refused.Code)
	}
	return err
}

package oratest

import (
	"context"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// What an execution is asked to do.
const (
	opParse   = 0x01
	opExecute = 0x20
	opDefine  = 0x10
)

// execution is a client's request to execute or define a statement.
type execution struct {
	op, cursor int
	fetch      int
	sql        string
	defines    []definition
	values     []wire.Value
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
		options[i] = d.int()
	}
	x.fetch = max(x.fetch, options[1])
	x.defines = decodeDefinitions(d, defines)
	kinds := decodeDefinitions(d, binds)
	switch {
	case x.op&opDefine != 0:
	case x.op&opParse == 0:
		d.fail("a statement that is executed again")
	case x.op&opExecute != 0:
		x.values = decodeBinds(d, kinds)
	}
	return x
}

// execute serves a statement that comes with its text, or the definition of
// the columns of one that was executed before.
func (c *conn) execute(d *decoder) error {
	x := decodeExecution(d)
	return c.call(func(ctx context.Context) ([]byte, error) {
		if x.op&opDefine != 0 {
			return c.define(x)
		}
		result, err := c.run(ctx, x)
		if err != nil {
			return nil, err
		}
		cur := &cursor{sql: x.sql}
		if len(result.Columns) > 0 {
			return c.firstRows(cur, result, x.fetch)
		}
		e := &encoder{}
		e.summary(summary{row: result.Affected, cursor: c.cursors.keep(cur)})
		return e.buf, nil
	})
}

func (c *conn) run(ctx context.Context, x execution) (wire.Result, error) {
	seen := &Received{SQL: x.sql, Binds: x.values}
	c.server.counters.received(seen)
	if err := c.suffer(ctx, Statement, Before, x.sql); err != nil {
		return wire.Result{}, err
	}
	if ctx.Err() != nil {
		return wire.Result{}, errGone
	}
	c.server.counters.executed(seen)
	result, err := c.server.opts.Handler.Execute(ctx, wire.Statement{SQL: x.sql, Binds: x.values, Session: c.session})
	if err == nil {
		err = c.suffer(ctx, Statement, After, x.sql)
	}
	if err != nil && result.Rows != nil {
		result.Rows.Close()
	}
	return result, err
}

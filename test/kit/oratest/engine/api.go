package engine

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// ownerTimeout bounds how long a statement of the owner waits for a row that
// another transaction has changed.
const ownerTimeout = 30 * time.Second

// Exec runs a statement as the owner, and commits. What ALTER SESSION sets
// holds for the owner's sessions from then on. Binds are Go values: nil,
// text, integers, *big.Int, float64, []byte, and time.Time, which is a DATE, a
// TIMESTAMP or an instant by what it is compared with or stored in.
func (e *Engine) Exec(sql string, binds ...any) error {
	tx := e.Begin()
	if err := tx.Exec(sql, binds...); err != nil {
		tx.Rollback()
		return err
	}
	tx.Commit()
	if fields := strings.Fields(sql); len(fields) > 1 && strings.EqualFold(fields[0]+fields[1], "ALTERSESSION") {
		e.mu.Lock()
		defer e.mu.Unlock()
		tx.session.settings(e.owner)
	}
	return nil
}

// Tx is a session of the owner with a transaction of its own. It is not safe
// for concurrent use.
type Tx struct {
	session *session
}

// Begin opens a session of the owner. The transaction itself begins with its
// first change, as V$TRANSACTION shows.
func (e *Engine) Begin() *Tx { return e.BeginOn(1) }

// BeginOn is [Engine.Begin] on an instance of a cluster, from 1.
func (e *Engine) BeginOn(instance int) *Tx {
	return &Tx{e.ownerSession(e.options.Owner, instance)}
}

// Exec runs a statement.
func (t *Tx) Exec(sql string, binds ...any) error {
	values, err := asBinds(binds)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), ownerTimeout)
	defer cancel()
	result, err := t.session.execute(ctx, sql, values)
	if result.Rows != nil {
		result.Rows.Close()
	}
	return err
}

// Query returns all rows of a SELECT, as [Engine.Query] does.
func (t *Tx) Query(sql string, binds ...any) ([][]any, error) {
	values, err := asBinds(binds)
	if err != nil {
		return nil, err
	}
	result, err := t.session.execute(context.Background(), sql, values)
	if err != nil {
		return nil, err
	}
	if result.Rows == nil {
		return nil, nil
	}
	defer result.Rows.Close()
	var all [][]any
	for {
		row, ok := result.Rows.Next()
		if !ok {
			break
		}
		out := make([]any, len(row))
		for i, v := range row {
			out[i] = v
		}
		all = append(all, out)
	}
	return all, result.Rows.(*wireRows).Err()
}

// Commit ends the transaction and the session.
func (t *Tx) Commit() {
	t.session.endTransaction(true)
	t.session.engine.Closed(t.session.wire)
}

// Rollback ends the transaction and the session.
func (t *Tx) Rollback() {
	t.session.endTransaction(false)
	t.session.engine.Closed(t.session.wire)
}

// Query returns all rows of a SELECT in a session of the user, whose formats
// are those of the owner. A NUMBER is its exact decimal text, a time without a
// zone its wall clock in UTC.
func (e *Engine) Query(user, sql string, binds ...any) ([][]any, error) {
	tx := &Tx{e.ownerSession(user, 1)}
	defer tx.Rollback()
	return tx.Query(sql, binds...)
}

// Plan returns how a SELECT of the owner would be run: a line for each step, as in "INDEX RANGE
// SCAN ORDERS_BY_TIME" or "TABLE ACCESS FULL ORDERS"; "SORT ORDER BY" is one of
// them where the result is sorted.
func (e *Engine) Plan(sql string, binds ...any) (string, error) {
	tx := e.Begin()
	defer tx.Rollback()
	values, err := asBinds(binds)
	if err != nil {
		return "", err
	}
	st, names, err := parse(sql, e.options.Version)
	if err != nil {
		return "", err
	}
	q, ok := st.(selectStatement)
	if !ok {
		return "", refuse(900)
	}
	c := &compiler{session: tx.session, user: tx.session.user}
	for i := range names {
		// A plan may be asked for without values: NULL stands for them.
		b := boundValue{typ: varchar(4000)}
		if i < len(values) {
			b = values[i]
		}
		c.binds, c.types = append(c.binds, b.value), append(c.types, b.typ)
	}
	var out *compiledQuery
	if err := protect(func() { out = c.query(nil, q.query) }); err != nil {
		return "", err
	}
	return out.plan.String(), nil
}

// fromGo makes a bind of a Go value.
func fromGo(v any) (boundValue, error) {
	switch v := v.(type) {
	case nil:
		return boundValue{typ: varchar(1)}, nil
	case int:
		return boundValue{integer(int64(v)), plain(typeNumber)}, nil
	case int64:
		return boundValue{integer(v), plain(typeNumber)}, nil
	case *big.Int:
		return boundValue{number(new(big.Int).Set(v), 0), plain(typeNumber)}, nil
	case time.Time:
		if v.Location() == time.UTC {
			return timeFromWire(v, wire.TypeTimestamp), nil
		}
		return timeFromWire(v, wire.TypeTimestampTZ), nil
	case string, []byte, float64:
		return fromWire(v), nil
	}
	return boundValue{}, fmt.Errorf("%T cannot be bound", v)
}

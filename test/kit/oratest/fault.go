package oratest

import (
	"context"
	"errors"
	"time"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// Call is a kind of call that a fault can befall.
type Call uint8

// The calls. A statement is one with its first rows; its later fetches are a
// stage of it.
const (
	Statement Call = iota
	Logon
	Logoff
	Ping
	Rollback
)

// Stage is the point of a call at which a fault befalls it.
type Stage uint8

// The stages. After is once the statement was executed and before its answer;
// Fetching is a later fetch of its rows.
const (
	Before Stage = iota
	After
	Fetching
)

// Action is what a call comes to, once its waiting is over.
type Action uint8

// The actions.
const (
	// Answer lets the call go on as though nothing had happened.
	Answer Action = iota
	// Refuse answers with the fault's error.
	Refuse
	// Kill answers with the fault's error, ORA-00028 when it has none, and
	// ends the connection.
	Kill
	// Cut ends the connection without a word.
	Cut
	// CutAnswer sends the first half of the answer and ends the connection.
	CutAnswer
	// Reset sends the markers that come before an error, and then a summary
	// without one. In a fetch the driver takes that for the end of the rows;
	// in an execution it returns rows that are none, and panics.
	Reset
	// NoRows sends a summary without rows, without an error and without the
	// word that there are no more rows.
	NoRows
	// Garbage sends bytes that mean nothing.
	Garbage
)

// Fault is something that goes wrong. It waits first, and then acts.
type Fault struct {
	At Stage
	// Skip lets so many calls pass first, and Times is how many it befalls
	// after them; 0 is all of them.
	Skip, Times int
	// Delay waits for so long. Hang waits until the trap is released or the
	// connection ends.
	Delay time.Duration
	Hang  bool
	// Deaf ignores the client's breaks from the beginning of the waiting to
	// the answer.
	Deaf bool
	// Then is what comes after the waiting, with Err where it needs one.
	Then Action
	Err  *wire.Error
}

// Fail is a fault that answers with an error of the database.
func Fail(code int) Fault { return Fault{Then: Refuse, Err: &wire.Error{Code: code}} }

// last is a failure of a call that says something of its own to the client.
type last struct{ say func(*conn) error }

func (*last) Error() string { return "a fault" }

// suffer befalls a call with the fault that lies in wait for it. The call goes
// on when it returns nil.
func (c *conn) suffer(ctx context.Context, call Call, at Stage, sql string) error {
	t := c.server.traps.sprung(call, at, sql)
	if t == nil {
		return nil
	}
	if t.fault.Deaf {
		c.mu.Lock()
		c.deaf = true
		c.mu.Unlock()
		ctx = c.ctx
	}
	t.reach.Do(func() { close(t.reached) }) // Whoever is told finds the call deaf.
	if err := t.wait(ctx); err != nil {
		return err
	}
	return c.act(t.fault)
}

func (c *conn) act(f Fault) error {
	switch f.Then {
	case Refuse:
		return refusal(f, 600)
	case Kill:
		return &last{func(c *conn) error { return errors.Join(c.refuse(refusal(f, 28)), errGone) }}
	case Cut:
		return &last{func(*conn) error { return errGone }}
	case CutAnswer:
		c.half = true
	case Reset:
		return &last{func(c *conn) error {
			return errors.Join(c.reset(), c.send(silence()))
		}}
	case NoRows:
		return &last{func(c *conn) error { return c.send(silence()) }}
	case Garbage:
		return &last{func(c *conn) error { return c.send([]byte("\xEE\x13 not an answer \xFF\xFF")) }}
	}
	return nil
}

func refusal(f Fault, code int) *wire.Error {
	if f.Err != nil {
		return f.Err
	}
	return &wire.Error{Code: code}
}

func silence() []byte {
	e := &encoder{}
	e.summary(summary{})
	return e.buf
}

package goora

import (
	"context"
	"io"
	"testing"

	"github.com/sijms/go-ora/v2/network"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/oracle/client"
)

// The database refuses the account at the moment at which the caller gives up:
// the gate has to hear of it, or the password is tried again.
func TestRefusalAtTheEndOfTheCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &connector{}
	err := c.explain(ctx, &attempt{}, &network.OracleError{ErrCode: 1017, ErrMsg: "ORA-01017: invalid username/password; logon denied"})
	if fault := client.Classify(err); fault.Class != observer.ClassCredentials || fault.Code != "ORA-01017" {
		t.Errorf("class %s, code %s: %v", fault.Class, fault.Code, err)
	}
}

// ends is a gate that counts the logons that have failed.
type ends struct {
	source.Open
	failed int
}

func (e *ends) Failed(context.Context) { e.failed++ }

// What the database has said of another kind has ended the logon as well.
func TestAnswerAtTheEndOfTheCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gate, a := &ends{}, &attempt{last: &socket{}}
	c := &connector{target: client.Target{Gate: gate}}
	c.tell(ctx, a, c.explain(ctx, a, &network.OracleError{ErrCode: 12514, ErrMsg: "ORA-12514: no such service"}))
	if gate.failed != 1 {
		t.Errorf("the gate was told of %d, want 1", gate.failed)
	}
	c.tell(ctx, a, c.explain(ctx, a, io.EOF))
	if gate.failed != 1 {
		t.Error("the gate was told of a logon that was given up without an answer")
	}
}

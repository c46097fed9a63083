package goora

import (
	"context"
	"io"
	"testing"

	"github.com/sijms/go-ora/v2/network"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/oracle/client"
)

// The database refuses the account at the moment at which the caller gives up:
// the gate has to hear of it, or the password is tried again.
func TestRefusalAtTheEndOfTheCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &Connector{}
	err := c.explain(ctx, &attempt{}, &network.OracleError{ErrCode: 1017, ErrMsg: "ORA-01017: invalid username/password; logon denied"})
	if fault := client.Classify(err); fault.Class != observer.ClassCredentials || fault.Code != "ORA-01017" {
		t.Errorf("class %s, code %s: %v", fault.Class, fault.Code, err)
	}
}

// What the database has said of another kind has ended the logon as well.
func TestAnswerAtTheEndOfTheCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	told, a, c := 0, &attempt{last: &socket{}}, &Connector{}
	ended := func(error) { told++ }
	a.tell(ctx, c.explain(ctx, a, &network.OracleError{ErrCode: 12514, ErrMsg: "ORA-12514: no such service"}), ended)
	if told != 1 {
		t.Errorf("the gate was told of %d, want 1", told)
	}
	a.tell(ctx, c.explain(ctx, a, io.EOF), ended)
	if told != 1 {
		t.Error("the gate was told of a logon that was given up without an answer")
	}
}

package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/test/kit/pgtest"
)

// gate notes what it is told, and refuses once it is shut.
type gate struct {
	shut              atomic.Bool
	refused, accepted atomic.Int64
}

var errShut = &observer.Fault{Class: observer.ClassCredentials, Err: errors.New("the account was refused before")}

func (g *gate) Allow(context.Context) error {
	if g.shut.Load() {
		return errShut
	}
	return nil
}

func (g *gate) Refused(context.Context, error) { g.refused.Add(1) }
func (g *gate) Accepted(context.Context)       { g.accepted.Add(1) }
func (g *gate) Failed(context.Context)         {}

func TestLogonsPassTheGate(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	g := &gate{}
	s := open(t, postgres.Options{URL: address, Gate: g})
	if _, err := s.Identity(t.Context()); err != nil || g.accepted.Load() != 1 || g.refused.Load() != 0 {
		t.Errorf("a right account: %v; %d accepted, %d refused", err, g.accepted.Load(), g.refused.Load())
	}

	stranger, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	stranger.User = url.UserPassword("nobody_of_that_name", "hunter2")
	g = &gate{}
	s = open(t, postgres.Options{URL: stranger.String(), Gate: g})
	_, err = s.Identity(t.Context())
	if observer.ClassOf(err) != observer.ClassCredentials || errors.Is(err, observer.ErrUnreachable) || g.refused.Load() != 1 || g.accepted.Load() != 0 {
		t.Errorf("a wrong account: %v; %d accepted, %d refused", err, g.accepted.Load(), g.refused.Load())
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v holds the password", err)
	}

	g.shut.Store(true)
	if _, err = s.Identity(t.Context()); !errors.Is(err, errShut) || g.refused.Load() != 1 {
		t.Errorf("behind a shut gate: %v; %d refused", err, g.refused.Load())
	}
}

// TestRestoredDatabaseIsAnother drops a database and makes it anew.
func TestRestoredDatabaseIsAnother(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	first, err := open(t, postgres.Options{URL: address}).Identity(t.Context())
	if err != nil || !strings.HasPrefix(first, "system:") {
		t.Fatalf("Identity = %q, %v", first, err)
	}
	other, err := open(t, postgres.Options{URL: pgtest.New(t)}).Identity(t.Context())
	if err != nil || other == first {
		t.Errorf("two databases share the identity %q, %v", other, err)
	}
}

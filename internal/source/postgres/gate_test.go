package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// gate notes what it is told, and refuses once it is shut.
type gate struct {
	shut              atomic.Bool
	refused, accepted atomic.Int64
	failed            atomic.Int64
}

var errShut = &observer.Fault{Class: observer.ClassCredentials, Err: errors.New("the account was refused before")}

func (g *gate) Allow(context.Context) (func(error), error) {
	if g.shut.Load() {
		return nil, errShut
	}
	return g.ended, nil
}

func (g *gate) ended(err error) {
	switch {
	case err == nil:
		g.accepted.Add(1)
	case observer.ClassOf(err) == observer.ClassCredentials:
		g.refused.Add(1)
	default:
		g.failed.Add(1)
	}
}

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

// TestLogonThatIsNotAllowedIsNoWrongPassword has a role that may not log on, as where
// pg_hba.conf has no line for this host: another one may have.
func TestLogonThatIsNotAllowedIsNoWrongPassword(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	role := pgtest.NewRole(t, address)
	parsed, err := url.Parse(role)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, connect(t, address), `ALTER ROLE "`+parsed.User.Username()+`" NOLOGIN`)
	g := &gate{}
	_, err = open(t, postgres.Options{URL: role, Gate: g}).Identity(t.Context())
	var f *observer.Fault
	if !errors.As(err, &f) || f.Class != observer.ClassSettings || f.Code != "28000" || g.failed.Load() != 1 || g.refused.Load() != 0 {
		t.Errorf("%v; %d failed, %d refused", err, g.failed.Load(), g.refused.Load())
	}
}

// TestGateHearsOfLogonsThatFail has no server, and one that accepts a connection and
// says no more, for which the caller does not wait: the pool does.
func TestGateHearsOfLogonsThatFail(t *testing.T) {
	t.Parallel()
	g := &gate{}
	_, err := open(t, postgres.Options{URL: "postgres://u@127.0.0.1:1/db", Gate: g}).Identity(t.Context())
	if !errors.Is(err, observer.ErrUnreachable) || g.failed.Load() != 1 || g.accepted.Load()+g.refused.Load() != 0 {
		t.Errorf("nobody listens: %v; %d failed", err, g.failed.Load())
	}

	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	g = &gate{}
	s := open(t, postgres.Options{URL: "postgres://u@" + mute.Addr().String() + "/db?sslmode=disable", Gate: g})
	ctx, giveUp := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer giveUp()
	if _, err := s.Identity(ctx); !errors.Is(err, context.DeadlineExceeded) || g.failed.Load() != 0 {
		t.Errorf("given up: %v; %d failed", err, g.failed.Load())
	}
	conn, err := mute.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	waittest.Eventually(t, 10*time.Second, func() error {
		if n := g.failed.Load(); n != 1 {
			return fmt.Errorf("the gate was told of %d failed logons, want 1", n)
		}
		return nil
	})
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

package oracle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/oracle"
	"github.com/observerd/observerd/internal/source/sourcetest"
	"github.com/observerd/observerd/test/kit/oratest/engine"
	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// What goes wrong before there is a session.
func TestLogons(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{}).withOrders(1)
	try := func(address string) error {
		s := open(t, oracle.Options{URL: address})
		_, err := s.Identity(t.Context())
		return err
	}
	wantFault(t, "wrong password", try(strings.Replace(d.url("app"), "@127", "x@127", 1)), observer.ClassCredentials, "ORA-01017")
	for code, class := range map[int]observer.Class{
		12514: observer.ClassSettings, 12505: observer.ClassSettings, 12528: observer.ClassUnreachable, 12519: observer.ClassResource,
	} {
		d.server.Refuse(1, code)
		wantFault(t, fmt.Sprint("listener ", code), try(d.url("app")), class, fmt.Sprintf("ORA-%05d", code))
	}
	wantFault(t, "another service", try(d.url("app")+"X"), observer.ClassSettings, "ORA-12514")
	// The system hands out higher ports, a closed server's to the next.
	nobody := strings.Replace(d.url("app"), d.server.Addr(), "127.0.0.1:1", 1)
	wantFault(t, "nobody listens", try(nobody), observer.ClassUnreachable, "")
}

// gate counts, and closes when it has been refused.
type gate struct {
	mu                sync.Mutex
	refused, accepted int
}

func (g *gate) Allow(context.Context) (func(error), error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused > 0 {
		return nil, &observer.Fault{Class: observer.ClassCredentials, Code: "ORA-01017", Err: errors.New("nobody may try before noon")}
	}
	return g.ended, nil
}

func (g *gate) ended(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err == nil:
		g.accepted++
	case observer.ClassOf(err) == observer.ClassCredentials:
		g.refused++
	}
}

// A wrong password is tried once, however many ask for however much.
func TestWrongPasswordIsTriedOnce(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{})
	g := &gate{}
	s := open(t, oracle.Options{URL: strings.Replace(d.url("app"), "@127", "x@127", 1), Gate: g})
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			_, err := s.Horizon(t.Context(), orders())
			wantFault(t, "wrong password", err, observer.ClassCredentials, "ORA-01017")
		})
	}
	wait.Wait()
	if d.server.FailedLogons() != 1 || g.refused != 1 || g.accepted != 0 {
		t.Errorf("the gate was told of %d refusals and %d logons, want one refusal", g.refused, g.accepted)
	}
}

func TestFaultyURL(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "postgres://u:hunter2@h/db", "oracle://u:hunter2@h:port/s", "oracle://u:hun%ter2@h:1521/s", "oracle://u:hunter2@h:1521/s?nonsense=1"} {
		s, err := oracle.Open(oracle.Options{URL: text})
		if err == nil {
			t.Errorf("Open(%q) succeeded", text)
			_ = s.Close()
		} else if strings.Contains(err.Error(), "hunter") || strings.Contains(err.Error(), "ter2") {
			t.Errorf("Open(%q): %v holds the password", text, err)
		}
	}
}

// A DBA sees whose sessions these are.
func TestSessionsAreNamed(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{}).withOrders(1)
	s := d.open(oracle.Options{Name: "erp", Node: "node-1"})
	var session wire.Session
	d.seen.instead(func(st wire.Statement) (bool, error) {
		if theRead(st.SQL) {
			session = *st.Session
		}
		return false, nil
	})
	sourcetest.ReadAll(t, s, orders(), observer.Range{})
	if got, err := s.Describe(t.Context(), orders()); err != nil || len(got.Warnings) > 0 {
		t.Errorf("description = %+v, %v", got, err)
	}
	if session.Program != "observerd" || session.Module != "observerd" || session.Action != "erp" || session.ClientID != "node-1" {
		t.Errorf("session = %+v", session)
	}
}

// A database that hides who we are is polled all the same.
func TestHardenedDatabase(t *testing.T) {
	t.Parallel()
	d := emulate(t, engine.Options{}).withOrders(1)
	d.engine.RevokePackage("DBMS_APPLICATION_INFO")
	s := d.open(oracle.Options{Name: "erp"})
	got, err := s.Describe(t.Context(), orders())
	if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "could not be set") {
		t.Errorf("description = %+v, %v", got, err)
	}
}

package access

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

// waited is how long a logon waits for its turn, by the clock of the test.
func waited(t *testing.T, g *credentialGate) (time.Duration, func(error)) {
	t.Helper()
	began := time.Now()
	ended, err := g.Allow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return time.Since(began), ended
}

// TestLogonOfWhichNothingIsHeardHoldsUpNobodyForLong has several of them, of which
// the first ends when its time is long over: that is no end of another's turn.
func TestLogonOfWhichNothingIsHeardHoldsUpNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(newBook(), "a", "secret")
		d, late := waited(t, g)
		if d != 0 {
			t.Errorf("the first waits for %v", d)
		}
		if d, _ := waited(t, g); d != maxLogon {
			t.Errorf("the second waits for %v, want %v", d, maxLogon)
		}
		late(errors.New("reset"))
		d, ended := waited(t, g)
		if d != maxLogon {
			t.Errorf("the third waits for %v, want %v", d, maxLogon)
		}
		ended(nil)
		if d, _ := waited(t, g); d != 0 {
			t.Errorf("after one that has ended, the next waits for %v", d)
		}
	})
}

// TestLogonThatFailsIsNoWordAboutTheAccount has a database that is down, and a
// refusal that comes too late.
func TestLogonThatFailsIsNoWordAboutTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		g := gateOf(b, "a", "secret")
		_, late := waited(t, g)
		for range 8 {
			_, ended := waited(t, g)
			ended(&observer.Fault{Class: observer.ClassUnreachable, Err: errors.New("nobody listens")})
			ended(nil)
		}
		if b.writes != 0 {
			t.Errorf("%d writes", b.writes)
		}
		late(&observer.Fault{Class: observer.ClassCredentials, Err: errors.New("denied")})
		if _, err := g.Allow(t.Context()); !isRefusal(err) {
			t.Errorf("an account that was refused: %v", err)
		}
	})
}

// TestWaitersAreLetInOneByOne has callers that go away while they wait.
func TestWaitersAreLetInOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(newBook(), "a", "secret")
		_, ended := waited(t, g)
		gone, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := g.Allow(gone); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller that goes away: %v", err)
		}
		go func() {
			time.Sleep(time.Second)
			ended(nil)
		}()
		if d, _ := waited(t, g); d != time.Second {
			t.Errorf("the next waits for %v, want %v", d, time.Second)
		}
	})
}

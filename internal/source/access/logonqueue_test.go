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
func waited(ctx context.Context, t *testing.T, g *credentialGate) time.Duration {
	t.Helper()
	began := time.Now()
	if err := g.Allow(ctx); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

// inFlight returns a gate with a logon of which nothing is heard, and its call.
func inFlight(t *testing.T, proven bool) (*credentialGate, *call) {
	t.Helper()
	g := gateOf(newBook(), "a", "secret")
	ctx, c := asCall(t.Context())
	if proven {
		waited(ctx, t, g)
		g.Accepted(ctx)
	}
	if d := waited(ctx, t, g); d != 0 {
		t.Fatalf("the first waits for %v", d)
	}
	return g, c
}

// TestLogonOfWhichNothingIsHeardHoldsUpNobodyForLong has one that its caller waits
// for, one that was given up and one that has failed.
func TestLogonOfWhichNothingIsHeardHoldsUpNobodyForLong(t *testing.T) {
	told := func(g *credentialGate, c *call) { g.Failed(context.WithValue(context.Background(), callKey{}, c)) }
	for name, tc := range map[string]struct {
		proven bool
		ends   func(*credentialGate, *call)
		want   time.Duration
	}{
		"goes on":                               {false, func(*credentialGate, *call) {}, maxFlight},
		"goes on, of an account that was good":  {true, func(*credentialGate, *call) {}, maxFlight},
		"given up":                              {false, func(g *credentialGate, c *call) { g.Settle(c, false) }, maxFlight},
		"given up, of an account that was good": {true, func(g *credentialGate, c *call) { g.Settle(c, false) }, provenFlight},
		"told":                                  {false, told, 0},
		"told, of an account that was good":     {true, told, 0},
		"failed":                                {false, func(g *credentialGate, c *call) { g.Settle(c, true) }, 0},
		"failed, of an account that was good":   {true, func(g *credentialGate, c *call) { g.Settle(c, true) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, c := inFlight(t, tc.proven)
				tc.ends(g, c)
				if d := waited(t.Context(), t, g); d != tc.want {
					t.Errorf("the next waits for %v, want %v", d, tc.want)
				}
			})
		})
	}
}

// TestPoolThatFailsToLogOnByItselfHoldsUpNobody is of a database that is down and
// comes back: a pool tries it for those who wait for a connection, by a context
// of none of their calls, and hands one of them the error of each logon.
func TestPoolThatFailsToLogOnByItselfHoldsUpNobody(t *testing.T) {
	for name, proven := range map[string]bool{"unknown": false, "was good": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, pool := gateOf(newBook(), "a", "secret"), context.Background()
				if proven {
					waited(pool, t, g)
					g.Accepted(pool)
				}
				for i := range 8 {
					_, waiter := asCall(t.Context())
					if d := waited(pool, t, g); d != 0 {
						t.Errorf("logon %d waits for %v", i, d)
					}
					g.Failed(pool)
					g.Settle(waiter, true)
				}
				if d := waited(t.Context(), t, g); d != 0 {
					t.Errorf("the first logon that goes well waits for %v", d)
				}
			})
		})
	}
}

// TestLogonThatFailsIsNoWordAboutTheAccount has one fail between two of an
// account that is good, and one of an account that is refused.
func TestLogonThatFailsIsNoWordAboutTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, ctx := newBook(), context.Background()
		g := gateOf(b, "a", "secret")
		waited(ctx, t, g)
		g.Accepted(ctx)
		waited(ctx, t, g)
		g.Failed(ctx)
		b.set(func(b *book) { b.down = errors.New("down") })
		time.Sleep(askEvery)
		waited(ctx, t, g) // It is believed, as it was good before.
		g.Refused(ctx, &observer.Fault{Class: observer.ClassCredentials, Err: errors.New("denied")})
		g.Failed(ctx)
		if err := g.Allow(ctx); !isRefusal(err) {
			t.Errorf("an account that was refused: %v", err)
		}
	})
}

// TestWaitersHearThatALogonWasGivenUp has them wait when that happens.
func TestWaitersHearThatALogonWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, c := inFlight(t, true)
		go func() {
			time.Sleep(time.Second)
			g.Settle(c, false)
		}()
		if d := waited(t.Context(), t, g); d != provenFlight {
			t.Errorf("the next waits for %v, want %v", d, provenFlight)
		}
	})
}

// TestOthersEndNoLogonInFlight has calls that fail, logons that end when their turn
// was long over, and callers that go away while they wait.
func TestOthersEndNoLogonInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, late := inFlight(t, true)
		lateCtx := context.WithValue(t.Context(), callKey{}, late)
		ctx, _ := asCall(t.Context())
		if d := waited(ctx, t, g); d != maxFlight {
			t.Fatalf("the second waits for %v", d)
		}
		began := time.Now()
		gone, leave := context.WithCancel(t.Context())
		goneCtx, goneCall := asCall(gone)
		leave()
		if err := g.Allow(goneCtx); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that goes away: %v", err)
		}
		g.Settle(goneCall, false)
		_, other := asCall(t.Context())
		g.Settle(other, true)
		g.Settle(late, true)
		g.Failed(lateCtx)
		g.Accepted(lateCtx)
		if d := waited(t.Context(), t, g); d != maxFlight || time.Since(began) != d {
			t.Errorf("the third waits for %v, want %v", d, maxFlight)
		}
	})
}

package locktest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

func granted(t *testing.T, h Harness) {
	r := h.request("a")
	before := time.Now()
	g := acquire(t, h.Provider(), r)
	if !reflect.DeepEqual(g.Request, r) {
		t.Errorf("grant is of %+v, want %+v", g.Request, r)
	}
	if g.Term == "" || g.Fence <= 0 {
		t.Errorf("term %q and fence %d, want both", g.Term, g.Fence)
	}
	if g.Began.Before(before) || g.Began.After(time.Now()) {
		t.Error("Began is not the moment at which the attempt began")
	}
}

func refused(t *testing.T, h Harness) {
	g := acquire(t, h.Provider(), h.request("a"))
	var held *lock.HeldError
	if err := refuse(t, h.Provider(), h.request("b")); !errors.As(err, &held) {
		t.Fatalf("error %v (%T) does not say who holds the lock", err, err)
	}
	if held.Key != g.Key || held.Node != "a" || held.Left <= 0 || held.Left > g.TTL {
		t.Errorf("holder is described as %+v", *held)
	}
}

func notReentrant(t *testing.T, h Harness) {
	p := h.Provider()
	acquire(t, p, h.request("a"))
	_ = refuse(t, p, h.request("a"))
}

func released(t *testing.T, h Harness) {
	a, b := h.Provider(), h.Provider()
	first := acquire(t, a, h.request("a"))
	release(t, a, first)
	second := acquire(t, b, h.request("b"))
	if second.Recovered {
		t.Error("a lock that was released counts as recovered")
	}
	if first.Term == second.Term {
		t.Error("two acquisitions share a term")
	}
	if err := a.Release(t.Context(), first); !errors.Is(err, lock.ErrLost) {
		t.Errorf("second release: %v, want ErrLost", err)
	}
}

func releaseByTerm(t *testing.T, h Harness) {
	a, b := h.Provider(), h.Provider()
	stale := acquire(t, a, h.expiring("a"))
	h.expire(t, stale)
	fresh := acquire(t, b, h.request("b"))
	if err := a.Release(t.Context(), stale); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release of a lease that another has taken: %v, want ErrLost", err)
	}
	_ = refuse(t, a, h.request("a"))
	release(t, b, fresh)
}

func renewed(t *testing.T, h Harness) {
	p := h.Provider()
	keyed := func(key string) lock.Grant {
		r := h.request("a")
		r.Key = key
		return acquire(t, p, r)
	}
	live, gone, foreign, last := keyed("z"), keyed("y"), keyed("x"), keyed("w")
	release(t, p, gone)
	foreign.Term = live.Term
	if got, err := p.Renew(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("renewal of nothing: %v, %v", got, err)
	}
	want := []lock.Renewal{lock.Renewed, lock.Lost, lock.Lost, lock.Renewed}
	if got := renew(t, h.Provider(), live, gone, foreign, last); !slices.Equal(got, want) {
		t.Errorf("renewals are %v, want %v", got, want)
	}
}

func notRevived(t *testing.T, h Harness) {
	a, b := h.Provider(), h.Provider()
	g := acquire(t, a, h.expiring("a"))
	h.expire(t, g)
	if got := renew(t, a, g); got[0] != lock.Lost {
		t.Errorf("renewal of an expired lease: %v", got[0])
	}
	stolen := acquire(t, b, h.request("b"))
	if stolen.Fence <= g.Fence {
		t.Errorf("fence %d after %d", stolen.Fence, g.Fence)
	}
	if g.Recovered || !stolen.Recovered {
		t.Errorf("recovered: %t of a lock that was free, %t of one whose lease had expired", g.Recovered, stolen.Recovered)
	}
	if got := renew(t, a, g); got[0] != lock.Lost {
		t.Errorf("renewal of a lease that another has taken: %v", got[0])
	}
	if got := renew(t, b, stolen); got[0] != lock.Renewed {
		t.Errorf("renewal of the thief: %v", got[0])
	}
}

func outlives(t *testing.T, h Harness) {
	a, b := h.Provider(), h.Provider()
	r := h.request("a")
	pace := a.Capabilities().RenewEvery
	if pace == nil {
		pace = func(ttl time.Duration) time.Duration { return ttl / 4 }
	}
	// A machine that stands still for longer than a TTL is given a longer one.
	for r.TTL = h.MinTTL; !keptUp(t, a, b, r, pace(r.TTL)); {
		r.TTL *= 2
	}
}

// keptUp renews a lease at that pace for longer than its TTL while another wants it. False
// says that a renewal came so late that the lease may have ended before it.
func keptUp(t *testing.T, a, b lock.Provider, r lock.Request, pace time.Duration) bool {
	t.Helper()
	g := acquire(t, a, r)
	last := g.Began // The lease lives for a TTL from here, at least.
	// The provider may round to milliseconds.
	late := func() bool { return time.Since(last) > r.TTL-5*time.Millisecond }
	for end := time.Now().Add(3 * r.TTL / 2); time.Now().Before(end); {
		pause(t, pace)
		began := time.Now()
		if got := renew(t, a, g); got[0] != lock.Renewed {
			if late() {
				_ = a.Release(t.Context(), g) // By a longer TTL its row may not have expired.
				return false
			}
			t.Fatalf("renewal: %v", got[0])
		}
		last = began
		other := r
		other.Node = "b"
		if stolen, err := b.Acquire(t.Context(), other); !errors.Is(err, lock.ErrHeld) {
			if err == nil && late() {
				release(t, b, stolen)
				return false
			}
			t.Fatalf("%s acquired a held lock: grant %+v, error %v", other.Node, stolen, err)
		}
	}
	return true
}

func expires(t *testing.T, h Harness) {
	r := h.request("a")
	r.TTL = h.MinTTL
	g := acquire(t, h.Provider(), r)
	r.Node = "b"
	takenAfterTTL(t, h.Provider(), r, g.Began)
}

// takenAfterTTL tries until it gets the lock, whose TTL began to run at that time or later.
func takenAfterTTL(t *testing.T, p lock.Provider, r lock.Request, began time.Time) (g lock.Grant) {
	t.Helper()
	limit := time.Now().Add(2*r.TTL + 5*time.Second)
	for {
		var err error
		g, err = p.Acquire(t.Context(), r)
		if err == nil {
			break
		}
		if !errors.Is(err, lock.ErrHeld) || time.Now().After(limit) {
			t.Fatalf("expired lease was not taken: %v", err)
		}
		pause(t, r.TTL/20)
	}
	// The provider may round to milliseconds.
	if early := time.Until(began.Add(r.TTL)); early > 5*time.Millisecond {
		t.Errorf("lease was taken %s before its TTL was over", early)
	}
	return g
}

// aheadButAlive has the provider's clock set back while a holder works: whoever comes is
// refused, and the holder renews, whether somebody came before or not.
func aheadButAlive(t *testing.T, h Harness) {
	h.ahead(t, func(t *testing.T, r lock.Request) {
		a, b := h.Provider(), h.Provider()
		g := acquire(t, a, r)
		wanted := h.request("b")
		for _, ahead := range []time.Duration{g.TTL / 10, 3 * g.TTL, 1000 * g.TTL} {
			h.Date(t, g, ahead)
			var held *lock.HeldError
			for range 2 {
				if err := refuse(t, b, wanted); !errors.As(err, &held) || held.Left <= 0 || held.Left > g.TTL {
					t.Errorf("%s ahead, the holder is described as %+v", ahead, held)
				}
			}
			if got := renew(t, a, g); got[0] != lock.Renewed {
				t.Errorf("%s ahead, the renewal after a refusal: %v", ahead, got[0])
			}
			h.Date(t, g, ahead)
			if got := renew(t, a, g); got[0] != lock.Renewed {
				t.Errorf("%s ahead, the renewal before anybody came: %v", ahead, got[0])
			}
			_ = refuse(t, b, wanted)
		}
		release(t, a, g)
		release(t, b, acquire(t, b, wanted))
	})
}

// aheadAndDead has the holder renew no more: its lease ends a TTL after somebody wanted its
// lock, and not before.
func aheadAndDead(t *testing.T, h Harness) {
	h.ahead(t, func(t *testing.T, r lock.Request) {
		r.TTL = h.MinTTL
		g := acquire(t, h.Provider(), r)
		h.Date(t, g, time.Hour)
		wanted := h.request("b")
		wanted.TTL = h.MinTTL
		taken := takenAfterTTL(t, h.Provider(), wanted, time.Now())
		if got := renew(t, h.Provider(), g); got[0] != lock.Lost {
			t.Errorf("renewal of a lease that another has taken: %v", got[0])
		}
		release(t, h.Provider(), taken)
	})
}

// ahead runs a story with a holder that has its lock alone, and with one that shares it.
func (h Harness) ahead(t *testing.T, story func(t *testing.T, r lock.Request)) {
	t.Helper()
	if h.Date == nil {
		t.Skip("this provider has no clock that could be set back")
	}
	t.Run("alone", func(t *testing.T) { story(t, h.request("a")) })
	t.Run("shared", func(t *testing.T) {
		h.need(t, "shared and intent modes")
		story(t, h.shared("a", lock.Shared))
	})
}

func fencesGrow(t *testing.T, h Harness) {
	a, b := h.Provider(), h.Provider()
	var last int64
	grew := func(g lock.Grant) {
		t.Helper()
		if g.Fence <= last {
			t.Errorf("fence %d after %d", g.Fence, last)
		}
		last = g.Fence
	}
	for range 2 {
		first := acquire(t, a, h.request("a"))
		grew(first)
		release(t, a, first)
		second := acquire(t, b, h.expiring("b"))
		grew(second)
		h.expire(t, second)
		third := acquire(t, a, h.request("a"))
		grew(third)
		release(t, a, third)
	}
}

func independent(t *testing.T, h Harness) {
	p := h.Provider()
	acquire(t, p, h.request("a"))
	region, key := h.request("a"), h.request("a")
	region.Region = "OTHER"
	key.Key = "01234567-89ab-cdef-0123-456789abcdef"
	release(t, p, acquire(t, p, region))
	release(t, p, acquire(t, p, key))
	_ = refuse(t, p, h.request("b"))
}

func endsWithContext(t *testing.T, h Harness) {
	p := h.Provider()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Acquire(over, h.expiring("a")); err == nil || errors.Is(err, lock.ErrHeld) {
		t.Errorf("acquisition under a context that has ended: %v", err)
	}
	g := acquireSoon(t, p, h.expiring("b"))
	if _, err := p.Renew(over, []lock.Grant{g}); err == nil {
		t.Error("renewal under a context that has ended succeeded")
	}
	if err := p.Release(over, g); err == nil {
		t.Error("release under a context that has ended succeeded")
	}
}

// acquireSoon allows for an attempt whose answer was not awaited: at worst
// its lock stands for a TTL.
func acquireSoon(t *testing.T, p lock.Provider, r lock.Request) lock.Grant {
	t.Helper()
	for limit := time.Now().Add(r.TTL + time.Second); ; {
		g, err := p.Acquire(t.Context(), r)
		if err == nil {
			return g
		}
		if !errors.Is(err, lock.ErrHeld) || time.Now().After(limit) {
			t.Fatalf("acquire: %v", err)
		}
		pause(t, 50*time.Millisecond)
	}
}

package locktest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lock"
)

// freedIn releases the lock, and checks that its term is over.
func freedIn(t *testing.T, p lock.Provider, g lock.Grant, after time.Duration) {
	t.Helper()
	d := p.Capabilities().Delayer
	if err := d.ReleaseAfter(t.Context(), g, after); err != nil {
		t.Fatalf("release in %s: %v", after, err)
	}
	if got := renew(t, p, g); got[0] != lock.Lost {
		t.Errorf("renewal after the release: %v", got[0])
	}
	if err := d.ReleaseAfter(t.Context(), g, after); !errors.Is(err, lock.ErrLost) {
		t.Errorf("second release: %v, want ErrLost", err)
	}
	if err := p.Release(t.Context(), g); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release at once after it: %v, want ErrLost", err)
	}
}

// eventually acquires a lock that another keeps for some time, and returns when.
func eventually(t *testing.T, p lock.Provider, r lock.Request) (lock.Grant, time.Time) {
	t.Helper()
	for {
		g, err := p.Acquire(t.Context(), r)
		if err == nil {
			return g, time.Now()
		}
		if !errors.Is(err, lock.ErrHeld) {
			t.Fatalf("%s could not acquire: %v", r.Node, err)
		}
		pause(t, 10*time.Millisecond)
	}
}

// clockStep is how coarse a provider's clock may be.
const clockStep = 10 * time.Millisecond

// freedLater has leases end whose locks stay: for longer than the TTL, or for less.
func freedLater(t *testing.T, h Harness) {
	a, b := h.Provider(), h.Provider()
	g := acquire(t, a, h.expiring("a"))
	freedIn(t, a, g, 10*h.ttl())
	_ = refuse(t, b, h.request("b"))
	if h.Expire != nil {
		h.Expire(t, g) // It has no row any more.
	} else {
		pause(t, g.TTL+g.TTL/10)
	}
	short := h.request("b")
	short.TTL = h.MinTTL
	_ = refuse(t, b, short)

	other := h.request("a")
	other.Key = "another"
	long := acquire(t, a, other)
	began := time.Now()
	freedIn(t, a, long, h.MinTTL)
	_, at := eventually(t, b, other)
	if d := at.Sub(began); d < h.MinTTL-clockStep {
		t.Errorf("the lock was free after %s, want %s or more", d, h.MinTTL)
	}
}

// freedSooner has an operator free a lock that is to be freed later, by the term that is found,
// which the commands read as a UUID.
func freedSooner(t *testing.T, h Harness) {
	p := h.Provider()
	left := func(g lock.Grant) {
		t.Helper()
		freedIn(t, p, g, 10*h.ttl())
		found, err := p.Capabilities().Finder.Find(t.Context(), lock.Query{Region: g.Region, Key: g.Key, Limit: 100})
		if err != nil || len(found) != 1 || found[0].Fence != g.Fence || uuid.Validate(found[0].Term) != nil {
			t.Fatalf("found %+v, error %v; want a UUID and the fence %d", found, err, g.Fence)
		}
		release(t, p, found[0].Grant)
		release(t, p, acquire(t, p, h.request("b")))
	}
	left(acquire(t, p, h.request("a")))
	if p.Capabilities().Modes {
		left(acquire(t, p, h.shared("a", lock.Shared)))
	}
	if p.Capabilities().Stealer != nil {
		victim, b := acquire(t, p, h.request("a")), newThief(t, h)
		left(b.steal(h.request("b"), b.see(victim)))
	}
}

// freedLaterIfHeld has a lease end that another has taken.
func freedLaterIfHeld(t *testing.T, h Harness) {
	a, b := h.Provider(), h.Provider()
	d := a.Capabilities().Delayer
	stale := acquire(t, a, h.expiring("a"))
	h.expire(t, stale)
	fresh := acquire(t, b, h.request("b"))
	if err := d.ReleaseAfter(t.Context(), stale, 10*h.ttl()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release of a lease that another has taken: %v, want ErrLost", err)
	}
	if got := renew(t, b, fresh); got[0] != lock.Renewed {
		t.Errorf("renewal of the other: %v", got[0])
	}
	release(t, b, fresh)
	release(t, b, acquire(t, b, h.request("b")))
}

// sharesLater has one of two readers end, whose part of the lock stays.
func sharesLater(t *testing.T, h Harness) {
	a, b := h.Provider(), h.Provider()
	first, second := acquire(t, a, h.shared("a", lock.Shared)), acquire(t, b, h.shared("b", lock.Shared))
	freedIn(t, a, first, 10*h.ttl())
	if got := renew(t, b, second); got[0] != lock.Renewed {
		t.Errorf("renewal of the other: %v", got[0])
	}
	release(t, b, second)
	_ = refuse(t, b, h.shared("b", lock.Exclusive))
	_ = refuse(t, b, h.request("b"))
	release(t, b, acquire(t, b, h.shared("b", lock.Shared)))

	writes, reads := h.shared("b", lock.Exclusive), h.shared("a", lock.Shared)
	writes.Key, reads.Key = "another", "another"
	third := acquire(t, a, reads)
	began := time.Now()
	freedIn(t, a, third, h.MinTTL)
	g, at := eventually(t, b, writes)
	if d := at.Sub(began); d < h.MinTTL-clockStep || g.Fence <= third.Fence {
		t.Errorf("the lock was free after %s, want %s or more; fence %d after %d", d, h.MinTTL, g.Fence, third.Fence)
	}
	release(t, b, g)
}

package locktest

import (
	"errors"
	"reflect"
	"sync"
	"testing"

	"github.com/observerd/observerd/internal/lock"
)

// thief is a client of a provider whose locks can be stolen.
type thief struct {
	lock.Provider
	lock.Stealer
	lock.Finder
	t *testing.T
}

func newThief(t *testing.T, h Harness) thief {
	t.Helper()
	p := h.Provider()
	c := p.Capabilities()
	return thief{p, c.Stealer, c.Finder, t}
}

// see returns the holder with the grant's term.
func (s thief) see(g lock.Grant) lock.Held {
	s.t.Helper()
	found, err := s.Find(s.t.Context(), lock.Query{Region: g.Region, Limit: 100})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range found {
		if f.Term == g.Term {
			return f
		}
	}
	s.t.Fatalf("the term %s of %s is not found", g.Term, g.Node)
	return lock.Held{}
}

func (s thief) steal(r lock.Request, seen lock.Held) lock.Grant {
	s.t.Helper()
	g, err := s.Steal(s.t.Context(), r, seen, lock.By{Actor: "alice"})
	if err != nil {
		s.t.Fatalf("%s could not steal: %v", r.Node, err)
	}
	return g
}

// cannot checks that the lock is not stolen, for that reason.
func (s thief) cannot(r lock.Request, seen lock.Held, want error) {
	s.t.Helper()
	g, err := s.Steal(s.t.Context(), r, seen, lock.By{Actor: "alice"})
	if err == nil || !errors.Is(err, want) {
		s.t.Errorf("steal: grant %+v, error %v, want %v", g, err, want)
	}
}

// isOver checks that the term can do nothing any more.
func isOver(t *testing.T, p lock.Provider, g lock.Grant) {
	t.Helper()
	if got := renew(t, p, g); got[0] != lock.Lost {
		t.Errorf("renewal of a stolen lease: %v", got[0])
	}
	if err := p.Release(t.Context(), g); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release of a stolen lease: %v, want ErrLost", err)
	}
	if e := p.Capabilities().Extender; e != nil {
		if err := e.Extend(t.Context(), g, g.TTL); !errors.Is(err, lock.ErrLost) {
			t.Errorf("extension of a stolen lease: %v, want ErrLost", err)
		}
	}
}

// lives checks that the term holds the lock.
func lives(t *testing.T, p lock.Provider, g lock.Grant) {
	t.Helper()
	if got := renew(t, p, g); got[0] != lock.Renewed {
		t.Errorf("renewal of %s: %v", g.Node, got[0])
	}
}

// stolen has a lock taken from a holder that lives, and then from the thief.
func stolen(t *testing.T, h Harness) {
	a, b := h.Provider(), newThief(t, h)
	victim := acquire(t, a, h.request("a"))
	r := h.request("b")
	r.Mode, r.TTL = lock.Exclusive, 2*h.ttl()
	g := b.steal(r, b.see(victim))
	if !reflect.DeepEqual(g.Request, r) || g.Term == "" || g.Term == victim.Term || g.Fence <= victim.Fence || !g.Recovered {
		t.Errorf("grant %+v after %+v", g, victim)
	}
	isOver(t, a, victim)
	lives(t, b, g)
	var held *lock.HeldError
	if err := refuse(t, a, h.request("c")); !errors.As(err, &held) || held.Node != "b" || held.Left <= h.ttl() || held.Left > r.TTL {
		t.Errorf("holder is described as %+v", held)
	}
	found := b.see(g)
	if found.Node != "b" || found.TTL != r.TTL || found.Fence != g.Fence || found.Mode != lock.Exclusive {
		t.Errorf("found %+v", found)
	}
	again := b.steal(h.request("a"), found)
	isOver(t, b, g)
	lives(t, a, again)
	release(t, a, again)
	if next := acquire(t, b, h.request("b")); next.Fence <= again.Fence || next.Recovered {
		t.Errorf("grant %+v after %+v", next, again)
	}
}

// stolenWhenExpired has a lock taken whose lease is over: it need not run.
func stolenWhenExpired(t *testing.T, h Harness) {
	if h.Vanishes {
		t.Skip("of a lease that is over nothing is left to be stolen")
	}
	a, b := h.Provider(), newThief(t, h)
	victim := acquire(t, a, h.expiring("a"))
	h.expire(t, victim)
	g := b.steal(h.request("b"), b.see(victim))
	isOver(t, a, victim)
	lives(t, b, g)
}

// notStolenIfRenewed has the holder show that it lives, after it was seen.
func notStolenIfRenewed(t *testing.T, h Harness) {
	a, b := h.Provider(), newThief(t, h)
	victim := acquire(t, a, h.request("a"))
	seen := b.see(victim)
	pause(t, clockStep)
	lives(t, a, victim)
	b.cannot(h.request("b"), seen, lock.ErrRenewed)
	lives(t, a, victim)
	seen = b.see(victim)
	if seen.Fence != victim.Fence {
		t.Errorf("fence %d became %d", victim.Fence, seen.Fence)
	}
	if e := a.Capabilities().Extender; e != nil {
		pause(t, clockStep)
		if err := e.Extend(t.Context(), victim, victim.TTL); err != nil {
			t.Fatal(err)
		}
		b.cannot(h.request("b"), seen, lock.ErrRenewed)
	}
	lives(t, a, victim)
	b.steal(h.request("b"), b.see(victim))
	isOver(t, a, victim)
}

// notStolenIfEnded has the holder release the lock, and another take it.
func notStolenIfEnded(t *testing.T, h Harness) {
	a, b := h.Provider(), newThief(t, h)
	victim := acquire(t, a, h.request("a"))
	seen := b.see(victim)
	release(t, a, victim)
	b.cannot(h.request("b"), seen, lock.ErrLost)
	next := acquire(t, a, h.request("a"))
	b.cannot(h.request("b"), seen, lock.ErrLost)
	lives(t, a, next)
	release(t, a, next)
	other := h.request("b")
	other.Key = "another"
	b.cannot(other, seen, lock.ErrLost)
	release(t, b, acquire(t, b, h.request("b")))
}

// stolenFromOne has one of those who share a lock lose it.
func stolenFromOne(t *testing.T, h Harness) {
	a, b := h.Provider(), newThief(t, h)
	first, second := acquire(t, a, h.shared("a", lock.Shared)), acquire(t, a, h.shared("b", lock.Shared))
	seen := b.see(first)
	// A renewal of the other is none of the first.
	pause(t, clockStep)
	lives(t, a, second)
	var held *lock.HeldError
	if _, err := b.Steal(t.Context(), h.request("c"), seen, lock.By{Actor: "alice"}); !errors.As(err, &held) || held.Node != "b" || held.Key != first.Key || held.Left <= 0 || held.Left > second.TTL {
		t.Errorf("%v does not say that b keeps the lock", err)
	}
	b.cannot(h.shared("c", lock.IntentExclusive), seen, lock.ErrHeld)
	g := b.steal(h.shared("c", lock.Shared), seen) // Nothing has changed.
	if g.Fence <= second.Fence {
		t.Errorf("fence %d after %d", g.Fence, second.Fence)
	}
	isOver(t, a, first)
	lives(t, a, second)
	lives(t, b, g)
	_ = refuse(t, a, h.request("d"))

	seen = b.see(second)
	pause(t, clockStep)
	lives(t, a, second)
	b.cannot(h.shared("c", lock.Shared), seen, lock.ErrRenewed)
	lives(t, a, second)
	seen = b.see(second)
	release(t, a, second)
	b.cannot(h.shared("c", lock.Shared), seen, lock.ErrLost)
	// The last of them can be replaced by a holder that wants the lock alone.
	last := b.steal(h.request("d"), b.see(g))
	isOver(t, b, g)
	_ = refuse(t, a, h.shared("a", lock.Intent))
	lives(t, b, last)
	// And that one by one of several.
	reader := b.steal(h.shared("e", lock.Shared), b.see(last))
	isOver(t, b, last)
	release(t, a, acquire(t, a, h.shared("a", lock.Shared)))
	release(t, b, reader)
	release(t, a, acquire(t, a, h.request("a")))
}

// stolenFromTheLine has callers wait: they are passed, and keep their places.
func stolenFromTheLine(t *testing.T, h Harness) {
	a, w, b := newQueue(t, h), newQueue(t, h), newThief(t, h)
	victim := a.acquire(h.waiting("a", lock.Exclusive, 0))
	waits := h.waiting("w", lock.Exclusive, 5)
	w.isTurn(&waits)
	r := h.request("b")
	r.Mode = lock.Exclusive
	g := b.steal(r, b.see(victim))
	if w.isTurn(&waits) {
		t.Error("a stolen lock is for those who wait")
	}
	release(t, b, g)
	if !w.isTurn(&waits) {
		t.Error("the one who waits has lost its place")
	}
	w.release(w.acquire(waits))
}

// stolenOnce has several who have seen the same.
func stolenOnce(t *testing.T, h Harness) {
	const thieves = 4
	victim := acquire(t, h.Provider(), h.request("a"))
	var all [thieves]thief
	for i := range all {
		all[i] = newThief(t, h)
	}
	seen := all[0].see(victim)
	won := make(chan lock.Grant, thieves)
	var work sync.WaitGroup
	for _, s := range all {
		work.Go(func() {
			g, err := s.Steal(t.Context(), h.request("b"), seen, lock.By{Actor: "alice"})
			switch {
			case err == nil:
				won <- g
			case !errors.Is(err, lock.ErrLost) && !errors.Is(err, lock.ErrHeld): // Rows may be locked for too long.
				t.Errorf("steal: %v", err)
			}
		})
	}
	work.Wait()
	close(won)
	if len(won) != 1 {
		t.Fatalf("%d of %d have stolen the lock", len(won), thieves)
	}
	lives(t, all[0], <-won)
}

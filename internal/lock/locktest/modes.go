package locktest

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// shared returns the request of a lock in that mode.
func (h Harness) shared(node string, mode lock.Mode) lock.Request {
	r := h.request(node)
	r.Mode = mode
	return r
}

func matrix(t *testing.T, h Harness) {
	a, b := h.Provider(), h.Provider()
	for _, has := range lock.Modes() {
		for _, wants := range lock.Modes() {
			g := acquire(t, a, h.shared("a", has))
			other, err := b.Acquire(t.Context(), h.shared("b", wants))
			switch {
			case has.Conflicts(wants) && !errors.Is(err, lock.ErrHeld):
				t.Errorf("%s beside %s: %v, want ErrHeld", wants, has, err)
			case !has.Conflicts(wants) && err != nil:
				t.Errorf("%s beside %s: %v", wants, has, err)
			}
			if err == nil {
				release(t, b, other)
			}
			release(t, a, g)
		}
	}
}

func sharedByMany(t *testing.T, h Harness) {
	a, b, writer := h.Provider(), h.Provider(), h.Provider()
	first, second := acquire(t, a, h.shared("a", lock.Shared)), acquire(t, b, h.shared("b", lock.Shared))
	if first.Term == second.Term || second.Fence <= first.Fence {
		t.Errorf("terms %s and %s, fences %d and %d", first.Term, second.Term, first.Fence, second.Fence)
	}
	var held *lock.HeldError
	if err := refuse(t, writer, h.shared("w", lock.Exclusive)); !errors.As(err, &held) || held.Node == "" || held.Left <= 0 || held.Left > first.TTL {
		t.Errorf("holder is described as %+v", held)
	}
	_ = refuse(t, writer, h.request("w")) // as one who knows exclusive locks alone
	if got := renew(t, h.Provider(), first, second); got[0] != lock.Renewed || got[1] != lock.Renewed {
		t.Errorf("renewals %v", got)
	}
	release(t, a, first)
	_ = refuse(t, writer, h.shared("w", lock.Exclusive))
	if err := a.Release(t.Context(), first); !errors.Is(err, lock.ErrLost) {
		t.Errorf("second release: %v, want ErrLost", err)
	}
	if got := renew(t, a, first); got[0] != lock.Lost {
		t.Errorf("renewal after the release: %v", got[0])
	}
	release(t, b, second)
	if g := acquire(t, writer, h.request("w")); g.Fence <= second.Fence {
		t.Errorf("fence %d after %d", g.Fence, second.Fence)
	}
}

// membersExpire has one of two readers die: it keeps no writer out.
func membersExpire(t *testing.T, h Harness) {
	a, b := h.Provider(), h.Provider()
	dead := h.shared("a", lock.Shared)
	if h.Expire == nil {
		dead.TTL = h.MinTTL
	}
	first := acquire(t, a, dead)
	intent := acquire(t, b, h.shared("b", lock.Intent))
	_ = refuse(t, b, h.shared("b", lock.IntentExclusive))
	h.expire(t, first)
	release(t, b, acquire(t, b, h.shared("b", lock.IntentExclusive)))
	if got := renew(t, a, first); got[0] != lock.Lost {
		t.Errorf("renewal of a dead reader: %v", got[0])
	}
	if got := renew(t, b, intent); got[0] != lock.Renewed {
		t.Errorf("renewal beside a dead reader: %v", got[0])
	}
	release(t, b, intent)
	last := acquire(t, a, dead)
	h.expire(t, last)
	writer := acquire(t, b, h.shared("b", lock.Exclusive))
	if writer.Fence <= last.Fence {
		t.Errorf("fence %d after %d", writer.Fence, last.Fence)
	}
	if got := renew(t, a, last); got[0] != lock.Lost {
		t.Errorf("renewal of a lease that another has taken: %v", got[0])
	}
	if err := a.Release(t.Context(), last); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release of a lease that another has taken: %v, want ErrLost", err)
	}
	_ = refuse(t, a, h.request("a"))
}

// eachByItsTTL has a reader with a long TTL beside one with a short one.
func eachByItsTTL(t *testing.T, h Harness) {
	if h.Date == nil {
		t.Skip("a test cannot set the time of a lease")
	}
	a, b := h.Provider(), h.Provider()
	long := h.shared("a", lock.Shared)
	long.TTL = 10 * h.ttl()
	first := acquire(t, a, long)
	second := acquire(t, b, h.shared("b", lock.Shared))
	h.Date(t, first, -5*h.ttl())
	release(t, b, second)
	_ = refuse(t, b, h.shared("b", lock.Exclusive))
	_ = refuse(t, b, h.request("b"))
	if extender := a.Capabilities().Extender; extender != nil {
		if err := extender.Extend(t.Context(), first, 20*h.ttl()); err != nil {
			t.Fatal(err)
		}
		first.TTL = 20 * h.ttl()
		h.Date(t, first, -15*h.ttl())
		_ = refuse(t, b, h.request("b"))
		_ = refuse(t, b, h.shared("b", lock.IntentExclusive))
	}
	release(t, a, first)
	release(t, b, acquire(t, b, h.request("b")))
}

func (h Harness) set(keys ...string) []lock.Request {
	requests := make([]lock.Request, len(keys))
	for i, key := range keys {
		requests[i] = h.request("a")
		requests[i].Key, requests[i].Mode = key, lock.Exclusive
	}
	return requests
}

func allOrNothing(t *testing.T, h Harness) {
	a, b := h.Provider(), h.Provider()
	one := h.set("m")[0]
	holder := acquire(t, b, one)
	var held *lock.HeldError
	if grants, err := a.Capabilities().Sets.AcquireAll(t.Context(), h.set("z", "m", "b")); !errors.As(err, &held) || held.Key != "m" {
		t.Fatalf("a set with a held lock: %v, %v", grants, err)
	}
	for _, r := range h.set("z", "b") {
		release(t, b, acquire(t, b, r))
	}
	release(t, b, holder)
	requests := h.set("z", "m", "b")
	if a.Capabilities().Modes {
		requests[1].Mode = lock.Shared
	}
	grants, err := a.Capabilities().Sets.AcquireAll(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range grants {
		if !reflect.DeepEqual(g.Request, requests[i]) || g.Term == "" || g.Fence <= 0 {
			t.Errorf("grant %d is %+v", i, g)
		}
		_ = refuse(t, b, h.set(g.Key)[0])
	}
	for _, got := range renew(t, a, grants...) {
		if got != lock.Renewed {
			t.Errorf("renewal: %v", got)
		}
	}
	for _, g := range grants {
		release(t, a, g)
		release(t, b, acquire(t, b, h.set(g.Key)[0]))
	}
}

// opposite has clients take the same locks in different orders: each gets its turn.
func opposite(t *testing.T, h Harness) {
	orders := [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "c", "a"}}
	done := make(chan error, len(orders))
	for _, order := range orders {
		p := h.Provider()
		s := p.Capabilities().Sets
		go func() {
			for range 5 {
				grants, err := s.AcquireAll(t.Context(), h.set(order...))
				for errors.Is(err, lock.ErrHeld) && t.Context().Err() == nil {
					wait(t.Context(), time.Millisecond)
					grants, err = s.AcquireAll(t.Context(), h.set(order...))
				}
				for _, g := range grants {
					err = errors.Join(err, p.Release(t.Context(), g))
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range orders {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

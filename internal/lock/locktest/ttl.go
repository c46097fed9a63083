package locktest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

func holdersTTL(t *testing.T, h Harness) {
	a, b := h.Provider(), h.Provider()
	r := h.request("a")
	r.TTL = 10 * h.ttl()
	g := acquire(t, a, r)
	short := h.request("b")
	short.TTL = h.MinTTL
	if h.Date != nil {
		h.Date(t, g, -5*h.ttl())
	} else {
		pause(t, 2*h.MinTTL)
	}
	_ = refuse(t, b, short)
	if got := renew(t, a, g); got[0] != lock.Renewed {
		t.Errorf("renewal: %v", got[0])
	}
	release(t, a, g)
}

func extended(t *testing.T, h Harness) {
	a, b := h.Provider(), h.Provider()
	extender := a.Capabilities().Extender
	g := acquire(t, a, h.request("a"))
	extend := func(ttl time.Duration) {
		t.Helper()
		if err := extender.Extend(t.Context(), g, ttl); err != nil {
			t.Fatalf("extend: %v", err)
		}
		g.TTL = ttl
	}
	extend(10 * h.ttl())
	if h.Date != nil {
		h.Date(t, g, -5*h.ttl())
	}
	_ = refuse(t, b, h.request("b"))
	extend(h.MinTTL)
	h.expire(t, g)
	fresh := acquire(t, b, h.request("b"))
	if err := extender.Extend(t.Context(), g, h.ttl()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("extension of a lease that another has taken: %v, want ErrLost", err)
	}
	release(t, b, fresh)
}

func otherMode(t *testing.T, h Harness) {
	r, p := h.request("a"), h.Provider()
	lacking := []lock.Mode{"no such mode"}
	if !p.Capabilities().Modes {
		lacking = append(lacking, lock.Shared, lock.Intent, lock.IntentExclusive)
	}
	for _, r.Mode = range lacking {
		if _, err := p.Acquire(t.Context(), r); !errors.Is(err, lock.ErrUnsupported) {
			t.Errorf("mode %s: error %v, want ErrUnsupported", r.Mode, err)
		}
	}
	r.Mode = lock.Exclusive
	acquire(t, h.Provider(), r)
}

func longKey(t *testing.T, h Harness) {
	p := h.Provider()
	long := func(end string) lock.Request {
		r := h.request("a")
		r.Key = strings.Repeat("long:", 100) + end
		return r
	}
	a, b := acquire(t, p, long("a")), acquire(t, p, long("b"))
	if err := refuse(t, h.Provider(), long("a")); !strings.Contains(err.Error(), long("a").Key) {
		t.Errorf("the refusal does not name the key: %v", err)
	}
	if got := renew(t, p, a, b); got[0] != lock.Renewed || got[1] != lock.Renewed {
		t.Errorf("renewals %v", got)
	}
	release(t, p, a)
	release(t, p, b)
}

package locktest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// need skips a story that needs what the provider lacks, by the names of
// [lock.Capabilities.List].
func (h Harness) need(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		c := h.Provider().Capabilities()
		list := c.List()
		i := slices.IndexFunc(list, func(have lock.Capability) bool { return have.Name == name })
		if i < 0 {
			t.Fatalf("no capability is called %s", name)
		}
		if list[i].Has == "no" {
			t.Skipf("%s lacks: %s", c.Name, name)
		}
	}
}

// goesTogether holds what the provider says against itself.
func goesTogether(t *testing.T, h Harness) {
	c := h.Provider().Capabilities()
	if c.Name == "" {
		t.Error("the provider has no name")
	}
	if c.Stealer != nil && c.Finder == nil {
		t.Error("locks can be stolen that cannot be found")
	}
	if c.MinTTL < 0 || c.MostAttempts < 0 {
		t.Errorf("least TTL %s, attempts %d: less than 0", c.MinTTL, c.MostAttempts)
	}
	if c.RenewEvery == nil {
		return
	}
	for _, ttl := range []time.Duration{max(c.MinTTL, 1), h.MinTTL, time.Minute, 24 * time.Hour} {
		if pace := c.RenewEvery(ttl); pace < 0 || pace > ttl/2 {
			t.Errorf("a lease of %s is renewed after %s: there must be time for another try", ttl, pace)
		}
	}
}

// atATime makes so many attempts that one more would wait, or some where any number may be
// made.
func atATime(t *testing.T, h Harness) {
	p := h.Provider()
	n := p.Capabilities().MostAttempts
	if n == 0 {
		n = 8
	}
	var attempts sync.WaitGroup
	for i := range n {
		attempts.Go(func() {
			r := h.request("a")
			r.Key = fmt.Sprintf("key-%d", i)
			if _, err := p.Acquire(t.Context(), r); err != nil {
				t.Errorf("one of %d attempts: %v", n, err)
			}
		})
	}
	attempts.Wait()
}

// guarded has transactions that depend on a lease which lives, and on one which has ended.
func guarded(t *testing.T, h Harness) {
	a, b := h.Provider(), h.Provider()
	changed := func(g lock.Grant, want int64) {
		t.Helper()
		statement, args := a.Capabilities().Guard.GuardSQL(g)
		if n := h.Guarded(t, statement, args); n != want {
			t.Errorf("the guard of fence %d has changed %d rows, want %d", g.Fence, n, want)
		}
	}
	first := acquire(t, a, h.expiring("a"))
	changed(first, 1)
	h.expire(t, first)
	changed(first, 0)
	second := acquire(t, b, h.request("b"))
	changed(first, 0)
	changed(second, 1)
	release(t, b, second)
	changed(second, 0)
}

package contend_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/githubtest"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/redistest"
	"github.com/observerd/observerd/test/kit/waittest"
)

var writers = []string{"a", "b", "c"}

// fault disturbs the processes or their server, and heals it again.
type fault func(t *testing.T)

// TestFencesOfThreeProcesses lets three processes write under locks, of which the one that
// has a lock sleeps through its TTL, dies, or is cut off from Redis, and Redis itself stands
// still. Nobody is refused who may trust its lease, and no write is lost.
func TestFencesOfThreeProcesses(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	between := netfault.Start(t, s.Address())
	r := newResource(t)
	c := start(t, r.URL, []string{envURL + "=redis://" + between.Addr()}, writers...)
	faults := lossless(r, c, s, between)
	for i, disturb := range faults {
		disturb(t)
		r.goesOn(t, i, len(writers))
	}
	r.held(t)
	r.trusted(t)
}

// TestFencesOfIssues does that with locks of issues on GitHub.
func TestFencesOfIssues(t *testing.T) {
	t.Parallel()
	s := githubtest.Start(t)
	for _, order := range []string{"one", "two"} {
		s.Issue(order)
	}
	between := netfault.Start(t, strings.TrimPrefix(s.URL(), "http://"))
	r := newResource(t)
	c := start(t, r.URL, []string{envURL + "=http://" + between.Addr(), envToken + "=" + s.Token("bot", githubtest.Push)}, writers...)
	faults := reachable(r, c, between)
	for i, disturb := range faults {
		disturb(t)
		r.goesOn(t, i, len(writers))
	}
	r.held(t)
	r.trusted(t)
}

// lossless are the faults after which Redis knows all locks.
func lossless(r *resource, c *crew, s *redistest.Server, between *netfault.Proxy) []fault {
	return append(reachable(r, c, between),
		func(t *testing.T) {
			resume := s.Pause(t)
			short()
			resume()
		},
		func(t *testing.T) { s.Must(t, "SCRIPT FLUSH") },
	)
}

// short is a time that may be longer than a TTL, or not.
func short() { time.Sleep(writerTTL/2 + rand.N(writerTTL)) }

// reachable are faults of the processes, and of the network between them and the server.
func reachable(r *resource, c *crew, between *netfault.Proxy) []fault {
	return []fault{
		func(t *testing.T) { r.sleepsThrough(t, c) },
		func(*testing.T) {
			victim := writers[rand.IntN(len(writers))]
			c.end(victim, syscall.SIGKILL)
			c.launch(victim)
		},
		func(*testing.T) {
			between.SetImpairment(netfault.BlackHole())
			short()
			between.SetImpairment(netfault.Impairment{})
		},
		func(*testing.T) { between.Reset() },
		func(*testing.T) {
			between.SetImpairment(netfault.Impairment{Down: netfault.Lost})
			short()
			between.SetImpairment(netfault.Impairment{})
		},
	}
}

// sleepsThrough suspends the next one who reads until another has its lock.
func (r *resource) sleepsThrough(t *testing.T, c *crew) {
	t.Helper()
	woken := make(chan struct{})
	r.mu.Lock()
	before := r.refused
	r.asleep = func(writer string) func() {
		wake := c.suspend(writer)
		return func() {
			wake()
			close(woken)
		}
	}
	r.mu.Unlock()
	<-woken
	waittest.Eventually(t, time.Minute, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.refused == before {
			return fmt.Errorf("one who slept through its TTL was not refused")
		}
		return nil
	})
}

// goesOn waits until all writers have written after a fault.
func (r *resource) goesOn(t *testing.T, after, writers int) {
	t.Helper()
	healed := time.Now()
	waittest.Eventually(t, time.Minute, func() error {
		if n := r.wroteSince(healed); n < writers {
			return fmt.Errorf("%d of %d writers have written after fault %d", n, writers, after)
		}
		return nil
	})
}

// held fails the test if a write was lost, or a fence given twice.
func (r *resource) held(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.faults {
		t.Error(f)
	}
	for key, c := range r.counters {
		t.Logf("%s: %d writes", key, c.value)
	}
	t.Logf("%d requests were refused, %d of those who trusted their leases", r.refused, len(r.trusting))
}

// trusted fails the test if one was refused who trusted its lease, as where Redis has lost it.
func (r *resource) trusted(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, refused := range r.trusting {
		t.Error(refused)
	}
}

//go:build nightly

package contend_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/redistest"
	"github.com/observerd/observerd/test/kit/testbed"
)

// TestTorture disturbs for minutes what TestFencesOfThreeProcesses disturbs once.
func TestTorture(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	between := netfault.Start(t, s.Address())
	r := newResource(t)
	c := start(t, r.URL, []string{envURL + "=redis://" + between.Addr()}, writers...)
	faults := lossless(r, c, s, between)
	for end, n := time.Now().Add(5*time.Minute), 0; time.Now().Before(end); n++ {
		i := rand.IntN(len(faults))
		faults[i](t)
		r.goesOn(t, i, len(writers))
	}
	r.held(t)
	r.trusted(t)
}

// TestLossOfLocks has Redis lose its locks: it is emptied, or killed and begins with nothing,
// while one with a lock sleeps now and then. Two may trust their leases then, and the resource
// refuses the earlier one: no write is lost.
func TestLossOfLocks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	r := newResource(t)
	c := start(t, r.URL, []string{envURL + "=" + s.URL()}, writers...)
	for n := range 30 {
		switch n % 3 {
		case 0:
			s.Must(t, "FLUSHALL")
		case 1:
			s.Kill(t)
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		case 2:
			r.sleepsThrough(t, c)
		}
		r.goesOn(t, n, len(writers))
	}
	r.held(t)
}

// TestFailover has sentinels promote a replica that does not know of a lock, again and again,
// sooner than its TTL is over: the same.
func TestFailover(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.Replica(t, master)
	servers := []*redistest.Server{master, replica}
	var nodes []string
	for _, s := range redistest.Sentinels(t, master, replica) {
		nodes = append(nodes, s.Address())
	}
	r := newResource(t)
	start(t, r.URL, []string{envURL + "=redis://" + nodes[0], envNodes + "=" + strings.Join(nodes[1:], ","), envMaster + "=" + redistest.Master, envTTL + "=10s"}, writers...)
	r.goesOn(t, -1, len(writers))
	for n := range 4 {
		old, next := servers[n%2], servers[(n+1)%2]
		next.Must(t, "REPLICAOF 127.0.0.1 1") // It hears no more of its master.
		time.Sleep(time.Second)               // No lock is held for so long.
		reads := make(chan struct{})
		r.mu.Lock()
		r.asleep = func(string) func() {
			close(reads)
			return func() {}
		}
		r.mu.Unlock()
		<-reads
		old.Kill(t)
		role(t, next, "master")
		r.goesOn(t, n, len(writers))
		if err := old.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		role(t, old, "slave")
	}
	r.held(t)
	if r.refused == 0 {
		t.Error("no failover has lost a lock, so this shows nothing")
	}
}

// role waits until the sentinels have made a server what it is to be.
func role(t *testing.T, s *redistest.Server, role string) {
	t.Helper()
	err := testbed.Until(t.Context(), time.Minute, func() error {
		return s.Says(t.Context(), "INFO replication", "role:"+role)
	})
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", s.Address(), err))
	}
}

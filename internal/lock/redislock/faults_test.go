package redislock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/redislock"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/redistest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func want(key string) lock.Request {
	return lock.Request{Key: key, Region: "r", TTL: time.Minute, Node: "a", Mode: lock.Exclusive}
}

func acquire(t *testing.T, p lock.Provider, r lock.Request) lock.Grant {
	t.Helper()
	g, err := p.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("acquire %s: %v", r.Key, err)
	}
	return g
}

func refused(t *testing.T, p lock.Provider, r lock.Request) {
	t.Helper()
	_ = holder(t, p, r)
}

// holder is who keeps the lock from being acquired.
func holder(t *testing.T, p lock.Provider, r lock.Request) *lock.HeldError {
	t.Helper()
	g, err := p.Acquire(t.Context(), r)
	held, ok := errors.AsType[*lock.HeldError](err)
	if !ok {
		t.Fatalf("acquire %s: grant %+v, error %v, want that it is held", r.Key, g, err)
	}
	return held
}

func release(t *testing.T, p lock.Provider, g lock.Grant) {
	t.Helper()
	if err := p.Release(t.Context(), g); err != nil {
		t.Fatalf("release %s: %v", g.Key, err)
	}
}

func renewal(t *testing.T, p lock.Provider, g lock.Grant, want lock.Renewal) {
	t.Helper()
	got, err := p.Renew(t.Context(), []lock.Grant{g})
	if err != nil || got[0] != want {
		t.Errorf("renewal of %s: %v, %v, want %v", g.Key, got, err, want)
	}
}

// fails checks that an attempt fails otherwise than by a holder, and says all of that.
func fails(t *testing.T, p lock.Provider, says ...string) {
	t.Helper()
	_ = failure(t, p, says...)
}

func failure(t *testing.T, p lock.Provider, says ...string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	g, err := p.Acquire(ctx, want("a"))
	if err == nil || errors.Is(err, lock.ErrHeld) {
		t.Fatalf("grant %+v, error %v", g, err)
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in the error %v", text, err)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the password is in the error %v", err)
	}
	return err
}

func TestKilledServerHasForgottenItsLocks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := open(t, redislock.Options{URL: s.URL()})
	before := acquire(t, p, want("a"))
	s.Kill(t)
	fails(t, p, "refused; does the server run, and are host and port right in url?")
	if got, err := p.Renew(t.Context(), []lock.Grant{before}); err == nil || slices.Contains(got, lock.Lost) || slices.Contains(got, lock.Renewed) {
		t.Errorf("renewal without a server: %v, %v", got, err)
	}
	if err := p.Release(t.Context(), before); err == nil || errors.Is(err, lock.ErrLost) {
		t.Errorf("release without a server: %v", err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	renewal(t, p, before, lock.Lost)
	if after := acquire(t, p, want("a")); after.Fence <= before.Fence {
		t.Errorf("fence %d after %d", after.Fence, before.Fence)
	}
}

func TestFlushedServerHasForgottenItsLocks(t *testing.T) {
	t.Parallel()
	url := database(t)
	p, c := open(t, redislock.Options{URL: url}), client(t, url)
	before := acquire(t, p, want("a"))
	if err := c.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	after := acquire(t, open(t, redislock.Options{URL: url}), want("a"))
	if after.Fence <= before.Fence || after.Recovered {
		t.Errorf("grant %+v after %+v", after, before)
	}
	renewal(t, p, before, lock.Lost)
	if err := p.Release(t.Context(), before); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v, want ErrLost", err)
	}
	renewal(t, p, after, lock.Renewed)
}

func TestPausedServerIsNoHolder(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := open(t, redislock.Options{URL: s.URL()})
	g := acquire(t, p, want("b"))
	resume := s.Pause(t)
	err := failure(t, p, "no answer in time", "are host and port right in url?")
	resume()
	if !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "timeout") {
		t.Errorf("error %v, want that the time was over", err)
	}
	renewal(t, p, g, lock.Renewed)
	release(t, p, acquire(t, p, want("c")))
}

func TestCallEndsWhenItsContextIsCanceled(t *testing.T) {
	t.Parallel()
	url, proxy := netfault.StartBefore(t, database(t))
	p := open(t, redislock.Options{URL: url})
	g := acquire(t, p, want("b"))
	for name, call := range map[string]func(context.Context) error{
		"acquire": func(ctx context.Context) error { _, err := p.Acquire(ctx, want("a")); return err },
		"renew":   func(ctx context.Context) error { _, err := p.Renew(ctx, []lock.Grant{g}); return err },
		"release": func(ctx context.Context) error { return p.Release(ctx, g) },
		"extend":  func(ctx context.Context) error { return p.Extend(ctx, g, g.TTL) },
		"find":    func(ctx context.Context) error { _, err := p.Find(ctx, lock.Query{Region: "r", Limit: 1}); return err },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		proxy.Inspect(func([]byte) netfault.Fault {
			cancel()
			return netfault.Fault{Hold: t.Context().Done()}
		})
		if err := call(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want that of the context", name, err)
		}
		proxy.Inspect(nil)
		proxy.Cut()
	}
}

// TestLateAcquisitionIsGivenBack has a request arrive after the release that was to undo it.
func TestLateAcquisitionIsGivenBack(t *testing.T) {
	t.Parallel()
	direct := database(t)
	url, proxy := netfault.StartBefore(t, direct)
	p, c := open(t, redislock.Options{URL: url}), client(t, direct)
	release(t, p, acquire(t, p, want("b"))) // Both scripts are known there.
	ctx, cancel := context.WithCancel(t.Context())
	hold := make(chan struct{})
	var held atomic.Bool
	proxy.Inspect(func(request []byte) netfault.Fault {
		if !bytes.Contains(request, []byte("r:a")) || held.Swap(true) {
			return netfault.Fault{}
		}
		cancel()
		return netfault.Fault{Hold: hold}
	})
	if _, err := p.Acquire(ctx, want("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	close(hold)
	waittest.Eventually(t, time.Minute, func() error {
		if c.Exists(t.Context(), "{r:a}:fence").Val() == 0 || c.Exists(t.Context(), "r:a").Val() == 1 {
			return errors.New("it has not come, or was not given back")
		}
		return nil
	})
}

// TestLostAnswer has the server do what its client does not hear of.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	direct := database(t)
	url, proxy := netfault.StartBefore(t, direct)
	p, c := open(t, redislock.Options{URL: url}), client(t, direct)
	release(t, p, acquire(t, p, want("a"))) // Both scripts are known there.
	once := func() {
		var lost atomic.Bool
		proxy.Inspect(func(request []byte) netfault.Fault {
			return netfault.Fault{LoseAnswer: bytes.Contains(request, []byte("r:a")) && !lost.Swap(true)}
		})
	}
	once()
	fails(t, p)
	if n := c.Exists(t.Context(), "r:a").Val(); n != 0 {
		t.Error("a lock that was not answered was not given back")
	}
	g := acquire(t, p, want("a"))
	once()
	if got, err := p.Renew(t.Context(), []lock.Grant{g}); err == nil || slices.Contains(got, lock.Lost) || slices.Contains(got, lock.Renewed) {
		t.Errorf("renewal that was not answered: %v, %v", got, err)
	}
	renewal(t, p, g, lock.Renewed)
	once()
	if err := p.Release(t.Context(), g); err == nil || errors.Is(err, lock.ErrLost) {
		t.Errorf("release that was not answered: %v, want no loss", err)
	}
	if got := proxy.Stats().AnswersLost; got != 3 {
		t.Errorf("%d answers were lost, want 3", got)
	}
}

func TestReplicaTakesNoLocks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	replica := redistest.Replica(t, s)
	fails(t, open(t, redislock.Options{URL: replica.URL()}), "READONLY", "name the master")
	if n := len(client(t, s.URL()).Keys(t.Context(), "*").Val()); n != 0 {
		t.Errorf("%d keys", n)
	}
}

func TestWrongPasswordIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--requirepass", "right")
	fails(t, open(t, redislock.Options{URL: s.URL()}), "unauthenticated", "password-file")
	fails(t, open(t, redislock.Options{URL: "redis://:secret1@" + s.Address()}), "WRONGPASS", "password-file")
	wrong := open(t, redislock.Options{URL: s.URL(), Password: "secret2"})
	fails(t, wrong, "WRONGPASS")
	for name, call := range map[string]func() error{
		"acquire": func() error { _, err := wrong.Acquire(t.Context(), want("a")); return err },
		"renew": func() error {
			_, err := wrong.Renew(t.Context(), []lock.Grant{{Request: want("a"), Term: "x"}})
			return err
		},
		"release": func() error { return wrong.Release(t.Context(), lock.Grant{Request: want("a"), Term: "x"}) },
		"list":    func() error { _, err := wrong.Find(t.Context(), lock.Query{Region: "r", Limit: 1}); return err },
		"find": func() error {
			_, err := wrong.Find(t.Context(), lock.Query{Region: "r", Key: "a", Limit: 1})
			return err
		},
	} {
		if err := call(); !errors.Is(err, lock.ErrRefused) || !strings.Contains(err.Error(), "check the URL and password-file") {
			t.Errorf("%s: error %v, want ErrRefused with what to correct", name, err)
		}
	}
	p := open(t, redislock.Options{URL: "redis://:secret1@" + s.Address(), Password: "right"})
	release(t, p, acquire(t, p, want("a")))
	for _, url := range []string{"redis://:secret%zz@host", "http://:secret@host", "redis://:secret@host/x"} {
		if _, err := redislock.Open(redislock.Options{URL: url}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("error %v", err)
		}
	}
}

func TestForgottenScriptsAreSentAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := open(t, redislock.Options{URL: s.URL()})
	forget := func() { s.Must(t, "SCRIPT FLUSH") }
	a, b := acquire(t, p, want("a")), acquire(t, p, want("b"))
	forget()
	if got, err := p.Renew(t.Context(), []lock.Grant{a, b}); err != nil || got[0] != lock.Renewed || got[1] != lock.Renewed {
		t.Errorf("renewal: %v, %v", got, err)
	}
	forget()
	if err := p.Extend(t.Context(), a, time.Hour); err != nil {
		t.Error(err)
	}
	forget()
	if found, err := p.Find(t.Context(), lock.Query{Region: "r", Limit: 9}); err != nil || len(found) != 2 {
		t.Errorf("found %v, %v", found, err)
	}
	forget()
	release(t, p, a)
	forget()
	release(t, p, acquire(t, p, want("c")))
}

// TestFullMemory has a server that accepts no new data: whoever has a lock keeps it.
func TestFullMemory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := open(t, redislock.Options{URL: s.URL()})
	reads := want("b")
	reads.Mode = lock.Shared
	alone, one, two := acquire(t, p, want("d")), acquire(t, p, reads), acquire(t, p, reads)
	later := acquire(t, p, want("c"))
	s.Must(t, "CONFIG SET maxmemory 1")
	fails(t, p, "OOM", "maxmemory")
	for _, g := range []lock.Grant{alone, one, two} {
		renewal(t, p, g, lock.Renewed)
	}
	if err := p.Extend(t.Context(), alone, time.Hour); err != nil {
		t.Error(err)
	}
	if err := p.ReleaseAfter(t.Context(), later, time.Hour); err != nil {
		t.Error(err)
	}
	for _, g := range []lock.Grant{alone, one, two} {
		release(t, p, g)
	}
	s.Must(t, "CONFIG SET maxmemory 0")
	if g := acquire(t, p, want("d")); g.Recovered {
		t.Error("a lock that was released counts as recovered")
	}
	refused(t, p, want("c"))
}

// TestClockThatWasSetBack has a last fence that is ahead of the clock.
func TestClockThatWasSetBack(t *testing.T) {
	t.Parallel()
	url := database(t)
	p, c := open(t, redislock.Options{URL: url}), client(t, url)
	ahead := time.Now().Add(4 * time.Minute).UnixMicro()
	if err := c.Set(t.Context(), "{r:a}:fence", fmt.Sprintf("%d held", ahead), time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	first := acquire(t, p, want("a"))
	if first.Fence != ahead+1 || !first.Recovered {
		t.Errorf("fence %d after %d, recovered %t", first.Fence, ahead, first.Recovered)
	}
	release(t, p, first)
	if second := acquire(t, p, want("a")); second.Fence != ahead+2 || second.Recovered {
		t.Errorf("fence %d after %d, recovered %t", second.Fence, first.Fence, second.Recovered)
	}
}

// TestFenceOutlivesItsLease looks at what is left of leases: nothing that stays for ever.
func TestFenceOutlivesItsLease(t *testing.T) {
	t.Parallel()
	url := database(t)
	p, c := open(t, redislock.Options{URL: url}), client(t, url)
	lasts := func(when string, least time.Duration) {
		t.Helper()
		if left := c.PTTL(t.Context(), "{r:a}:fence").Val(); left < least-time.Minute || left > least+6*time.Minute {
			t.Errorf("%s the fence lasts for %s", when, left)
		}
	}
	g := acquire(t, p, want("a"))
	lasts("after the acquisition", 5*time.Minute)
	if err := p.Extend(t.Context(), g, time.Hour); err != nil {
		t.Fatal(err)
	}
	lasts("after an extension", time.Hour+5*time.Minute)
	g.TTL = time.Minute
	renewal(t, p, g, lock.Renewed)
	lasts("after a renewal", 5*time.Minute)
	release(t, p, g)
	lasts("after the release", 5*time.Minute)
}

// TestRemovedKeyEndsTheLeasesOfAll has a person, or an eviction, remove the key of a lock that
// is shared.
func TestRemovedKeyEndsTheLeasesOfAll(t *testing.T) {
	t.Parallel()
	url := database(t)
	p, c := open(t, redislock.Options{URL: url}), client(t, url)
	reads := want("a")
	reads.Mode = lock.Shared
	before := acquire(t, p, reads)
	if err := c.Del(t.Context(), "r:a").Err(); err != nil {
		t.Fatal(err)
	}
	release(t, p, acquire(t, p, want("a"))) // Another has had it for itself meanwhile.
	after := acquire(t, p, reads)
	renewal(t, p, before, lock.Lost)
	if err := p.Release(t.Context(), before); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v, want ErrLost", err)
	}
	renewal(t, p, after, lock.Renewed)
}

func TestKeyOfAnotherProgram(t *testing.T) {
	t.Parallel()
	url := database(t)
	if err := client(t, url).HSet(t.Context(), "r:a", "redisson", "1").Err(); err != nil {
		t.Fatal(err)
	}
	p := open(t, redislock.Options{URL: url})
	fails(t, p, "WRONGTYPE", "region")
	if found, err := p.Find(t.Context(), lock.Query{Region: "r", Limit: 9}); err != nil || len(found) != 0 {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := s.URL()
	reg := prometheus.NewPedanticRegistry()
	p := open(t, redislock.Options{URL: url, Registerer: reg})
	open(t, redislock.Options{URL: url, Registerer: reg}) // A second one has the same metric.
	g := acquire(t, p, want("a"))
	refused(t, p, want("a"))
	if _, err := p.Renew(t.Context(), []lock.Grant{g, g}); err != nil {
		t.Fatal(err)
	}
	release(t, p, g)
	s.Must(t, "CONFIG SET maxmemory 1")
	fails(t, p)
	// Each of the scripts was new there; and there is the start of the connection.
	expect := `
# HELP observerd_locks_provider_requests_total Requests to the servers of a lock provider by how they ended: ok, the code of an error, or why there was no answer.
# TYPE observerd_locks_provider_requests_total counter
observerd_locks_provider_requests_total{code="noscript",provider="redis"} 3
observerd_locks_provider_requests_total{code="ok",provider="redis"} 5
observerd_locks_provider_requests_total{code="oom",provider="redis"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(expect)); err != nil {
		t.Error(err)
	}
	s.Kill(t)
	reg = prometheus.NewPedanticRegistry()
	fails(t, open(t, redislock.Options{URL: url, Registerer: reg}))
	expect = `
# HELP observerd_locks_provider_requests_total Requests to the servers of a lock provider by how they ended: ok, the code of an error, or why there was no answer.
# TYPE observerd_locks_provider_requests_total counter
observerd_locks_provider_requests_total{code="network",provider="redis"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(expect)); err != nil {
		t.Error(err)
	}
	if _, err := redislock.Open(redislock.Options{URL: url, Registerer: taken(t)}); err == nil {
		t.Error("a metric of that name that is another one is no error")
	}
}

// taken has another metric of that name.
func taken(t *testing.T) prometheus.Registerer {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "observerd_locks_provider_requests_total"}))
	return reg
}

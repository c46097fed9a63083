package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
)

var errDown = errors.New("database is down")

// provider is a locktest.Memory whose renewals a test can slow down, answer
// for, and count.
type provider struct {
	locktest.Memory
	mu    sync.Mutex
	sizes []int
	// renew stands in for a renewal; nil is the Memory's.
	renew   func(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error)
	metrics *prometheus.Registry
	// answer delays the answer to an acquisition.
	answer time.Duration
	// extend stands in for an extension; nil is the Memory's.
	extend func() error
	// release stands in for a release; nil is the Memory's.
	release func(ctx context.Context) error
	// renewEvery is set before the keeper is made.
	renewEvery time.Duration
}

func (p *provider) Capabilities() lock.Capabilities {
	c := p.Memory.Capabilities()
	c.Extender = p
	if p.renewEvery > 0 {
		c.RenewEvery = func(time.Duration) time.Duration { return p.renewEvery }
	}
	return c
}

func (p *provider) Release(ctx context.Context, g lock.Grant) error {
	if p.release != nil {
		return p.release(ctx)
	}
	return p.Memory.Release(ctx, g)
}

func (p *provider) Extend(ctx context.Context, g lock.Grant, d time.Duration) error {
	if p.extend != nil {
		return p.extend()
	}
	return p.Memory.Extend(ctx, g, d)
}

func (p *provider) Acquire(ctx context.Context, r lock.Request) (lock.Grant, error) {
	g, err := p.Memory.Acquire(ctx, r)
	time.Sleep(p.answer)
	return g, err
}

func (p *provider) Renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
	p.mu.Lock()
	p.sizes = append(p.sizes, len(grants))
	renew := p.renew
	p.mu.Unlock()
	if renew != nil {
		return renew(ctx, grants)
	}
	return p.Memory.Renew(ctx, grants)
}

func (p *provider) answerWith(renew func(context.Context, []lock.Grant) ([]lock.Renewal, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.renew = renew
}

func (p *provider) calls() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]int(nil), p.sizes...)
}

// ttl gives a trust of 58 s after each attempt, and a renewal every 20 s.
const ttl = time.Minute

const trust = ttl - 2*time.Second

func want(key string) lock.Request {
	return lock.Request{Key: key, Region: "DEFAULT", TTL: ttl, Node: "a"}
}

// bubble runs a story with a keeper in fake time and closes the keeper.
func bubble(t *testing.T, story func(t *testing.T, p *provider, k *lock.Keeper)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &provider{metrics: prometheus.NewRegistry()}
		k := lock.NewKeeper(lock.KeeperOptions{Provider: p, Registerer: p.metrics})
		story(t, p, k)
		if err := k.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

func acquire(t *testing.T, k *lock.Keeper, r lock.Request) *lock.Lease {
	t.Helper()
	l, err := k.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return l
}

func release(t *testing.T, l *lock.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

// lostAfter waits for the end of the lease's context and returns when it came.
func lostAfter(t *testing.T, l *lock.Lease) time.Duration {
	t.Helper()
	<-l.Context().Done()
	if cause := context.Cause(l.Context()); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("lease ended because of %v, want ErrLost", cause)
	}
	return time.Since(l.Grant().Began)
}

// lost returns how many leases were counted as lost.
func (p *provider) lost(t *testing.T) float64 {
	t.Helper()
	families, err := p.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "observerd_leases_lost_total" {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatal("losses are not counted")
	return 0
}

func alive(t *testing.T, l *lock.Lease) {
	t.Helper()
	synctest.Wait()
	if l.Context().Err() != nil {
		t.Fatalf("lease ended after %s: %v", time.Since(l.Grant().Began), context.Cause(l.Context()))
	}
}

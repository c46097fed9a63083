//go:build nightly

package redislock_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/internal/lock/redislock"
	"github.com/observerd/observerd/test/kit/netfault"
	"github.com/observerd/observerd/test/kit/redistest"
	"github.com/observerd/observerd/test/kit/waittest"
)

// TestContractInACluster gives each story a tag, so that its sets are of one slot, and its
// locks no other's.
func TestContractInACluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	c := clusterClient(t, nodes)
	var stories atomic.Int64
	locktest.Run(t, func(t *testing.T) locktest.Harness {
		tag := fmt.Sprintf("{%d}", stories.Add(1))
		return harnessOf(func() lock.Provider {
			return tagged{open(t, redislock.Options{URL: nodes[0].URL(), Cluster: true}), tag}
		}, c, tag)
	})
}

// tagged is a provider whose regions have a tag that its callers do not know.
type tagged struct {
	*redislock.Provider
	tag string
}

func (p tagged) request(r lock.Request) lock.Request {
	r.Region = p.tag + r.Region
	return r
}

func (p tagged) grant(g lock.Grant) lock.Grant {
	g.Request = p.request(g.Request)
	return g
}

func (p tagged) Capabilities() lock.Capabilities {
	c := p.Provider.Capabilities()
	c.Sets, c.Extender, c.Finder, c.Stealer, c.Delayer, c.Notify = p, p, p, p, p, nil
	return c
}

func (p tagged) Acquire(ctx context.Context, r lock.Request) (lock.Grant, error) {
	g, err := p.Provider.Acquire(ctx, p.request(r))
	g.Region = r.Region
	return g, err
}

func (p tagged) AcquireAll(ctx context.Context, requests []lock.Request) ([]lock.Grant, error) {
	all := make([]lock.Request, len(requests))
	for i, r := range requests {
		all[i] = p.request(r)
	}
	grants, err := p.Provider.AcquireAll(ctx, all)
	for i := range grants {
		grants[i].Region = requests[i].Region
	}
	return grants, err
}

func (p tagged) Renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
	all := make([]lock.Grant, len(grants))
	for i, g := range grants {
		all[i] = p.grant(g)
	}
	return p.Provider.Renew(ctx, all)
}

func (p tagged) Release(ctx context.Context, g lock.Grant) error {
	return p.Provider.Release(ctx, p.grant(g))
}

func (p tagged) ReleaseAfter(ctx context.Context, g lock.Grant, after time.Duration) error {
	return p.Provider.ReleaseAfter(ctx, p.grant(g), after)
}

func (p tagged) Extend(ctx context.Context, g lock.Grant, ttl time.Duration) error {
	return p.Provider.Extend(ctx, p.grant(g), ttl)
}

func (p tagged) Steal(ctx context.Context, r lock.Request, seen lock.Held, by lock.By) (lock.Grant, error) {
	g, err := p.Provider.Steal(ctx, p.request(r), seen, by)
	g.Region = r.Region
	return g, err
}

func (p tagged) Find(ctx context.Context, q lock.Query) ([]lock.Held, error) {
	region := q.Region
	q.Region = p.tag + region
	found, err := p.Provider.Find(ctx, q)
	for i := range found {
		found[i].Region = region
	}
	return found, err
}

// TestPromotedReplicaMayLackALock shows what the documentation says: a replica that lags and
// is promoted knows nothing of the last locks, and another gets them while their holders trust
// their leases. The fence tells the two apart.
func TestPromotedReplicaMayLackALock(t *testing.T) {
	t.Parallel()
	master, replica := redistest.Start(t), redistest.Start(t)
	between := netfault.Start(t, master.Address())
	replica.Must(t, "REPLICAOF "+strings.ReplaceAll(between.Addr(), ":", " "))
	p := open(t, redislock.Options{URL: master.URL()})
	known := acquire(t, p, want("known"))
	standby := client(t, replica.URL())
	waittest.Eventually(t, time.Minute, func() error { return standby.Get(t.Context(), "r:known").Err() })

	between.SetImpairment(netfault.BlackHole())
	first := acquire(t, p, want("a"))
	master.Kill(t)
	replica.Must(t, "REPLICAOF NO ONE")
	promoted := open(t, redislock.Options{URL: replica.URL()})
	second := acquire(t, promoted, want("a"))
	if second.Fence <= first.Fence || second.Recovered {
		t.Errorf("grant %+v after %+v", second, first)
	}
	renewal(t, promoted, first, lock.Lost)
	renewal(t, promoted, known, lock.Renewed)
	refused(t, promoted, want("known"))
}

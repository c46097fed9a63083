// Package kubelease keeps locks in Leases of Kubernetes (coordination.k8s.io/v1): one Lease for a
// lock. The algorithm is that of package record.
//
// A lock that is free is no Lease at all, so an acquisition is a create, and a release is a delete
// that names the version which it deletes. A Lease that another program has written is that of a
// holder whose term is its identity; one without a holder is free.
//
// Fences are resource versions, which etcd numbers over all of its writes. A restore of etcd sets
// them back.
package kubelease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/record"
)

const (
	// minTTL is the least that a Lease can say.
	minTTL = time.Second
	// DefaultPrefix begins the names of Leases that have a hash.
	DefaultPrefix = "observerd-lock-"
	// The TTLs for which a Lease is made: each renewal of a shorter one is a write to etcd for all
	// of the cluster, and a longer one keeps others out for as long after its holder's death.
	leastTTL = 10 * time.Second
	mostTTL  = time.Minute
)

// Names are the ways in which Leases are named.
type Names string

// The ways. Of the last two, keys that differ can have one name, and are one lock then.
const (
	// Hashed is the prefix, the key as far as a name can have it, and a hash of region and
	// key. It is the default.
	Hashed Names = "hashed"
	// Plain is the prefix and the parts of the key, with "-" in the place of what a name
	// cannot have: node-worker-1 for the worker-1 of the subject node.
	Plain Names = "plain"
	// SHA256 is the prefix and the first 8 bytes of the SHA-256 of the parts of the key,
	// joined by "/", in hexadecimal digits.
	SHA256 Names = "sha256"
)

// Options configure a provider.
type Options struct {
	// Namespace is that of the Leases. Empty means that of the pod, or of the kubeconfig's
	// context.
	Namespace string
	// Kubeconfig is a file. Empty means the service account of the pod.
	Kubeconfig string
	// Context is that of the kubeconfig. Empty means its current one.
	Context string
	// Prefix begins the names. Empty means [DefaultPrefix], and none unless they are hashed.
	Prefix string
	// Names is how Leases are named. Empty means [Hashed].
	Names Names
	// Clear lets a release leave the Lease without a holder, for programs that expect it to
	// be there. By default it is deleted.
	Clear bool
	// Logger receives what a person should know; nil discards it.
	Logger *slog.Logger
}

// Provider keeps locks in Leases. It is safe for concurrent use.
type Provider struct {
	*record.Provider
	leases *leases
	logger *slog.Logger
	odd    sync.Once // for the warning
}

// Open returns a provider. It connects when it is used. The error is of the options, of the
// kubeconfig, or of a service account that is not there.
func Open(o Options) (*Provider, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	l, err := newLeases(o)
	if err != nil {
		return nil, err
	}
	p := &Provider{leases: l, logger: o.Logger}
	c := Capabilities()
	c.Sweep = p.sweep
	p.Provider = record.New(record.Options{Records: l, Numbered: true, Capabilities: c})
	return p, nil
}

// Capabilities are those of a provider, for people: none is opened.
func Capabilities() lock.Capabilities {
	var none *record.Provider
	return lock.Capabilities{
		Name: "kubernetes", MinTTL: minTTL, Extender: none, Finder: none, Stealer: none,
		Sweep: func(context.Context, string, time.Time) (int, error) { return 0, lock.ErrUnsupported },
	}
}

// Acquire implements [lock.Provider].
func (p *Provider) Acquire(ctx context.Context, r lock.Request) (lock.Grant, error) {
	if r.TTL < leastTTL || r.TTL > mostTTL {
		p.odd.Do(func() {
			p.logger.Warn("A lock in a Lease should have a TTL from 10s to 1m: a shorter one is a write to etcd every few seconds, a longer one outlives its holder", "lock", r.Key, "ttl", r.TTL)
		})
	}
	return p.Provider.Acquire(ctx, r)
}

// sweep deletes Leases that were not renewed since that time. The clocks of their holders are not
// believed: one that is written while this process watches for as long as it lasts stays.
func (p *Provider) sweep(ctx context.Context, region string, before time.Time) (removed int, err error) {
	old, longest := make(map[string]record.Record), time.Duration(0)
	all, err := p.leases.List(ctx, region)
	for _, r := range all {
		if r.RenewedAt.Add(r.TTL).Before(before) {
			old[r.Version] = r
			longest = max(longest, r.TTL)
		}
	}
	if err != nil || len(old) == 0 {
		return 0, err
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < longest {
		return 0, fmt.Errorf("%d Leases are watched for %s first, and there is less time than that; allow for more", len(old), longest)
	}
	select {
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-time.After(longest):
	}
	for _, r := range old {
		switch failed := p.leases.remove(ctx, r); {
		case failed == nil:
			removed++
		case !errors.Is(failed, record.ErrConflict):
			err = cmp.Or(err, failed)
		}
	}
	return removed, err
}

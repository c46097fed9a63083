package kubelease

import (
	"context"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/observerd/observerd/internal/lock/record"
)

// Settings are those of the kind.
type Settings = settings

// Records are the Leases, past the provider.
func (p *Provider) Records() record.Records { return p.leases }

// Namespace is that of the Leases.
func (p *Provider) Namespace() string { return p.leases.Namespace }

// NameOf is the name of a lock's Lease.
func (o Options) NameOf(region, key string) (string, error) { return o.nameOf(region, key) }

// Edit writes a Lease as another program does, which reads it first.
func (p *Provider) Edit(ctx context.Context, name string, edit func(*coordination.Lease)) error {
	l, verb := coordination.Lease{}, p.leases.client.Put().Name(name)
	if err := p.leases.on(p.leases.client.Get()).Name(name).Do(ctx).Into(&l); apierrors.IsNotFound(err) {
		l, verb = coordination.Lease{}, p.leases.client.Post()
	} else if err != nil {
		return err
	}
	l.Name, l.Namespace = name, p.leases.Namespace
	edit(&l)
	return p.leases.on(verb).Body(&l).Do(ctx).Error()
}

// Names are those of all Leases of the namespace.
func (p *Provider) Names(ctx context.Context) (names []string, err error) {
	var l coordination.LeaseList
	err = p.leases.on(p.leases.client.Get()).Do(ctx).Into(&l)
	for _, lease := range l.Items {
		names = append(names, lease.Name)
	}
	return names, err
}

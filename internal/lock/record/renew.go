package record

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/observerd/observerd/internal/lock"
)

// inFlight bounds the renewals that one call makes at a time.
const inFlight = 16

// Renew implements [lock.Provider]. The error is the first of a lease for which the store has
// not answered.
func (p *Provider) Renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
	renewals := make([]lock.Renewal, len(grants))
	var work errgroup.Group
	work.SetLimit(inFlight)
	for i, g := range grants {
		work.Go(func() error {
			err := p.renew(ctx, g)
			switch {
			case err == nil:
				renewals[i] = lock.Renewed
			case errors.Is(err, lock.ErrLost):
				renewals[i], err = lock.Lost, nil
			}
			return err
		})
	}
	return renewals, work.Wait()
}

// renew lets the lease run for its TTL again.
func (p *Provider) renew(ctx context.Context, g lock.Grant) error {
	if p.opts.Beats == nil {
		return p.again(ctx, "renew", g, g.TTL)
	}
	if err := p.beat(ctx, g); err != nil {
		return fmt.Errorf("renew lock %s: %w", g.Key, err)
	}
	return nil
}

// keeps returns an error that is [lock.ErrLost] where others may have seen the end of the
// grant's lease, or another write than that of the grant has made the record.
func (r Record) keeps(g lock.Grant) error {
	if r.Term != g.Term || r.left() <= 0 || r.fence() != g.Fence {
		return lock.ErrLost
	}
	return nil
}

// Extend implements [lock.Extender].
func (p *Provider) Extend(ctx context.Context, g lock.Grant, ttl time.Duration) error {
	return p.again(ctx, "extend", g, ttl)
}

// again lets the lease run for ttl from now.
func (p *Provider) again(ctx context.Context, what string, g lock.Grant, ttl time.Duration) error {
	return p.change(ctx, what, g, func(r Record) (Record, error) {
		err := r.keeps(g)
		r.Fence, r.TTL, r.RenewedAt = g.Fence, ttl, time.Now()
		return r, err
	})
}

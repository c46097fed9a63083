package lock

import (
	"context"
	"fmt"
	"time"
)

// Delayer ends a lease, and keeps its lock for some time.
type Delayer interface {
	// ReleaseAfter ends the lease at once, as Release does, and frees the lock that long
	// from now. Until then it has no holder: nobody can renew or release it. It returns an
	// error that is [ErrLost] when the term does not hold the lock any more.
	ReleaseAfter(ctx context.Context, g Grant, after time.Duration) error
}

// shortestDelay is what providers can tell from nothing.
const shortestDelay = time.Millisecond

// HoldAtLeast lets a release free the lock no sooner than that long after its acquisition
// began. The provider must have a [Delayer].
func (l *Lease) HoldAtLeast(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.atLeast = d
}

// giveBack releases the lock, now or when it was held for long enough.
func (l *Lease) giveBack(ctx context.Context) error {
	l.mu.Lock()
	g, left := l.grant, time.Until(l.grant.Began.Add(l.atLeast))
	l.mu.Unlock()
	if left < shortestDelay {
		return l.keeper.provider.Release(ctx, g)
	}
	delayer := l.keeper.can.Delayer
	if delayer == nil {
		return fmt.Errorf("release lock %s in %s: %w", g.Key, left, ErrUnsupported)
	}
	return delayer.ReleaseAfter(ctx, g, left)
}

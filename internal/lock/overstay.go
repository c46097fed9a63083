package lock

import (
	"context"
	"fmt"
	"time"
)

// ErrHeldTooLong reports that a lease has ended because it was held for as long as it may
// be. It is an [ErrLost].
var ErrHeldTooLong = fmt.Errorf("%w: it was held for its max-hold", ErrLost)

// EndAfter ends the lease that long after its acquisition began, with the cause
// [ErrHeldTooLong], unless it ends sooner. It is not renewed then; the provider keeps it
// until it is released, or its TTL is over. Call it once at most.
func (l *Lease) EndAfter(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		l.limit = time.AfterFunc(time.Until(l.grant.Began.Add(d)), l.Overstay)
	}
}

// Overstay ends the lease now, as [Lease.EndAfter] does.
func (l *Lease) Overstay() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		_ = l.endLocked(ErrHeldTooLong)
		l.keeper.lost(l, "held for its max-hold")
	}
}

// StopRenewal lets the lease be renewed no more, for its context has ended: whoever worked
// under it has the time to stop that is left of its TTL, or until the release. A lease that has
// ended stays as it is.
func (l *Lease) StopRenewal() { _ = l.end(context.Canceled) }

// Delayer ends a lease, and keeps its lock for some time.
type Delayer interface {
	// ReleaseAfter ends the lease at once, as Release does, and frees the lock that long
	// from now. Until then a term that nobody has holds it, by which an operator who finds it
	// can release it. It returns an error that is [ErrLost] when the term does not hold the
	// lock any more.
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

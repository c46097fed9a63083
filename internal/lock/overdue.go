package lock

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/wait"
)

const (
	// overduePause is how often a lease is renewed whose renewal is waited for.
	overduePause = 100 * time.Millisecond
	// longestOverdue bounds the wait for a renewal.
	longestOverdue = 5 * time.Second
)

// AwaitRenewals waits while one of the leases has not been renewed for more than half of its
// TTL, for a sixth of the shortest TTL at most, and 5 s. Meanwhile they are renewed again and
// again. A transaction that is guarded by a lease keeps it from being renewed, and several
// could do so without a pause. Call it before each of them. The error is ctx's cause when ctx
// has ended.
func AwaitRenewals(ctx context.Context, leases []*Lease) error {
	limit := longestOverdue
	for _, l := range leases {
		limit = min(limit, l.TTL()/6)
	}
	for end := time.Now().Add(limit); time.Now().Before(end); {
		late := false
		for _, l := range leases {
			late = l.dueIfOverdue() || late
		}
		if !late {
			return nil
		}
		if !wait.For(ctx, min(overduePause, time.Until(end))) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// RenewNow lets the lease be renewed at once, and does not wait for it. One that has ended
// learns of it so.
func (l *Lease) RenewNow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		l.due = time.Now()
		l.keeper.wakeLoop()
	}
}

// dueIfOverdue reports whether more than half of the TTL is over since the last renewal
// began, and lets the lease be renewed at once then.
func (l *Lease) dueIfOverdue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, renewed := time.Now(), l.trusted.Add(-trust(l.lives))
	if l.ended != nil || now.Sub(renewed) <= l.lives/2 {
		return false
	}
	if l.due.After(now) {
		l.due = now
		l.keeper.wakeLoop()
	}
	return true
}

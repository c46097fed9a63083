package lock

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/wait"
)

// AwaitRenewal waits while the lease has not been renewed for more than half of its TTL,
// for a sixth of the TTL at most, in which it is tried twice. A transaction that is guarded
// by the lease keeps it from being renewed, and several could do so without a pause. Call it
// before each of them. The error is ctx's cause when ctx has ended.
func (l *Lease) AwaitRenewal(ctx context.Context) error {
	end := time.Now().Add(l.TTL() / 6)
	for l.overdue() && time.Now().Before(end) {
		if !wait.For(ctx, renewalPause) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// overdue reports whether more than half of the TTL is over since the last renewal began.
func (l *Lease) overdue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	renewed := l.trusted.Add(-trust(l.lives))
	return l.ended == nil && time.Since(renewed) > l.lives/2
}

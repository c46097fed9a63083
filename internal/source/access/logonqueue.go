package access

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxFlight is how long a logon is waited for: longer than any source waits
	// for its database, so one that hangs ends itself before. A database may take
	// its time to say that a password is wrong, so no second one is tried
	// meanwhile, though the account was accepted until now.
	maxFlight = 15 * time.Second
	// provenFlight is how long a logon of an account that was accepted before is
	// waited for when nobody waits for it any more: most likely it has ended, and
	// nobody can say how.
	provenFlight = 2 * time.Second
)

// call is one call of a source. It tells the logons of that call from those of
// others: a source gives the context of the call to its gate.
type call struct{ ended atomic.Bool }

type callKey struct{}

// asCall returns a context whose logons are of the call that is returned.
func asCall(ctx context.Context) (context.Context, *call) {
	c := new(call)
	return context.WithValue(ctx, callKey{}, c), c
}

// callOf returns the call of a context; nil when it is of none: a pool of
// connections logs on by itself when one is missing.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// logonQueue lets one logon in at a time. The zero value is ready.
type logonQueue struct {
	mu    sync.Mutex
	in    chan struct{} // closed when something changes for those who wait; nil: nobody is in
	owner *call         // of the logon that is in; nil for one of no call
	last  time.Time     // when they entered
}

// enter waits for its turn, which comes at the latest when the logon that is in has
// been there for longer than patience says; alive tells it whether the call of
// that logon has not ended.
func (q *logonQueue) enter(ctx context.Context, patience func(alive bool) time.Duration) error {
	for {
		q.mu.Lock()
		left := patience(q.owner == nil || !q.owner.ended.Load()) - time.Since(q.last)
		if q.in == nil || left <= 0 {
			if q.in == nil {
				q.in = make(chan struct{})
			}
			q.owner, q.last = callOf(ctx), time.Now()
			q.mu.Unlock()
			return nil
		}
		in := q.in
		q.mu.Unlock()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-in:
		case <-time.After(left):
		}
	}
}

// leave lets the next one in, if it is this call that is in.
func (q *logonQueue) leave(c *call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.in != nil && q.owner == c {
		close(q.in)
		q.in = nil
	}
}

// abandon says that a call has ended. If it is in, nobody knows what comes of its
// logon, and those who wait need less patience.
func (q *logonQueue) abandon(c *call) {
	c.ended.Store(true)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.in != nil && q.owner == c {
		close(q.in)
		q.in = make(chan struct{})
	}
}

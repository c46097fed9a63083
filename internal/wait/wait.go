// Package wait has what loops need that wait: for a time, for goroutines, for the
// next attempt, and for the end of an outage, which is logged once.
package wait

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// For waits for d. It reports false when ctx ended first.
func For(ctx context.Context, d time.Duration) bool { return Until(ctx, d, nil) == Elapsed }

// End is how a wait has ended.
type End int

const (
	// Elapsed says that the time is over.
	Elapsed End = iota
	// Notified says that the channel was closed.
	Notified
	// Canceled says that the context has ended.
	Canceled
)

// Until waits for d, or until notify is closed or receives; a nil channel never does.
// A context that has ended comes first, then a d of 0 or less.
func Until(ctx context.Context, d time.Duration, notify <-chan struct{}) End {
	if ctx.Err() != nil {
		return Canceled
	}
	if d <= 0 {
		return Elapsed
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return Canceled
	case <-notify:
		return Notified
	case <-timer.C:
		return Elapsed
	}
}

// Wake wakes the one who waits for the channel, which has room for one call. It never blocks.
func Wake(waits chan<- struct{}) {
	select {
	case waits <- struct{}{}:
	default: // The last call was not taken yet.
	}
}

// Doubled doubles d so many times, up to most.
func Doubled(d time.Duration, times int, most time.Duration) time.Duration {
	for ; times > 0 && d < most; times-- {
		d *= 2
	}
	return min(d, most)
}

// Group waits for goroutines, as those of a [sync.WaitGroup], but no longer than ctx:
// one that hangs in the kernel must not keep its owner. The error begins with what.
func Group(ctx context.Context, group interface{ Wait() }, what string) error {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s did not end in time: %w", what, context.Cause(ctx))
	}
}

// Backoff gives the pauses between attempts. It is for one goroutine.
type Backoff = backoff.ExponentialBackOff

// NewBackoff returns pauses that begin at about least and double up to about most, each
// longer or shorter by up to a half, so that attempts of several processes spread.
func NewBackoff(least, most time.Duration) *Backoff {
	return &Backoff{InitialInterval: least, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: most}
}

// Outage is how long something has failed, so that an hour of it is two lines in the
// log: the first error and the end. The zero value means that it works. It is for one
// goroutine.
type Outage struct{ since time.Time }

// Begin reports whether the outage is a new one.
func (o *Outage) Begin() bool {
	if !o.since.IsZero() {
		return false
	}
	o.since = time.Now()
	return true
}

// End reports whether an outage is over now, and how long it lasted.
func (o *Outage) End() (lasted time.Duration, over bool) {
	if o.since.IsZero() {
		return 0, false
	}
	lasted = time.Since(o.since)
	o.since = time.Time{}
	return lasted, true
}

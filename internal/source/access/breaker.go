package access

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/observer"
)

// How long a source that could not be reached is left alone by this process:
// least after the first failure, doubling, most at last.
const (
	leastOpen = 5 * time.Second
	mostOpen  = 5 * time.Minute
)

// breaker keeps the observers of a source from hammering a listener that is
// down: after a failure to reach it, all fail at once until the pause is over;
// then one of them tries. The zero value is closed.
type breaker struct {
	mu       sync.Mutex
	failures int // in a row
	until    time.Time
	last     error
}

// allow returns why the source is not to be tried now; nil lets the caller try.
func (b *breaker) allow() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures == 0 {
		return nil
	}
	now := time.Now()
	if left := b.until.Sub(now); left > 0 {
		return &observer.Fault{Class: observer.ClassUnreachable, Err: fmt.Errorf(
			"%w: not tried again for %v, failures in a row: %d, the last: %w",
			observer.ErrUnreachable, max(time.Second, left.Round(time.Second)), b.failures, b.last)}
	}
	// The first caller tries; the others wait for the outcome.
	b.until = now.Add(leastOpen)
	return nil
}

// succeeded says that the source has answered.
func (b *breaker) succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.last = 0, nil
}

// failed says that it could not be reached.
func (b *breaker) failed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	pause := min(leastOpen<<min(b.failures, 16), mostOpen)
	b.failures++
	b.until, b.last = time.Now().Add(pause-pause/5+rand.N(2*pause/5)), err
}

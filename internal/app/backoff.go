package app

import (
	"sync"
	"time"
)

// How long this process pauses a reconcile whose step made no progress: least after
// the first failure, then doubled up to most.
const (
	leastBackoff = time.Minute
	mostBackoff  = time.Hour
	// mostGrown is how long a step may take at last. The type is not polled meanwhile.
	mostGrown = 10 * time.Minute
)

// stepBackoff pauses a reconcile that makes no progress: in every turn it would read
// its source for nothing and keep the lock of the type from the polls. The zero value
// is none.
type stepBackoff struct {
	mu       sync.Mutex
	failures int // in a row
	timeouts int // among them
	until    time.Time
}

// lasts reports whether the backoff lasts, so that no step is tried now.
func (b *stepBackoff) lasts() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Before(b.until)
}

// grown is the time for the next step: twice that of the step before, if that was too
// short. The rows of one timestamp are passed in one step, however many they are.
func (b *stepBackoff) grown(least time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return doubled(least, b.timeouts, max(least, mostGrown))
}

// record adds the result of a step. timeout says that a failed one had too little time.
func (b *stepBackoff) record(failed, timeout bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !failed {
		b.failures, b.timeouts, b.until = 0, 0, time.Time{}
		return
	}
	b.until = time.Now().Add(doubled(leastBackoff, b.failures, mostBackoff))
	b.failures++
	if timeout {
		b.timeouts++
	}
}

// doubled doubles d so many times, up to most.
func doubled(d time.Duration, times int, most time.Duration) time.Duration {
	for ; times > 0 && d < most; times-- {
		d *= 2
	}
	return min(d, most)
}

package app

import (
	"sync"
	"time"
)

// How long a reconcile whose step got nowhere is left alone by this process:
// least after the first failure, doubling, most at last.
const (
	leastBackoff = time.Minute
	mostBackoff  = time.Hour
	// mostGrown is how long a step may take at last. The type is not polled meanwhile.
	mostGrown = 10 * time.Minute
)

// stepBackoff keeps a reconcile that cannot get on from costing every turn: its
// source would be read for nothing, and the lock of the type be kept from the
// polls meanwhile. The zero value is none.
type stepBackoff struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

// lasts reports whether no step is to be tried now.
func (b *stepBackoff) lasts() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Before(b.until)
}

// grown is the time for the next step: twice that of the step before, if that got
// nowhere. The rows of one timestamp are passed in one step, however many they are.
func (b *stepBackoff) grown(least time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return doubled(least, b.failures, max(least, mostGrown))
}

// record says what came of a step.
func (b *stepBackoff) record(failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !failed {
		b.failures, b.until = 0, time.Time{}
		return
	}
	b.until = time.Now().Add(doubled(leastBackoff, b.failures, mostBackoff))
	b.failures++
}

// doubled doubles d so many times, up to most.
func doubled(d time.Duration, times int, most time.Duration) time.Duration {
	for ; times > 0 && d < most; times-- {
		d *= 2
	}
	return min(d, most)
}

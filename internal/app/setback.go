package app

import (
	"sync"
	"time"
)

// How long a reconcile whose step got nowhere is left alone by this process:
// least after the first failure, doubling, most at last.
const (
	leastSetback = time.Minute
	mostSetback  = time.Hour
	// mostGrown is how long a step may take at last. The type is not polled meanwhile.
	mostGrown = 10 * time.Minute
)

// setback keeps a reconcile that cannot get on from costing every turn: its
// source would be read for nothing, and the lock of the type be kept from the
// polls meanwhile. The zero value is none.
type setback struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

// lasts reports whether no step is to be tried now.
func (s *setback) lasts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.until)
}

// grown is the time for the next step: twice that of the step before, if that got
// nowhere. The rows of one timestamp are passed in one step, however many they are.
func (s *setback) grown(least time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return doubled(least, s.failures, max(least, mostGrown))
}

// note says what came of a step.
func (s *setback) note(failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !failed {
		s.failures, s.until = 0, time.Time{}
		return
	}
	s.until = time.Now().Add(doubled(leastSetback, s.failures, mostSetback))
	s.failures++
}

// doubled doubles d so many times, up to most.
func doubled(d time.Duration, times int, most time.Duration) time.Duration {
	for ; times > 0 && d < most; times-- {
		d *= 2
	}
	return min(d, most)
}

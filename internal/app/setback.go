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
)

// setback keeps a reconcile that cannot get on from costing every turn: its
// source would be read for nothing, and the lock of the type be kept from the
// polls meanwhile. The zero value is none.
type setback struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

// lasts tells whether no step is to be tried now.
func (s *setback) lasts() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.until)
}

// note says what came of a step.
func (s *setback) note(failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !failed {
		s.failures, s.until = 0, time.Time{}
		return
	}
	pause := leastSetback
	for range s.failures {
		if pause *= 2; pause >= mostSetback {
			break
		}
	}
	s.failures++
	s.until = time.Now().Add(min(pause, mostSetback))
}

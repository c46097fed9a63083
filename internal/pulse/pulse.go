// Package pulse reports whether the loops of the process still turn. A loop that
// waits for a database beats while it waits; one that hangs does not.
package pulse

import (
	"sort"
	"sync"
	"time"
)

// Set is a group of loops. The zero value is ready; a nil *Set accepts beats
// and forgets them.
type Set struct {
	mu    sync.Mutex
	loops map[string]beat
}

type beat struct {
	last   time.Time
	within time.Duration
}

// Beat says that the loop of that name is alive and will beat again within the
// given time; 0 or less takes the loop out of the set, because it has ended.
func (s *Set) Beat(loop string, within time.Duration) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if within <= 0 {
		delete(s.loops, loop)
		return
	}
	if s.loops == nil {
		s.loops = make(map[string]beat)
	}
	s.loops[loop] = beat{last: time.Now(), within: within}
}

// Stuck returns the sorted names of the loops whose beat is overdue.
func (s *Set) Stuck() []string {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var stuck []string
	for name, b := range s.loops {
		if time.Since(b.last) > b.within {
			stuck = append(stuck, name)
		}
	}
	sort.Strings(stuck)
	return stuck
}

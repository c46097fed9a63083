// Package watchdog reports which loops of the process hang. A loop that waits
// for a database beats while it waits; a loop that hangs does not.
package watchdog

import (
	"sort"
	"sync"
	"time"
)

// Loops are the loops that are watched. The zero value is ready, and safe for
// concurrent use.
type Loops struct {
	mu    sync.Mutex
	beats map[string]beat
}

type beat struct {
	last   time.Time
	within time.Duration
}

// Beat notes that the loop of that name is alive and will beat again within the
// given time; 0 or less removes the loop, because it has ended.
func (l *Loops) Beat(loop string, within time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if within <= 0 {
		delete(l.beats, loop)
		return
	}
	if l.beats == nil {
		l.beats = make(map[string]beat)
	}
	l.beats[loop] = beat{last: time.Now(), within: within}
}

// Stuck returns the sorted names of the loops whose beat is overdue.
func (l *Loops) Stuck() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var stuck []string
	for name, b := range l.beats {
		if time.Since(b.last) > b.within {
			stuck = append(stuck, name)
		}
	}
	sort.Strings(stuck)
	return stuck
}

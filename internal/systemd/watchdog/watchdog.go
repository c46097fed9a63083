// Package watchdog reports which loops of the process hang. A loop that waits
// for a database beats while it waits; a loop that hangs does not.
package watchdog

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/fn"
)

// Loops are the loops that are watched. The zero value is ready, and safe for
// concurrent use.
type Loops struct {
	mu sync.Mutex
	// due is until when each loop beats again.
	due map[string]time.Time
}

// Beat notes that the loop of that name is alive and will beat again within the
// given time; 0 or less removes the loop, because it has ended.
func (l *Loops) Beat(loop string, within time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if within <= 0 {
		delete(l.due, loop)
		return
	}
	if l.due == nil {
		l.due = make(map[string]time.Time)
	}
	l.due[loop] = time.Now().Add(within)
}

// Stuck returns the sorted names of the loops whose beat is overdue.
func (l *Loops) Stuck() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fn.Only(slices.Sorted(maps.Keys(l.due)), func(loop string) bool { return time.Now().After(l.due[loop]) })
}

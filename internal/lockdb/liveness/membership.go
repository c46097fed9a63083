package liveness

import (
	"maps"
	"sync"

	"github.com/observerd/observerd/internal/lock"
)

// LockID names a row of INT_LOCK.
type LockID struct{ Key, Region string }

// standing is how a lock of ours stood in a look.
type standing struct {
	term    string
	expired bool
}

// members is what this process knows of others, and which goroutines wait to hear of it. The
// zero value knows nothing.
type members struct {
	mu       sync.Mutex
	watching bool
	gone     map[string]bool // boot ids that are judged dead; nil where others watch them
	locks    map[LockID]standing
	waiting  map[LockID]chan struct{}
}

// Freed returns a channel that is closed when the lock of the request may have become
// free, or another node was found dead. It is nil while no look runs. A lock of a foreign
// holder is not watched, nor one outside [Options].Regions.
func (m *members) Freed(r lock.Request) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.watching {
		return nil
	}
	id := LockID{r.Key, r.Region}
	if m.waiting[id] == nil {
		if m.waiting == nil {
			m.waiting = make(map[LockID]chan struct{})
		}
		m.waiting[id] = make(chan struct{})
	}
	return m.waiting[id]
}

// Gone reports whether the node of that boot id is known here to be dead.
func (m *members) Gone(bootID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone[bootID]
}

// Dead returns the boot ids of the nodes that are judged dead; watching is false
// while no look runs, or others watch the nodes.
func (m *members) Dead() (dead map[string]bool, watching bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.gone), m.gone != nil
}

// update takes in a look and wakes the goroutines that it concerns: all, when a
// node was found dead, because the queue has become shorter.
func (m *members) update(gone map[string]bool, locks map[LockID]standing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	died := false
	for boot := range gone {
		died = died || !m.gone[boot]
	}
	for id, was := range m.locks {
		if now, held := locks[id]; died || !held || now.term != was.term || now.expired && !was.expired {
			m.wake(id)
		}
	}
	if died {
		for id := range maps.Clone(m.waiting) {
			m.wake(id)
		}
	}
	m.watching, m.gone, m.locks = true, gone, locks
}

// forget drops all that was known: this process cannot look at present. Goroutines
// that wait find out for themselves.
func (m *members) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watching, m.gone, m.locks = false, nil, nil
	for id := range maps.Clone(m.waiting) {
		m.wake(id)
	}
}

func (m *members) wake(id LockID) {
	if c := m.waiting[id]; c != nil {
		close(c)
		delete(m.waiting, id)
	}
}

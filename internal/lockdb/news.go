package lockdb

import (
	"maps"
	"sync"

	"github.com/observerd/observerd/internal/lock"
)

// lockID names a row of INT_LOCK.
type lockID struct{ key, region string }

// standing is how a lock of ours stood in a look.
type standing struct {
	term    string
	expired bool
}

// news is what this process knows of others, and who waits to hear of it. The
// zero value knows nothing.
type news struct {
	mu       sync.Mutex
	watching bool
	open     map[string]bool // boot ids that the last look found
	gone     map[string]bool // and those that are judged dead
	locks    map[lockID]standing
	waiting  map[lockID]chan struct{}
}

// freed returns a channel that is closed when the lock may have become free,
// or another node was found dead; nil while nobody watches.
func (n *news) freed(r lock.Request) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.watching {
		return nil
	}
	id := lockID{r.Key, r.Region}
	if n.waiting[id] == nil {
		if n.waiting == nil {
			n.waiting = make(map[lockID]chan struct{})
		}
		n.waiting[id] = make(chan struct{})
	}
	return n.waiting[id]
}

func (n *news) isGone(bootID string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.gone[bootID]
}

// dead returns the boot ids of those that are judged dead; watching is false when
// nobody looks at present.
func (n *news) dead() (dead map[string]bool, watching bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.gone), n.watching
}

// isOpen reports whether the last look found the process alive, and whether there
// was one.
func (n *news) isOpen(bootID string) (open, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.open[bootID], n.watching
}

// bring takes in a look and wakes those whom it concerns: everybody, when a
// node was found dead, because the line has become shorter.
func (n *news) bring(open, gone map[string]bool, locks map[lockID]standing) {
	n.mu.Lock()
	defer n.mu.Unlock()
	died := false
	for boot := range gone {
		died = died || !n.gone[boot]
	}
	for id, was := range n.locks {
		if now, held := locks[id]; died || !held || now.term != was.term || now.expired && !was.expired {
			n.wake(id)
		}
	}
	if died {
		for id := range maps.Clone(n.waiting) {
			n.wake(id)
		}
	}
	n.watching, n.open, n.gone, n.locks = true, open, gone, locks
}

// blind forgets what was known: this process cannot look at present. Those who
// wait find out for themselves.
func (n *news) blind() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watching, n.open, n.gone, n.locks = false, nil, nil, nil
	for id := range maps.Clone(n.waiting) {
		n.wake(id)
	}
}

func (n *news) wake(id lockID) {
	if c := n.waiting[id]; c != nil {
		close(c)
		delete(n.waiting, id)
	}
}

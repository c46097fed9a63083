package lockdb

import "sync"

// terms are the terms that this process may hold: from before the statement that
// acquires is sent until the lease was released or lost, or was given back because
// its acquisition was not answered. A row that carries our boot id and none of them
// has no holder: a failover or a restart lost the answer to its release, or brought it
// back. The zero value is ready.
type terms struct {
	mu   sync.Mutex
	held map[string]struct{}
}

func (t *terms) enter(term string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == nil {
		t.held = make(map[string]struct{})
	}
	t.held[term] = struct{}{}
}

func (t *terms) leave(term string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.held, term)
}

func (t *terms) has(term string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.held[term]
	return ok
}

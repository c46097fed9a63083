package engine

import (
	"context"
	"sync"
	"time"
)

// transaction is what a session has begun.
type transaction struct {
	engine *Engine
	id     uint64
	// begun is when the first change was made; zero before.
	begun    time.Time
	readOnly bool
	snapshot uint64 // of a read only transaction
	changes  []change
	done     chan struct{}
}

// change is what has to be undone by a rollback.
type change struct {
	version *version
	birth   bool
}

// transactions are the open ones that have changed something.
type transactions struct {
	mu   sync.Mutex
	last uint64
	open map[uint64]*transaction
}

// stamp marks versions as changed by the transaction.
func (t *transaction) stamp() uint64 {
	if t == nil || t.begun.IsZero() {
		return 0
	}
	return t.id | uncommitted
}

// begin registers the transaction before its first change.
func (t *transaction) begin(now time.Time) {
	if !t.begun.IsZero() {
		return
	}
	e := t.engine
	e.open.mu.Lock()
	defer e.open.mu.Unlock()
	e.open.last++
	t.id, t.begun = e.open.last, now
	t.done = make(chan struct{})
	e.open.open[t.id] = t
}

// commit makes the changes visible, all at once.
func (t *transaction) commit() {
	e := t.engine
	e.committing.Lock()
	scn := e.scn.Load() + 1
	for _, c := range t.changes {
		if c.birth {
			c.version.born.Store(scn)
		} else {
			c.version.dead.Store(scn)
		}
	}
	e.scn.Store(scn)
	e.committing.Unlock()
	t.end()
}

func (t *transaction) rollback() {
	t.undo(0)
	t.end()
}

// undo takes back all changes but the first keep.
func (t *transaction) undo(keep int) {
	for i := len(t.changes) - 1; i >= keep; i-- {
		if c := t.changes[i]; c.birth {
			c.version.born.Store(aborted)
		} else {
			c.version.dead.Store(0)
		}
	}
	t.changes = t.changes[:keep]
}

func (t *transaction) end() {
	e := t.engine
	e.open.mu.Lock()
	delete(e.open.open, t.id)
	e.open.mu.Unlock()
	close(t.done)
}

// await waits until the transaction of a stamp has ended. Two that wait for each other do so
// until the context ends.
func (e *Engine) await(ctx context.Context, stamp uint64) {
	e.open.mu.Lock()
	other := e.open.open[stamp&^uncommitted]
	e.open.mu.Unlock()
	if other == nil {
		return
	}
	select {
	case <-other.done:
	case <-ctx.Done():
		panic(refuse(1013))
	}
}

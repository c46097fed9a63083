package source

import (
	"cmp"
	"strings"
	"sync"
	"sync/atomic"
)

// Era tells sessions with the database that answers now from those with a former one, which is
// still there though the address leads to another. Their rows are not those of the identity of
// which a poll keeps the marks, so they are not used again.
type Era struct {
	n        atomic.Int64
	mu       sync.Mutex
	identity string
}

// Saw notes which database has answered, and reports whether that is another one than before.
// What has no identity, or one of another kind, as after a grant, is no other.
func (e *Era) Saw(identity string) (another bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	kind, _, _ := strings.Cut(identity, ":")
	another = identity != "" && identity != e.identity && strings.HasPrefix(e.identity, kind+":")
	if another {
		e.n.Add(1)
	}
	e.identity = cmp.Or(identity, e.identity)
	return another
}

// Now is the number of the era, which a session has from before its logon.
func (e *Era) Now() int64 { return e.n.Load() }

package source

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/wait"
)

// How long an observer waits between two tries at a locked table: least after the
// first try, doubling, most at last.
const (
	leastWait = time.Second
	mostWait  = 5 * time.Second
)

// LockWaits are the waits of one source's observers for tables that another session
// has locked. A try keeps a connection for as long as its source waits for a lock, up
// to a second for each table. So observers that try again share half of the connections
// at most: one that finds all of these in use waits once more. A first try may be of a
// free table, and may use any connection.
type LockWaits struct {
	limit     time.Duration
	locked    func(error) bool
	returning chan struct{} // holds a token for each observer that tries again
}

// NewLockWaits returns the waits on a pool of poolSize connections, which last for
// no longer than limit each. locked reports whether an error is that of a locked table.
func NewLockWaits(poolSize int, limit time.Duration, locked func(error) bool) *LockWaits {
	return &LockWaits{limit: limit, locked: locked, returning: make(chan struct{}, max(poolSize/2, 1))}
}

// Retry tries until no table is locked over there, and for no longer than the limit
// after the first lock; then the last error is returned. A try before that may have waited for a connection, which says
// nothing about the table. No try may keep a connection that it was refused on:
// those are for the observers whose tables are free.
func (w *LockWaits) Retry(ctx context.Context, try func() error) error {
	err := try()
	if err == nil || !w.locked(err) {
		return err
	}
	Begun(ctx)
	limit := time.Now().Add(w.limit)
	for pause := leastWait; ; pause = min(2*pause, mostWait) {
		left := time.Until(limit)
		if !wait.For(ctx, min(pause, left)) {
			return Ended(ctx, "wait for a lock")
		}
		if left <= pause {
			return err
		}
		if w.again(func() { err = try() }); err == nil || !w.locked(err) {
			return err
		}
	}
}

// again makes a try after the first, unless too many others do.
func (w *LockWaits) again(try func()) {
	select {
	case w.returning <- struct{}{}:
		defer func() { <-w.returning }()
		try()
	default:
	}
}

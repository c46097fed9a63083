package source

import (
	"context"
	"time"
)

// How long whoever has met a locked table stays away before it tries again:
// least after the first try, doubling, most at last.
const (
	leastAway = time.Second
	mostAway  = 5 * time.Second
)

// LockWaits are the waits of one source's observers for tables that somebody else
// has locked. A try keeps a connection for as long as its source waits for a lock,
// up to a second for each table. So those who have met a lock before have half of
// the connections at most, however many they are: who finds these in use stays away
// once more. A first try may be of a free table, and has them all.
type LockWaits struct {
	limit     time.Duration
	returning chan struct{} // holds a token for each of those who try again
}

// NewLockWaits returns the waits on a pool of poolSize connections, which last for
// no longer than limit each.
func NewLockWaits(poolSize int, limit time.Duration) *LockWaits {
	return &LockWaits{limit: limit, returning: make(chan struct{}, max(poolSize/2, 1))}
}

// Unlocked tries until locked does not say that a table was locked over there,
// and for no longer than the limit after it has said so first; then the last error
// is returned. A try before that may have waited for a connection, which says
// nothing about the table. No try may keep a connection that it was refused on:
// those are for the observers whose tables are free.
func (w *LockWaits) Unlocked(ctx context.Context, locked func(error) bool, try func() error) error {
	err := try()
	if err == nil || !locked(err) {
		return err
	}
	Begun(ctx)
	patience := time.NewTimer(w.limit)
	defer patience.Stop()
	for away := leastAway; ; away = min(2*away, mostAway) {
		again := time.NewTimer(away)
		select {
		case <-again.C:
		case <-patience.C:
			again.Stop()
			return err
		case <-ctx.Done():
			again.Stop()
			return Ended(ctx, "wait for a lock")
		}
		if w.again(func() { err = try() }); err == nil || !locked(err) {
			return err
		}
	}
}

// again makes a try of one who has met the lock before, unless too many such are
// at theirs.
func (w *LockWaits) again(try func()) {
	select {
	case w.returning <- struct{}{}:
		defer func() { <-w.returning }()
		try()
	default:
	}
}

package lockdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/liveness"
	"github.com/observerd/observerd/internal/wait"
)

// errLocked is [errHeld] of a lock whose row another transaction has locked. The
// holder is not known then.
var errLocked = fmt.Errorf("%w: its row is locked", errHeld)

// warnLocked logs once that another transaction keeps a row locked, until an attempt
// finds it otherwise. A person has to end a forgotten transaction.
func (l *Leases) warnLocked(r lock.Request, err error) {
	id := liveness.LockID{Key: r.Key, Region: r.Region}
	if !errors.Is(err, errLocked) {
		l.locked.Delete(id)
		return
	}
	if _, told := l.locked.LoadOrStore(id, true); !told {
		l.log.Warn("The row of a lock is locked by another transaction; the lock is not to be had until that one ends", "lock", r.Key, "name", r.Name)
	}
}

// longestPause is about the longest pause between two attempts at a row that is locked.
const longestPause = 200 * time.Millisecond

// retryLocked runs f again while it returns errLocked, until ctx ends.
func retryLocked(ctx context.Context, f func() error) error {
	pauses := wait.NewBackoff(longestPause/10, longestPause)
	for {
		if err := f(); !errors.Is(err, errLocked) {
			return err
		}
		if !wait.For(ctx, pauses.NextBackOff()) {
			return fmt.Errorf("%w: %w", errLocked, context.Cause(ctx))
		}
	}
}

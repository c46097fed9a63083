package sqldb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/wait"
)

var (
	// ErrHeld reports a lock that another holds.
	ErrHeld = errors.New("held")
	// ErrLocked is [ErrHeld] of a lock whose row another transaction has locked. The holder
	// is not known then.
	ErrLocked = fmt.Errorf("%w: its row is locked", ErrHeld)
)

// lockNotAvailable is the SQLSTATE of a lock_timeout.
const lockNotAvailable = "55P03"

// LockTimedOut reports whether the server undid a statement because it waited too
// long for another client's lock.
func LockTimedOut(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == lockNotAvailable
}

// attemptGrace bounds an attempt to acquire that its caller has given up, and deadlineGrace how far
// it goes beyond the caller's deadline: one that ends with its session may be carried out after
// all, when the release that follows has found nothing.
const attemptGrace, deadlineGrace = 5 * time.Second, time.Second

// Attempt runs a statement that acquires locks to its end, whatever becomes of ctx. acquire is called again after a conflict, and when INT_LOCK has become a
// table of the other generation.
func (db *DB) Attempt(ctx context.Context, acquire func(ctx context.Context) error) error {
	limit := attemptGrace
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)+deadlineGrace)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := db.Fits(ctx); err != nil {
		return err
	}
	try := func() error { return acquire(ctx) }
	err := RetryConflicts(ctx, try)
	if LockTableChanged(err) {
		if err = db.Recognise(ctx); err == nil {
			err = RetryConflicts(ctx, try)
		}
	}
	return BusyPool(db.Acquire, err)
}

// NoteLocked logs once that another transaction keeps the row of a lock locked, until the
// error of an attempt is another one. A person has to end a forgotten transaction.
func (db *DB) NoteLocked(key, region, name string, err error) {
	id := [2]string{key, region}
	if !errors.Is(err, ErrLocked) {
		db.locked.Delete(id)
		return
	}
	if _, told := db.locked.LoadOrStore(id, true); !told {
		db.log.Warn("The row of a lock is locked by another transaction; the lock cannot be acquired until that transaction, which may wait for a synchronous standby, ends", "lock", key, "name", name)
	}
}

// longestPause is about the longest pause between two attempts at a row that is locked.
const longestPause = 200 * time.Millisecond

// RetryLocked runs f again while it returns [ErrLocked], until ctx ends, and after conflicts as
// [RetryConflicts] does.
func RetryLocked(ctx context.Context, f func() error) error {
	pauses := wait.NewBackoff(longestPause/10, longestPause)
	for {
		if err := RetryConflicts(ctx, f); !errors.Is(err, ErrLocked) {
			return err
		}
		if !wait.For(ctx, pauses.NextBackOff()) {
			return fmt.Errorf("%w: %w", ErrLocked, context.Cause(ctx))
		}
	}
}

// conflicted reports whether the server undid a statement only because others
// were in its way: a failed serialization or a deadlock. Other users of the table may
// work under SERIALIZABLE and lock rows in any order.
func conflicted(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}

// RetryConflicts runs f again while it is conflicted, for a second or two. Nothing
// of an attempt that was is left.
func RetryConflicts(ctx context.Context, f func() error) error {
	for range 20 {
		if err := f(); !conflicted(err) {
			return err
		}
		if !wait.For(ctx, 5*time.Millisecond+rand.N(90*time.Millisecond)) {
			break
		}
	}
	return f()
}

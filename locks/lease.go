package locks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// Lease is a lock that this process holds, as far as it can know.
type Lease struct {
	hold *hold
	ctx  context.Context
	end  func()

	release sync.Once
	err     error
}

// hold is what all leases of one term share: that of the first caller, and those of
// callers that had its context.
type hold struct {
	manager *Manager
	lock    Descriptor
	lease   *lock.Lease
	// outer is the hold of the context in which this one was acquired.
	outer *hold

	// touching keeps a guard from writing the TTL of before an extension after it.
	touching sync.RWMutex

	mu sync.Mutex
	// leases counts those that were not released yet.
	leases int
}

// holdKey is where a context keeps the innermost hold.
type holdKey struct{}

func newHold(ctx context.Context, m *Manager, d Descriptor, held *lock.Lease) *Lease {
	outer, _ := ctx.Value(holdKey{}).(*hold)
	h := &hold{manager: m, lock: d, lease: held, outer: outer, leases: 1}
	return &Lease{hold: h, ctx: context.WithValue(held.Context(), holdKey{}, h), end: func() {}}
}

// heldBy returns the hold of the same lock that ctx is under, if any.
func (m *Manager) heldBy(ctx context.Context, d Descriptor) *hold {
	h, _ := ctx.Value(holdKey{}).(*hold)
	for ; h != nil; h = h.outer {
		if h.manager == m && h.lock.Key() == d.Key() && h.isHeld() {
			return h
		}
	}
	return nil
}

func (h *hold) isHeld() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leases > 0
}

// nest returns another lease of the hold. A hold whose context has ended is waited for by
// nobody who is under it: the error is why it has ended.
func (h *hold) nest(ctx context.Context, d Descriptor) (*Lease, error) {
	if !covers(h.lock.Mode, d.Mode) {
		return nil, &NestedError{d, h.lock.Mode}
	}
	if cause := context.Cause(h.lease.Context()); cause != nil {
		return nil, fmt.Errorf("%s: %w", d, cause)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leases == 0 {
		return nil, fmt.Errorf("%s: %w", d, ErrLost) // It was released just now.
	}
	h.leases++
	// ctx may have the values of the hold's context, and not its end.
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.lease.Context(), func() { cancel(context.Cause(h.lease.Context())) })
	return &Lease{hold: h, ctx: ctx, end: func() {
		stop()
		cancel(context.Canceled)
	}}, nil
}

// covers reports whether a holder in one mode may do what the other allows.
func covers(held, wanted Mode) bool {
	return held == wanted || held == Exclusive
}

// Descriptor returns the lock's descriptor, with its defaults and the TTL in force.
func (l *Lease) Descriptor() Descriptor {
	d := l.hold.lock
	d.TTL = l.TTL()
	return d
}

// TTL is how long the lock outlives this process if it dies. It may be longer than the
// descriptor asked for, where the provider cannot keep so short a lease.
func (l *Lease) TTL() time.Duration { return l.hold.lease.TTL() }

// Term identifies this acquisition and no other.
func (l *Lease) Term() string { return l.hold.lease.Grant().Term }

// Fence is the fencing token. It grows with every acquisition of the same lock: another
// system that remembers the greatest one can refuse a holder that was replaced.
func (l *Lease) Fence() int64 { return l.hold.lease.Fence() }

// Context is that of the work. It ends with the cause [ErrLost] at the moment the lease
// cannot be trusted any more, with [context.Canceled] when the lock is released, and with
// [ErrClosed] when the manager is closed. Locks that are acquired with it count as the
// holder's own; see [Manager.Acquire].
func (l *Lease) Context() context.Context { return l.ctx }

// Extend lets the lease run for ttl from now, and from each later renewal. The error is
// [ErrLost] when it has ended, and [ErrUnsupported] where the provider cannot do it.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	if ttl <= 0 {
		return &DescriptorError{"ttl", ttl.String(), "is not positive; write 30s, for example"}
	}
	l.hold.touching.Lock()
	defer l.hold.touching.Unlock()
	if err := l.hold.lease.Extend(ctx, l.hold.manager.inForce(ttl)); err != nil {
		return fmt.Errorf("%s: %w", l.hold.lock, err)
	}
	return nil
}

// Release gives the lock back, also when ctx has ended, once all leases of the term were
// released. The error is [ErrLost] when the lease had ended before. A second call
// returns what the first did.
func (l *Lease) Release(ctx context.Context) error {
	l.release.Do(func() {
		l.end()
		if l.hold.leave() {
			l.err = l.hold.lease.Release(ctx)
			l.hold.manager.policies.leave(l.hold.lock)
		} else if errors.Is(context.Cause(l.hold.lease.Context()), ErrLost) {
			l.err = ErrLost
		}
		if l.err != nil {
			l.err = fmt.Errorf("%s: %w", l.hold.lock, l.err)
		}
	})
	return l.err
}

// leave reports whether the last lease of the term has been released.
func (h *hold) leave() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases--
	return h.leases == 0
}

// Tx is a transaction of the coordination database. [*sql.Tx] is one; package
// [github.com/observerd/observerd/locks/database] makes one of a pgx.Tx.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Guard makes the caller's transaction depend on the lease: it renews the lease in it, by
// its term. The error is [ErrFenced] when the lease has ended; roll back then. Otherwise no
// other can take the lock before the transaction ends, and none has had it since the lease
// began. Keep what follows short: the lease is not renewed meanwhile. The error is
// [ErrUnsupported] where the provider has no such transactions.
func (l *Lease) Guard(ctx context.Context, tx Tx) error {
	guard, ok := l.hold.manager.opts.Provider.(lock.Guard)
	if !ok {
		return fmt.Errorf("guard by %s: %w", l.hold.lock, ErrUnsupported)
	}
	l.hold.touching.RLock()
	defer l.hold.touching.RUnlock()
	text, args := guard.GuardSQL(l.hold.lease.Grant())
	result, err := tx.ExecContext(ctx, text, args...)
	if err != nil {
		return fmt.Errorf("guard by %s: %w", l.hold.lock, err)
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = ErrFenced
	}
	if err != nil {
		return fmt.Errorf("guard by %s: %w", l.hold.lock, err)
	}
	return nil
}

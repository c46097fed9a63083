package locks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock"
)

// Lease is a lock that this process holds, as far as it can know.
type Lease struct {
	hold *hold
	// asked is what the caller asked for, which may be what the holder had already.
	asked Descriptor
	ctx   context.Context
	end   func()
	// with are the leases of its intents, which are released after this one.
	with Leases

	release sync.Once
	err     error
}

// Leases are locks that were acquired together.
type Leases []*Lease

// Release releases all of them, the last one first. See [Lease.Release].
func (all Leases) Release(ctx context.Context) error {
	var err error
	for _, l := range slices.Backward(all) {
		err = errors.Join(err, l.Release(ctx))
	}
	return err
}

// hold is what all leases of one term share: that of the first caller, and those of
// callers that had its context.
type hold struct {
	manager *Manager
	lock    Descriptor
	lease   *lock.Lease
	// outer is the hold of the context in which this one was acquired.
	outer *hold
	// set are those that were acquired with it.
	set *set

	// touching keeps a guard from writing the TTL of before an extension after it.
	touching sync.RWMutex

	mu sync.Mutex
	// leases are those that were not released yet.
	leases []*Lease
}

// set are leases that were acquired at once: the loss of one ends the contexts of all.
type set struct {
	cancel context.CancelCauseFunc
	// held counts those that were not released yet.
	held atomic.Int64
}

// watch ends the set when the lease is lost.
func (s *set) watch(l *lock.Lease) {
	context.AfterFunc(l.Context(), func() {
		if cause := context.Cause(l.Context()); errors.Is(cause, ErrLost) {
			s.cancel(cause)
		}
	})
}

// leave notes that one of the set was released.
func (s *set) leave() {
	if s.held.Add(-1) == 0 {
		s.cancel(context.Canceled)
	}
}

// holdKey is where a context keeps the innermost hold.
type holdKey struct{}

// newHolds returns the leases of what was acquired under ctx. To a caller that has the
// context of one of them, all are its own.
func newHolds(ctx context.Context, m *Manager, ds []Descriptor, held []*lock.Lease, s *set) Leases {
	inner, _ := ctx.Value(holdKey{}).(*hold)
	leases := make(Leases, len(held))
	for i, l := range held {
		inner = &hold{manager: m, lock: ds[i], lease: l, outer: inner, set: s}
		leases[i] = &Lease{hold: inner, asked: ds[i], end: func() {}}
		inner.leases = Leases{leases[i]}
		if len(held) > 1 { // Else the end of its own context is that of all.
			s.watch(l)
		}
	}
	for _, l := range leases {
		l.belongsTo(inner)
		l.endWithContext()
	}
	return leases
}

// belongsTo makes the context one to whose users the hold, and those outside it, are their
// own.
func (l *Lease) belongsTo(h *hold) {
	l.ctx = context.WithValue(l.hold.lease.Context(), holdKey{}, h)
}

// joins makes a nested lease one of those that were taken with it: the loss of one of them
// ends its context, and a caller that has its context holds them too.
func (l *Lease) joins(taken Leases) {
	ctx, cancel := context.WithCancelCause(context.WithValue(l.ctx, holdKey{}, taken[0].ctx.Value(holdKey{})))
	s := &set{cancel: cancel}
	for _, other := range taken {
		s.watch(other.hold.lease)
	}
	end := l.end
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	l.ctx, l.end = ctx, func() {
		end()
		cancel(context.Canceled)
	}
}

// again returns another lease of the same term, for as long as ctx lives.
func (l *Lease) again(ctx context.Context) *Lease {
	other := &Lease{hold: l.hold, asked: l.asked, ctx: ctx, end: func() {}}
	l.hold.mu.Lock()
	l.hold.leases = append(l.hold.leases, other)
	l.hold.mu.Unlock()
	other.endWithContext()
	return other
}

// endWithContext looks at the end of the lease's context whether it was the last one.
func (l *Lease) endWithContext() {
	context.AfterFunc(l.ctx, func() {
		l.hold.mu.Lock()
		defer l.hold.mu.Unlock()
		l.hold.stopIfForgotten()
	})
}

// stopIfForgotten lets the term be renewed no more when the contexts of all its leases have
// ended: of those, one that is forgotten would keep the lock for ever. The hold is locked.
func (h *hold) stopIfForgotten() {
	lives := func(l *Lease) bool { return l.ctx.Err() == nil }
	if len(h.leases) > 0 && !slices.ContainsFunc(h.leases, lives) {
		h.lease.StopRenewal()
	}
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

// holds are the locks that ctx is under, and their modes.
func (m *Manager) holds(ctx context.Context) map[string]lock.Mode {
	held := make(map[string]lock.Mode)
	h, _ := ctx.Value(holdKey{}).(*hold)
	for ; h != nil; h = h.outer {
		if h.manager == m && h.isHeld() && h.lease.Context().Err() == nil {
			held[h.lock.Key()] = lock.Mode(h.lock.Mode)
		}
	}
	return held
}

func (h *hold) isHeld() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.leases) > 0
}

// errReleased is the [ErrLost] of a lease that is used after its release.
var errReleased = fmt.Errorf("%w: it was released", ErrLost)

// areHeld returns [errReleased] when one of the leases was released.
func (all Leases) areHeld() error {
	for _, l := range all {
		l.hold.mu.Lock()
		held := slices.Contains(l.hold.leases, l)
		l.hold.mu.Unlock()
		if !held {
			return fmt.Errorf("%s: %w", l.hold.lock, errReleased)
		}
	}
	return nil
}

// nest returns another lease of the hold. A hold whose context has ended is waited for by
// nobody who is under it: the error is why it has ended.
func (h *hold) nest(ctx context.Context, d Descriptor) (*Lease, error) {
	if !h.lock.Mode.covers(d.Mode) {
		return nil, &NestedError{d, h.lock.Mode}
	}
	if cause := context.Cause(h.lease.Context()); cause != nil {
		return nil, fmt.Errorf("%s: %w", d, cause)
	}
	if err := h.keeps(d); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.leases) == 0 {
		return nil, fmt.Errorf("%s: %w", d, errReleased) // Just now.
	}
	// ctx may have the values of the hold's context, and not its end.
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.lease.Context(), func() { cancel(context.Cause(h.lease.Context())) })
	l := &Lease{hold: h, asked: d, ctx: ctx, end: func() {
		stop()
		cancel(context.Canceled)
	}}
	h.leases = append(h.leases, l)
	return l, nil
}

// keeps returns a [*PolicyError] where the TTL in force breaks a policy for what is asked.
func (h *hold) keeps(d Descriptor) error {
	ttl := h.lease.TTL()
	if ttl == d.TTL {
		return nil
	}
	d.TTL = ttl
	err := h.manager.rules.policies.allow(d, true)
	if refused, ok := errors.AsType[*PolicyError](err); ok {
		refused.Reason = "the caller holds the lock already, with a TTL of its own: " + refused.Reason
	}
	return err
}

// endAfter ends the term that long from now, unless the lease is released before.
func (l *Lease) endAfter(d time.Duration) {
	timer, end := time.AfterFunc(d, l.hold.lease.Overstay), l.end
	l.end = func() {
		timer.Stop()
		end()
	}
}

// extendable returns a [*PolicyError] where one of those who hold the term may not for ttl.
func (h *hold) extendable(ttl time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.leases {
		d := l.asked
		d.TTL = ttl
		if err := h.manager.rules.policies.allow(d, true); err != nil {
			return err
		}
	}
	return nil
}

// Descriptor returns the lock's descriptor, with its defaults and the TTL in force.
func (l *Lease) Descriptor() Descriptor {
	d := l.hold.lock
	d.TTL = l.TTL()
	return d
}

// String returns the descriptor's text and the fencing token, for people.
func (l *Lease) String() string { return fmt.Sprintf("%s (fence %d)", l.asked, l.Fence()) }

// LogValue implements [slog.LogValuer]: the lock, the fencing token and the TTL. Metadata
// is not in it.
func (l *Lease) LogValue() slog.Value {
	return slog.GroupValue(slog.String("lock", l.asked.String()), slog.Int64("fence", l.Fence()), slog.Duration("ttl", l.TTL()))
}

// TTL is how long the lock outlives this process if it dies. It may be longer than the
// descriptor asked for, where the provider cannot keep so short a lease.
func (l *Lease) TTL() time.Duration { return l.hold.lease.TTL() }

// Term identifies this acquisition and no other.
func (l *Lease) Term() string { return l.hold.lease.Grant().Term }

// Fence is the fencing token. It grows with every acquisition of the same lock: another
// system that remembers the greatest one can refuse a holder that was replaced.
func (l *Lease) Fence() int64 { return l.hold.lease.Fence() }

// Context is that of the work. It ends with the context that the lease was acquired with, with
// the cause [ErrLost] at the moment the lease cannot be trusted any more, or was held for as
// long as it may be ([ErrHeldTooLong]), with [context.Canceled] when the lock is released, and
// with [ErrClosed] when the manager is closed. Locks that are acquired with it count as the
// holder's own; see [Manager.Acquire].
func (l *Lease) Context() context.Context { return l.ctx }

// Extend lets the lease, and its intents, run for ttl from now, and from each later
// renewal. The error is a [*PolicyError] where such a lock, or one that is nested in it, may not
// be acquired for ttl, [ErrLost] when one has ended or was released, and [ErrUnsupported] where the provider cannot
// do it.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	if ttl <= 0 {
		return &DescriptorError{"ttl", ttl.String(), "is not positive; use 30s, for example"}
	}
	all := append(slices.Clone(l.with), l)
	if err := all.areHeld(); err != nil {
		return err
	}
	for _, other := range all {
		if err := other.hold.extendable(ttl); err != nil {
			return err
		}
	}
	for _, other := range all {
		if err := other.hold.extend(ctx, ttl); err != nil {
			return fmt.Errorf("%s: %w", other.hold.lock, err)
		}
	}
	return nil
}

func (h *hold) extend(ctx context.Context, ttl time.Duration) error {
	h.touching.Lock()
	defer h.touching.Unlock()
	return h.lease.Extend(ctx, h.manager.inForce(ttl))
}

// Release gives the lock back, also when ctx has ended, once all leases of the term were
// released, and then its intents; see [HoldAtLeast]. The error is [ErrLost] when the lease had
// ended before, and another may have had the lock. A second call returns what the first did.
func (l *Lease) Release(ctx context.Context) error {
	l.release.Do(func() {
		last := l.hold.leave(l)
		l.end()
		if last {
			l.err = l.hold.lease.Release(ctx)
			l.hold.set.leave()
			g := l.hold.lease.Grant()
			l.hold.manager.metrics.released(l.hold.lock, g.Began)
			l.hold.manager.order.released(g.Key)
			l.hold.manager.rules.policies.leave(l.hold.lock)
		} else if cause := context.Cause(l.hold.lease.Context()); errors.Is(cause, ErrLost) {
			l.err = cause
		}
		if l.err != nil {
			l.err = fmt.Errorf("%s: %w", l.hold.lock, l.err)
		}
		l.err = errors.Join(l.err, l.with.Release(ctx))
	})
	return l.err
}

// leave reports whether the lease is the last one of the term that is released.
func (h *hold) leave(l *Lease) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases = slices.DeleteFunc(h.leases, func(other *Lease) bool { return other == l })
	h.stopIfForgotten()
	return len(h.leases) == 0
}

// Tx is a transaction of the coordination database. [*sql.Tx] is one; package
// [github.com/observerd/observerd/locks/database] makes one of a pgx.Tx.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Guard makes the caller's transaction depend on the lease, and on its intents: it renews
// them in it, by their terms. The error is [ErrFenced] when one has ended; roll back then. It
// is also [ErrLost] when the lease was released.
// Otherwise no other can take the lock before the transaction ends, and none has had it
// since the lease began; a client that knows no modes, such as a Spring node, can take one
// that is shared when its TTL is over. Keep what follows short: the lease is not renewed meanwhile. When
// its renewal is overdue because of other such transactions, Guard waits for a sixth of the
// TTL at most, and 5 s, in which no transaction begins to keep it from being renewed.
//
// Under REPEATABLE READ and SERIALIZABLE of PostgreSQL, call it before anything else: a
// transaction that has read before does not see a renewal that came since. The error is the
// server's then, with the code 40001, whether the lease has ended or not; roll back and begin
// anew. The error is [ErrUnsupported] where the provider has no such transactions.
func (l *Lease) Guard(ctx context.Context, tx Tx) error {
	all := append(slices.Clone(l.with), l)
	if err := all.areHeld(); err != nil {
		return fmt.Errorf("guard by %w: %w", err, ErrFenced)
	}
	if err := lock.AwaitRenewals(ctx, fn.Each(all, func(other *Lease) *lock.Lease { return other.hold.lease })); err != nil {
		return fmt.Errorf("guard by %s: %w", l.hold.lock, err)
	}
	for _, other := range all {
		if err := other.hold.guard(ctx, tx); err != nil {
			return fmt.Errorf("guard by %s: %w", other.hold.lock, err)
		}
	}
	return nil
}

func (h *hold) guard(ctx context.Context, tx Tx) error {
	guard := h.manager.can.Guard
	if guard == nil {
		return ErrUnsupported
	}
	h.touching.RLock()
	defer h.touching.RUnlock()
	text, args := guard.GuardSQL(h.lease.Grant())
	result, err := tx.ExecContext(ctx, text, args...)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = ErrFenced
		// The transaction may be of another database, or see none of what came after it
		// began. A renewal tells, and ends the context of a lease that was lost.
		h.lease.RenewNow()
	}
	return err
}

package locks

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// Pauses are those between the attempts to take a lock that another holds. After the last
// of them, and one more attempt, waiting is over. Callers that wait stand in line: they are
// woken when their turn has come, and no other gets the lock past them; see
// [Manager.Acquire]. A set of locks stands in the line of each.
type Pauses = iter.Seq[time.Duration]

// Backoff returns pauses that begin at first and double, each longer or shorter by up to
// a tenth, so that attempts of several processes spread.
func Backoff(first time.Duration, pauses int) Pauses {
	return func(yield func(time.Duration) bool) {
		for i, d := 0, first; i < pauses && yield(spread(d)); i, d = i+1, 2*d {
		}
	}
}

// Fixed returns that many pauses of the same length.
func Fixed(d time.Duration, pauses int) Pauses {
	return func(yield func(time.Duration) bool) {
		for i := 0; i < pauses && yield(d); i++ {
		}
	}
}

// spread returns a time between nine and eleven tenths of d.
func spread(d time.Duration) time.Duration {
	tenth := max(d, 0) / 10
	return d - tenth + rand.N(2*tenth+1)
}

// Option changes what [Manager.Acquire] takes, and how it waits for a lock that is held.
// Without one it tries again after about 1, 2, 4, 8 and 16 seconds. The last of several
// options for the same thing counts. One that is nil is a [*DescriptorError].
type Option interface{ acquires(*waiting) }

// StealOption changes how [Manager.Steal] takes a lock. One that is nil is a
// [*DescriptorError].
type StealOption interface{ steals(*waiting) }

// HoldOption bounds how long a lock is held, however it was taken.
type HoldOption interface {
	Option
	StealOption
}

type (
	acquireOption func(*waiting)
	stealOption   func(*waiting)
	holdOption    func(*waiting)
)

func (o acquireOption) acquires(w *waiting) { o(w) }
func (o stealOption) steals(w *waiting)     { o(w) }
func (o holdOption) acquires(w *waiting)    { o(w) }
func (o holdOption) steals(w *waiting)      { o(w) }

// waiting is how a caller acquires.
type waiting struct {
	pauses   Pauses
	stale    bool  // pauses is not used: see [StealStale]
	wrong    error // what is wrong with pauses
	intents  bool
	priority int
	atLeast  time.Duration
	maxHold  time.Duration
	by       lock.By // of a steal
}

// pausesAfter returns the pauses. The error is that of the last attempt.
func (w waiting) pausesAfter(err *error) Pauses {
	if !w.stale {
		return w.pauses
	}
	return func(yield func(time.Duration) bool) {
		for errors.Is(*err, lock.ErrBusy) {
			if !yield(0) {
				return
			}
		}
		if held, ok := errors.AsType[*lock.HeldError](*err); ok {
			yield(held.Left)
		}
	}
}

// FailFast does not wait.
func FailFast() Option { return Retry(Fixed(0, 0)) }

// Retry tries again after each of the pauses. Without any, write [FailFast].
func Retry(pauses Pauses) Option {
	var wrong error
	if pauses == nil {
		wrong = &DescriptorError{"retry", "", "has no pauses; use FailFast to try once"}
	}
	return acquireOption(func(w *waiting) { w.pauses, w.stale, w.wrong = pauses, false, wrong })
}

// StealStale waits until the lease is over that was found first, and tries again once: it
// gets the lock of a holder that has died, and does not wait for one that lives. Despite its
// name it takes the lock from nobody who lives and renews it; see [Manager.Steal] for that.
func StealStale() Option { return acquireOption(func(w *waiting) { w.stale, w.wrong = true, nil }) }

// Priority puts the caller before all who wait with a lesser one, and behind those with a
// greater. Without it the priority is 0. It is between -1000 and 1000; one that is not
// counts as the nearest.
func Priority(n int) Option {
	return acquireOption(func(w *waiting) { w.priority = min(max(n, -1000), 1000) })
}

// Within bounds the wait: it tries again, after short pauses, until that time is over, and
// the lease is held for as long as its holder wants. (The deadline of a context that is given
// to [Manager.Acquire] ends the lease too.) With 0 it tries once. An attempt that the provider
// does not answer, or that waits for others of this process, may outlast the wait, by 10 s at most.
func Within(limit time.Duration) Option {
	if limit < 0 {
		wrong := &DescriptorError{"within", limit.String(), "is negative; use 30s, for example, or 0 to try once"}
		return acquireOption(func(w *waiting) { w.wrong = wrong })
	}
	return Retry(func(yield func(time.Duration) bool) {
		end := time.Now().Add(limit)
		for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
			left := time.Until(end)
			if left <= 0 || !yield(min(spread(pause), left)) {
				return
			}
		}
	})
}

// waitingOf returns how a caller with these options acquires. The error is a
// [*DescriptorError], or [ErrUnsupported] where the provider does not have one of them.
func (m *Manager) waitingOf(options []Option) (w waiting, err error) {
	for i, o := range options {
		if o == nil {
			return w, noOption(i)
		}
		o.acquires(&w)
	}
	if w.pauses == nil {
		w.pauses = Backoff(time.Second, 5)
	}
	return w, m.check(w)
}

func noOption(i int) error {
	return &DescriptorError{"options", "", fmt.Sprintf("have nothing as number %d; leave it out", i+1)}
}

// wait takes the locks from the provider. It returns how often it tried, too.
func (m *Manager) wait(ctx context.Context, ds []Descriptor, how waiting) (leases []*lock.Lease, tries int, err error) {
	requests := make([]lock.Request, len(ds))
	holds := m.holds(ctx)
	for i, d := range ds {
		r, err := m.request(d)
		if err != nil {
			return nil, 1, err
		}
		r.Place.Priority, r.Holds = how.priority, holds
		requests[i] = r
	}
	t := m.order.join(requests)
	got := false
	defer func() { // Also where the caller's pauses panic, which may be when they end.
		t.leave(got)
		for i := 0; !got && err == nil && i < len(leases); i++ {
			_ = leases[i].Release(ctx)
		}
	}()
	leases, err = t.try(ctx)
	tries = 1
	if mayWait(err) {
		for pause := range how.pausesAfter(&err) {
			var more int
			leases, more, err = t.tryAfter(ctx, pause)
			if tries += more; !mayWait(err) {
				break
			}
		}
	}
	if got = err == nil; !got {
		return nil, tries, asHeld(err, ds, tries)
	}
	return leases, tries, nil
}

// attempt tries once to take all locks.
type attempt func(ctx context.Context, requests []lock.Request) ([]*lock.Lease, error)

// order is in which the callers of this process get a lock that is held: the line of the
// provider, or the queue where it has none.
type order interface {
	// join returns the turns of a caller.
	join(requests []lock.Request) turns
	// released tells those who wait for it that this process has released a lock.
	released(key string)
	// close refuses those who wait.
	close(ctx context.Context) error
}

// turns are those of a caller: at its first attempt, and while it waits for another one.
type turns interface {
	// try makes an attempt.
	try(ctx context.Context) ([]*lock.Lease, error)
	// tryAfter tries again after the pause, and before it whenever the caller's turn may
	// have come. It returns how often it tried. It is called after a refusal.
	tryAfter(ctx context.Context, pause time.Duration) (leases []*lock.Lease, tries int, err error)
	// leave ends the wait of a caller that has got the locks, or has given up. It is called
	// once, at last.
	leave(got bool)
}

// mayWait reports whether a later attempt may succeed: another has the lock, or the attempt
// has waited in vain for others of this process.
func mayWait(err error) bool { return errors.Is(err, ErrHeld) || errors.Is(err, lock.ErrBusy) }

// attemptWait is how long an attempt waits for others of this process.
const attemptWait = 5 * time.Second

// enter waits until an attempt may begin. The error is [lock.ErrBusy] when others have taken
// too long, as where the database hangs.
func (m *Manager) enter(ctx context.Context) error {
	if m.attempts == nil {
		return nil
	}
	limit := time.NewTimer(attemptWait)
	defer limit.Stop()
	select {
	case m.attempts <- struct{}{}:
		return nil
	case <-limit.C:
		return lock.ErrBusy
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *Manager) exit() {
	if m.attempts != nil {
		<-m.attempts
	}
}

// try makes one attempt.
func (m *Manager) try(ctx context.Context, requests []lock.Request) ([]*lock.Lease, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.exit()
	if len(requests) > 1 {
		return m.keeper.AcquireAll(ctx, requests)
	}
	l, err := m.keeper.Acquire(ctx, requests[0])
	return []*lock.Lease{l}, err
}

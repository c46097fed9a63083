package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/wait"
)

// releaseTimeout limits a release. The caller's own deadline and cancellation do not,
// because a lease that is not released lasts until its TTL is over.
const releaseTimeout = 5 * time.Second

// renewalPause is how often an extension looks whether a renewal has ended.
const renewalPause = 10 * time.Millisecond

// Lease is a lock that this process holds, as far as it can know. Its context ends when
// that can no longer be trusted.
type Lease struct {
	keeper *Keeper
	ctx    context.Context
	cancel context.CancelCauseFunc

	release    sync.Once
	releaseErr error

	mu sync.Mutex
	// grant has the TTL of the provider's row, or the greater one where that is not
	// known; lives is the TTL that the lease is trusted by.
	grant    Grant
	lives    time.Duration
	timer    *time.Timer // fires when trust ends
	limit    *time.Timer // fires when it was held for too long; nil for no limit
	trusted  time.Time
	due      time.Time // of the next renewal
	renewing bool
	ended    error // why the lease is over; nil while it is held
	atLeast  time.Duration
	gone     bool // the provider has reported that the term has ended
}

func newLease(ctx context.Context, k *Keeper, g Grant) *Lease {
	l := &Lease{keeper: k, grant: g, lives: g.TTL}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.trusted = g.Began.Add(trust(g.TTL))
	l.due = g.Began.Add(k.pace(g.TTL))
	l.mu.Lock() // the timer may fire at once
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(time.Until(l.trusted), l.expire)
	return l
}

// Grant returns the acquisition, whose term every fenced write names.
func (l *Lease) Grant() Grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grant
}

// TTL is how long the lease lives without a renewal.
func (l *Lease) TTL() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lives
}

// Fence returns the fencing token.
func (l *Lease) Fence() int64 { return l.Grant().Fence }

// Context is the work's context. It ends with the cause [ErrLost] at the
// moment the lease cannot be trusted any more, and with [context.Canceled] at
// its release.
func (l *Lease) Context() context.Context { return l.ctx }

// Release ends the lease's context, stops its renewal and releases the lock, also
// when ctx has ended. The error is [ErrLost] when the lease had been lost
// before. A second call returns what the first did.
func (l *Lease) Release(ctx context.Context) error {
	l.release.Do(func() { l.releaseErr = l.releaseOnce(ctx) })
	return l.releaseErr
}

func (l *Lease) releaseOnce(ctx context.Context) error {
	lost := l.end(nil)
	l.keeper.remove(l)
	l.mu.Lock()
	g, gone := l.grant, l.gone
	l.mu.Unlock()
	if gone {
		if !errors.Is(lost, ErrLost) {
			lost = ErrLost
		}
		return fmt.Errorf("release lock %s: %w", g.Key, lost)
	}
	// A lease that was given up because no renewal was answered may still exist at the
	// provider, and block the next holder.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	err := l.giveBack(ctx)
	switch {
	case errors.Is(lost, ErrLost):
		if errors.Is(err, ErrLost) {
			err = nil // It says the same.
		}
		return errors.Join(fmt.Errorf("release lock %s: %w", g.Key, lost), err)
	case lost == nil && errors.Is(err, ErrLost):
		l.keeper.metrics.lost.Inc() // It is noticed only here.
	}
	return err
}

// Extend lets the lease run for ttl from now, and from each later renewal. The error is
// [ErrUnsupported] when the provider has no [Extender], and [ErrLost] when the lease has
// ended. After any other error the lease is held, and lives by the shorter TTL: the
// answer alone may have been lost.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	extender := l.keeper.can.Extender
	if extender == nil {
		return fmt.Errorf("extend lock %s: %w", l.Grant().Key, ErrUnsupported)
	}
	if err := l.pauseRenewal(ctx); err != nil {
		return err
	}
	defer l.keeper.wakeLoop()
	began, g := time.Now(), l.Grant()
	ctx, cancel := context.WithTimeout(ctx, renewTimeout([]*Lease{l}, began))
	defer cancel()
	err := extender.Extend(ctx, g, ttl)
	switch {
	case err == nil:
		l.setTTL(ttl, ttl, began)
		l.renewed(Renewed, began, true)
		if l.ctx.Err() != nil {
			err = fmt.Errorf("extend lock %s: %w", g.Key, ErrLost) // The answer came too late.
		}
	case errors.Is(err, ErrLost):
		l.renewed(Lost, began, true)
	default:
		l.setTTL(max(ttl, g.TTL), min(ttl, l.TTL()), began)
		l.renewed(Unknown, began, false)
	}
	return err
}

// pauseRenewal keeps the lease from being renewed with its present TTL until it was
// extended. It waits for a renewal that runs.
func (l *Lease) pauseRenewal(ctx context.Context) error {
	for {
		paused, err := l.tryPauseRenewal()
		if paused || err != nil {
			return err
		}
		if !wait.For(ctx, renewalPause) {
			return context.Cause(ctx)
		}
	}
}

func (l *Lease) tryPauseRenewal() (paused bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return false, fmt.Errorf("extend lock %s: %w", l.grant.Key, ErrLost)
	}
	paused = !l.renewing
	l.renewing = true
	return paused, nil
}

// setTTL makes the lease live by another TTL since that moment.
func (l *Lease) setTTL(ofRow, lives time.Duration, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grant.TTL, l.lives = ofRow, lives
	if until := since.Add(trust(lives)); l.ended == nil && until.Before(l.trusted) {
		l.trusted = until
		l.timer.Reset(time.Until(until))
	}
}

// end ends the lease for the given reason, unless it has ended before, and returns the
// reason for which it ended; nil is a release.
func (l *Lease) end(why error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endLocked(why)
}

func (l *Lease) endLocked(why error) error {
	if l.ended != nil {
		return l.ended
	}
	l.timer.Stop()
	if l.limit != nil {
		l.limit.Stop()
	}
	if l.ended = why; why == nil {
		l.ended = context.Canceled
	}
	l.cancel(l.ended)
	return why
}

// expire runs when the timer fires: trust is over, unless a renewal has just extended
// it.
func (l *Lease) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil || time.Now().Before(l.trusted) {
		return
	}
	_ = l.endLocked(ErrLost)
	l.keeper.lost(l, "not renewed in time")
}

func (l *Lease) trustedUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trusted
}

package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

func TestLeaseOfAStuckWorkerEnds(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		const limit = 5 * ttl
		l := acquire(t, k, want("order"))
		l.EndAfter(limit)
		time.Sleep(limit - time.Second)
		alive(t, l)
		if d := lostAfter(t, l); d != limit {
			t.Errorf("ended after %s, want %s", d, limit)
		}
		if cause := context.Cause(l.Context()); !errors.Is(cause, lock.ErrHeldTooLong) {
			t.Errorf("cause %v, want ErrHeldTooLong", cause)
		}
		if n := p.lost(t); n != 1 {
			t.Errorf("%g leases were counted as lost", n)
		}
		before := len(p.calls())
		if _, err := k.Acquire(t.Context(), want("order")); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("while the worker has not stopped: %v, want ErrHeld", err)
		}
		time.Sleep(ttl)
		if n := len(p.calls()) - before; n != 0 {
			t.Errorf("%d renewals after the end", n)
		}
		other := acquire(t, k, want("order"))
		if err := l.Release(t.Context()); !errors.Is(err, lock.ErrHeldTooLong) {
			t.Errorf("release: %v, want ErrHeldTooLong", err)
		}
		release(t, other)
	})
}

func TestLeaseThatIsHeldTooLongIsGivenBack(t *testing.T) {
	bubble(t, func(t *testing.T, _ *provider, k *lock.Keeper) {
		l := acquire(t, k, want("order"))
		l.EndAfter(ttl)
		lostAfter(t, l)
		if err := l.Release(t.Context()); !errors.Is(err, lock.ErrHeldTooLong) {
			t.Errorf("release: %v, want ErrHeldTooLong", err)
		}
		release(t, acquire(t, k, want("order")))
	})
}

func TestLimitOfALeaseThatHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		l := acquire(t, k, want("order"))
		l.EndAfter(ttl)
		release(t, l)
		lost := acquire(t, k, want("order"))
		p.Expire(lost.Grant())
		lostAfter(t, lost)
		lost.EndAfter(ttl)
		time.Sleep(2 * ttl)
		synctest.Wait()
		if n := p.lost(t); n != 1 {
			t.Errorf("%g leases were counted as lost, want that which expired", n)
		}
		if cause := context.Cause(l.Context()); !errors.Is(cause, context.Canceled) || errors.Is(cause, lock.ErrLost) {
			t.Errorf("a released lease ended because of %v", cause)
		}
		_ = lost.Release(t.Context())
	})
}

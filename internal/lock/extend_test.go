package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

func TestExtendedLeaseIsRenewedByItsNewTTL(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		l := acquire(t, k, want("order"))
		if err := l.Extend(t.Context(), 10*ttl); err != nil {
			t.Fatal(err)
		}
		before := len(p.calls())
		time.Sleep(10*ttl + time.Second)
		alive(t, l)
		if n := len(p.calls()) - before; n != 3 || l.Grant().TTL != 10*ttl {
			t.Errorf("%d renewals in a TTL of %s, want one every third", n, l.Grant().TTL)
		}
		release(t, l)
	})
}

// The renewal that runs would write the former TTL after the new one.
func TestExtensionWaitsForARenewal(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		l := acquire(t, k, want("order"))
		var running atomic.Bool
		p.answerWith(func(ctx context.Context, g []lock.Grant) ([]lock.Renewal, error) {
			running.Store(true)
			time.Sleep(5 * time.Second)
			running.Store(false)
			return p.Memory.Renew(ctx, g)
		})
		p.extend = func() error {
			if running.Load() {
				t.Error("extended while a renewal runs")
			}
			return nil
		}
		time.Sleep(ttl/3 + time.Second)
		if !running.Load() {
			t.Fatal("no renewal runs")
		}
		if err := l.Extend(t.Context(), 2*ttl); err != nil {
			t.Error(err)
		}
		release(t, l)
	})
}

func TestExtensionWhoseAnswerComesTooLate(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		l := acquire(t, k, want("order"))
		p.extend = func() error {
			time.Sleep(ttl)
			return nil
		}
		if err := l.Extend(t.Context(), 2*ttl); !errors.Is(err, lock.ErrLost) {
			t.Errorf("%v, want ErrLost", err)
		}
		_ = l.Release(t.Context())
	})
}

// What the provider did is not known: the lease lives by the shorter TTL.
func TestExtensionWithoutAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		p.extend = func() error { return errDown }
		for wanted, lives := range map[time.Duration]time.Duration{10 * time.Second: 10 * time.Second, 10 * ttl: ttl} {
			l := acquire(t, k, want("order"))
			if err := l.Extend(t.Context(), wanted); !errors.Is(err, errDown) || l.TTL() != lives {
				t.Errorf("%v, TTL %s, want %s", err, l.TTL(), lives)
			}
			p.answerWith(func(context.Context, []lock.Grant) ([]lock.Renewal, error) { return nil, errDown })
			if after := lostAfter(t, l); after > lives {
				t.Errorf("lost after %s, want %s at most", after, lives)
			}
			p.answerWith(nil)
			_ = l.Release(t.Context())
		}
	})
}

// A shorter TTL that did not come through must not end a lease that lives by the longer.
func TestLeaseOutlivesAFailedExtension(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		r := want("order")
		r.TTL = 5 * time.Minute
		l := acquire(t, k, r)
		time.Sleep(90 * time.Second)
		p.extend = func() error { return errDown }
		if err := l.Extend(t.Context(), 20*time.Second); !errors.Is(err, errDown) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		alive(t, l)
		release(t, l)
	})
}

func TestCloseWaitsForAnAcquisition(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		p.answer = time.Second
		got := make(chan error, 1)
		go func() {
			_, err := k.Acquire(t.Context(), want("order"))
			got <- err
		}()
		time.Sleep(time.Millisecond)
		if err := k.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, held := p.Holder(want("order")); held {
			t.Error("the lock is held after Close")
		}
		if err := <-got; !errors.Is(err, lock.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	})
}

package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

func TestLeaseIsRenewedUntilItIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		l := acquire(t, k, want("order"))
		time.Sleep(10*ttl + time.Second)
		alive(t, l)
		if !p.Holds(l.Grant()) {
			t.Error("provider has let the lease expire")
		}
		if n := len(p.calls()); n != 30 {
			t.Errorf("%d renewals in ten TTLs, want one every third", n)
		}
		release(t, l)
		if cause := context.Cause(l.Context()); !errors.Is(cause, context.Canceled) {
			t.Errorf("released lease's context ended because of %v", cause)
		}
		time.Sleep(ttl)
		if n := len(p.calls()); n != 30 {
			t.Error("lease was renewed after its release")
		}
	})
}

func TestReleaseIsIdempotentAndIgnoresCancellation(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		l := acquire(t, k, want("order"))
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for range 2 {
			if err := l.Release(over); err != nil {
				t.Errorf("release: %v", err)
			}
		}
		if _, held := p.Holder(want("order")); held {
			t.Error("lock is still held")
		}
	})
}

func TestManyLeasesAreRenewedInOneCall(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		for _, key := range []string{"order", "inventory", "wes"} {
			l := acquire(t, k, want(key))
			defer release(t, l)
			time.Sleep(time.Second)
		}
		time.Sleep(ttl)
		for _, size := range p.calls() {
			if size != 3 {
				t.Fatalf("renewals were of %v leases, want all three each time", p.calls())
			}
		}
	})
}

func TestVeryManyLeasesAreRenewedInBoundedCalls(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		var failed atomic.Bool
		p.answerWith(func(ctx context.Context, g []lock.Grant) ([]lock.Renewal, error) {
			if failed.CompareAndSwap(false, true) {
				return nil, errDown
			}
			return p.Memory.Renew(ctx, g)
		})
		for i := range 1200 {
			_ = acquire(t, k, want(fmt.Sprint("page-", i)))
		}
		time.Sleep(ttl/3 + time.Millisecond)
		synctest.Wait()
		sizes := p.calls()
		slices.Sort(sizes)
		if !slices.Equal(sizes, []int{200, 500, 500}) {
			t.Errorf("calls of %v leases", sizes)
		}
		time.Sleep(10 * ttl)
		if n := p.lost(t); n != 0 {
			t.Errorf("%v leases were lost by one call that failed", n)
		}
	})
}

func TestAcquireWithinWaitsForTheHolder(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		first := acquire(t, k, want("order"))
		began := time.Now()
		_, err := k.AcquireWithin(t.Context(), want("order"), time.Second)
		var held *lock.HeldError
		if !errors.As(err, &held) || held.Node != "a" {
			t.Errorf("error %v does not say who holds the lock", err)
		}
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("waited %s, want a second", waited)
		}
		if n := p.Attempts("order"); n < 3 || n > 12 {
			t.Errorf("%d attempts in a second", n)
		}
		time.AfterFunc(300*time.Millisecond, func() { release(t, first) })
		second, err := k.AcquireWithin(t.Context(), want("order"), time.Second)
		if err != nil {
			t.Fatalf("acquire: %v", err)
		}
		release(t, second)
	})
}

func TestAcquireWithinTriesOnceWithoutAWait(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		defer release(t, acquire(t, k, want("order")))
		if _, err := k.AcquireWithin(t.Context(), want("order"), 0); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("error %v, want ErrHeld", err)
		}
		if n := p.Attempts("order"); n != 2 {
			t.Errorf("%d attempts, want the holder's and one", n)
		}
	})
}

func TestInterruptedWaitReturnsTheCause(t *testing.T) {
	bubble(t, func(t *testing.T, _ *provider, k *lock.Keeper) {
		defer release(t, acquire(t, k, want("order")))
		stopping := errors.New("stopping")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stopping) })
		if _, err := k.AcquireWithin(ctx, want("order"), time.Minute); !errors.Is(err, stopping) {
			t.Errorf("error %v, want the cause of the interruption", err)
		}
	})
}

func TestAnswerThatComesTooLateIsNoLease(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		p.answer = ttl
		if _, err := k.Acquire(t.Context(), want("order")); !errors.Is(err, lock.ErrLost) {
			t.Errorf("error %v, want ErrLost", err)
		}
		if _, held := p.Holder(want("order")); held {
			t.Error("lock was not given back")
		}
	})
}

func TestLeaseEndsWithTheContextOfItsAcquisition(t *testing.T) {
	bubble(t, func(t *testing.T, _ *provider, k *lock.Keeper) {
		ctx, cancel := context.WithCancel(t.Context())
		l, err := k.Acquire(ctx, want("order"))
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		<-l.Context().Done()
		release(t, l)
	})
}

func TestCloseTakesLeasesBackAndRefusesNewOnes(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		l := acquire(t, k, want("order"))
		if err := k.Close(t.Context()); err != nil {
			t.Fatalf("close: %v", err)
		}
		if cause := context.Cause(l.Context()); !errors.Is(cause, lock.ErrClosed) {
			t.Errorf("lease ended because of %v, want ErrClosed", cause)
		}
		if p.Holds(l.Grant()) {
			t.Error("lease was not released")
		}
		if _, err := k.Acquire(t.Context(), want("order")); !errors.Is(err, lock.ErrClosed) {
			t.Errorf("error %v, want ErrClosed", err)
		}
	})
}

// TestCloseOutlastsAProviderThatHangs has many leases and a database that does
// not answer any more.
func TestCloseOutlastsAProviderThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &provider{release: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		k := lock.NewKeeper(lock.KeeperOptions{Provider: p})
		for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
			acquire(t, k, want(key))
		}
		began := time.Now()
		if err := k.Close(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("closing took %s, the releases wait for each other", took)
		}
	})
}

func TestCloseWaitsForARenewal(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		ended := false
		p.answerWith(func(ctx context.Context, _ []lock.Grant) ([]lock.Renewal, error) {
			<-ctx.Done()
			time.Sleep(time.Second) // a driver that is slow to notice
			ended = true
			return nil, ctx.Err()
		})
		l := acquire(t, k, want("order"))
		time.Sleep(ttl/3 + time.Second)
		alive(t, l)
		synctest.Wait()
		if err := k.Close(t.Context()); err != nil || !ended {
			t.Errorf("close returned %v before the renewal had ended: %t", err, !ended)
		}
	})
}

func TestRequestThatNobodyCanServeIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		for name, spoil := range map[string]func(*lock.Request){
			"no key":    func(r *lock.Request) { r.Key = "" },
			"no region": func(r *lock.Request) { r.Region = "" },
			"no TTL":    func(r *lock.Request) { r.TTL = 0 },
		} {
			r := want("order")
			spoil(&r)
			if _, err := k.Acquire(t.Context(), r); err == nil || p.Attempts(r.Key) != 0 {
				t.Errorf("%s: error %v, %d attempts", name, err, p.Attempts(r.Key))
			}
		}
	})
}

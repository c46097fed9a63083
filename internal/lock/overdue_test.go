package lock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// busyRow is a row that transactions lock; meanwhile no renewal gets at it.
type busyRow struct{ locked atomic.Int32 }

func (r *busyRow) renew(p *provider) func(context.Context, []lock.Grant) ([]lock.Renewal, error) {
	return func(ctx context.Context, g []lock.Grant) ([]lock.Renewal, error) {
		if r.locked.Load() > 0 {
			return make([]lock.Renewal, len(g)), nil
		}
		return p.Memory.Renew(ctx, g)
	}
}

// Short transactions that are guarded by one lease, of several workers, leave no moment in
// which none runs.
func TestGuardsLetTheLeaseBeRenewed(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		var row busyRow
		p.answerWith(row.renew(p))
		l := acquire(t, k, want("order"))
		end := time.Now().Add(5 * ttl)
		var workers sync.WaitGroup
		for i := range 8 {
			workers.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				for time.Now().Before(end) {
					if err := lock.AwaitRenewals(t.Context(), []*lock.Lease{l}); err != nil {
						t.Error(err)
					}
					row.locked.Add(1)
					time.Sleep(time.Second)
					row.locked.Add(-1)
				}
			})
		}
		workers.Wait()
		alive(t, l)
		release(t, l)
	})
}

// A transaction that is guarded twice waits for a renewal that it keeps from running itself.
func TestWaitForARenewalIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, p *provider, k *lock.Keeper) {
		var row busyRow
		p.answerWith(row.renew(p))
		l := acquire(t, k, want("order"))
		row.locked.Add(1)
		time.Sleep(ttl/2 - time.Second)
		began := time.Now()
		if err := lock.AwaitRenewals(t.Context(), []*lock.Lease{l}); err != nil || time.Since(began) != 0 {
			t.Errorf("waited %s when no renewal was overdue: %v", time.Since(began), err)
		}
		time.Sleep(2 * time.Second)
		began = time.Now()
		if err := lock.AwaitRenewals(t.Context(), []*lock.Lease{l}); err != nil || time.Since(began) != 5*time.Second {
			t.Errorf("waited %s: %v, want 5s", time.Since(began), err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errDown)
		if err := lock.AwaitRenewals(ctx, []*lock.Lease{l}); !errors.Is(err, errDown) {
			t.Errorf("with a context that has ended: %v", err)
		}
		row.locked.Add(-1)
		time.Sleep(ttl / 12)
		alive(t, l)
		release(t, l)
	})
}

package locktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// tenure is the time for which a contender could trust its lease.
type tenure struct {
	grant      lock.Grant
	from, till time.Time
}

// contenders lets many nodes compete for one lock, some of which die with it, and
// checks the whole history afterwards.
func contenders(t *testing.T, h Harness) {
	const nodes, each = 8, 6
	var (
		mu      sync.Mutex
		history []tenure
		work    sync.WaitGroup
	)
	for n := range nodes {
		p := h.Provider()
		work.Go(func() {
			for i := range each {
				held := contend(t, h, p, h.Expire != nil && (n+i)%5 == 0)
				mu.Lock()
				history = append(history, held)
				mu.Unlock()
			}
		})
	}
	work.Wait()
	if t.Failed() {
		return
	}
	check(t, history)
}

// contend acquires, holds for a moment, and releases; a node that dies lets its lease
// expire instead.
func contend(t *testing.T, h Harness, p lock.Provider, dies bool) tenure {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		began := time.Now()
		g, err := p.Acquire(ctx, h.request("contender"))
		if err != nil && !errors.Is(err, lock.ErrHeld) && !timedOut(ctx, err) {
			t.Errorf("acquire: %v", err)
			return tenure{}
		}
		if err == nil {
			held := tenure{grant: g, from: time.Now()}
			wait(ctx, 2*time.Millisecond)
			held.till = time.Now()
			if dies {
				h.Expire(t, g)
			} else if err := p.Release(ctx, g); err != nil && !timedOut(ctx, err) && (!h.Unanswered || !errors.Is(err, lock.ErrLost)) {
				t.Errorf("release: %v", err)
			}
			return held
		}
		// Attempts in vain leave time to the holder: two or three of seven are under way.
		wait(ctx, max(time.Millisecond, 2*time.Since(began)))
	}
}

// timedOut reports whether the provider's own time limit ended an attempt, as on a
// machine that stands still. The result is unknown: in the worst case the lock is free
// again when its TTL is over.
func timedOut(ctx context.Context, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func check(t *testing.T, history []tenure) {
	t.Helper()
	slices.SortFunc(history, func(a, b tenure) int { return a.from.Compare(b.from) })
	terms := make(map[string]bool)
	for i, held := range history {
		if terms[held.grant.Term] {
			t.Errorf("term %s was given twice", held.grant.Term)
		}
		terms[held.grant.Term] = true
		if i == 0 {
			continue
		}
		before := history[i-1]
		if held.from.Before(before.till) {
			t.Errorf("two holders at a time, fences %d and %d", before.grant.Fence, held.grant.Fence)
		}
		if held.grant.Fence <= before.grant.Fence {
			t.Errorf("fence %d was given after %d", held.grant.Fence, before.grant.Fence)
		}
	}
}

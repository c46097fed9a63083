package locktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// stay is the time for which a term held the lock at least: from the answer to its
// acquisition to the call that ended it. Who has died holds it no longer than that either.
type stay struct {
	term     string
	mode     lock.Mode
	from, to time.Time
}

// history is what clients did with one lock.
type history struct {
	mu    sync.Mutex
	stays []stay
}

// impossible returns two stays that no single lock can have granted. A call takes effect
// at one moment between its sending and its answer. Taken as late as that allows, an
// acquisition ends where its stay begins, and taken as early, a release is where the stay
// ends: the history can be that of one lock exactly when no stays in conflict overlap.
func (h *history) impossible() (a, b stay, found bool) {
	for i, a := range h.stays {
		for _, b := range h.stays[:i] {
			if a.mode.Conflicts(b.mode) && a.from.Before(b.to) && b.from.Before(a.to) {
				return a, b, true
			}
		}
	}
	return stay{}, stay{}, false
}

// linearizable lets clients share and contend for one lock in all modes. What they did must
// be a history that one client could have made.
func linearizable(t *testing.T, h Harness) {
	var past history
	var work sync.WaitGroup
	for range 6 {
		p := h.Provider()
		work.Go(func() {
			for range 25 {
				if err := past.holdOnce(t, h, p); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	if a, b, found := past.impossible(); found {
		t.Errorf("a history of %d stays cannot be that of one lock: %s (%s) and %s (%s) held it together", len(past.stays), a.term, a.mode, b.term, b.mode)
	}
}

// holdOnce tries until it holds the lock in some mode, and gives it back or lets it expire.
func (h *history) holdOnce(t *testing.T, harness Harness, p lock.Provider) error {
	mode := lock.Modes()[rand.N(len(lock.Modes()))]
	for late := 0; ; {
		g, err := p.Acquire(t.Context(), harness.waiting("a", mode, 0))
		// On a busy machine a call may be late. What it has taken all the same nobody uses.
		if errors.Is(err, context.DeadlineExceeded) && late < 10 {
			late++
			continue
		}
		if errors.Is(err, lock.ErrHeld) {
			wait(t.Context(), time.Duration(rand.N(2000))*time.Microsecond)
			continue
		}
		if err != nil {
			return err
		}
		held := stay{term: g.Term, mode: mode, from: time.Now()}
		wait(t.Context(), time.Duration(rand.N(1000))*time.Microsecond)
		held.to = time.Now()
		if harness.Expire != nil && rand.N(5) == 0 {
			harness.Expire(t, g)
		} else if err := p.Release(context.WithoutCancel(t.Context()), g); err != nil {
			return err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.stays = append(h.stays, held)
		return nil
	}
}

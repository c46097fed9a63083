package locktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/observerd/observerd/internal/lock"
)

// did is one operation in a history: the term came to hold the lock, or holds it no more.
type did struct {
	term string
	mode lock.Mode
	ends bool
}

// holders is the state of the model: those who hold the lock, sorted by term.
type holders []did

// oneLock is a lock in all modes, for porcupine: an acquisition is legal when it goes with
// all who hold the lock.
var oneLock = porcupine.Model{
	Init: func() any { return holders(nil) },
	Step: func(state, input, _ any) (legal bool, next any) {
		held, op := state.(holders), input.(did) //nolint:forcetypeassert // They are made here.
		if op.ends {
			i := slices.IndexFunc(held, func(h did) bool { return h.term == op.term })
			if i < 0 {
				return false, state
			}
			return true, slices.Delete(slices.Clone(held), i, i+1)
		}
		if slices.ContainsFunc(held, func(h did) bool { return h.mode.Conflicts(op.mode) }) {
			return false, state
		}
		next = append(slices.Clone(held), op)
		slices.SortFunc(next.(holders), func(a, b did) int { //nolint:forcetypeassert // As above.
			if a.term < b.term {
				return -1
			}
			return 1
		})
		return true, next
	},
	Equal: func(a, b any) bool { return slices.Equal(a.(holders), b.(holders)) }, //nolint:forcetypeassert // As above.
}

// history is what clients did, in the order of their answers.
type history struct {
	began time.Time
	mu    sync.Mutex
	ops   []porcupine.Operation
}

// note adds an operation that was sent at that moment, and has just been answered.
func (h *history) note(client int, sent time.Time, op did) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: op, Call: int64(sent.Sub(h.began)), Return: int64(time.Since(h.began))})
}

// linearizable lets clients share and contend for one lock in all modes. What they did must
// be a history that one client could have made.
func linearizable(t *testing.T, h Harness) {
	past := history{began: time.Now()}
	var work sync.WaitGroup
	for client := range 6 {
		p := h.Provider()
		work.Go(func() {
			for range 25 {
				if err := past.holdOnce(t, h, p, client); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	switch porcupine.CheckOperationsTimeout(oneLock, past.ops, time.Minute) {
	case porcupine.Illegal:
		t.Errorf("a history of %d operations cannot be that of one lock", len(past.ops))
	case porcupine.Unknown:
		t.Logf("a history of %d operations was not judged in time", len(past.ops))
	case porcupine.Ok:
	}
}

// holdOnce tries until it holds the lock in some mode, and gives it back or lets it expire.
func (h *history) holdOnce(t *testing.T, harness Harness, p lock.Provider, client int) error {
	mode := lock.Modes()[rand.N(len(lock.Modes()))]
	for late := 0; ; {
		sent := time.Now()
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
		op := did{term: g.Term, mode: mode}
		h.note(client, sent, op)
		wait(t.Context(), time.Duration(rand.N(1000))*time.Microsecond)
		op.ends = true
		sent = time.Now()
		if harness.Expire != nil && rand.N(5) == 0 {
			harness.Expire(t, g)
		} else if err := p.Release(context.WithoutCancel(t.Context()), g); err != nil {
			return err
		}
		h.note(client, sent, op)
		return nil
	}
}

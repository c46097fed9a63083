package locks

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
)

// A caller may be refused just before the manager is closed, and come to the line after it.
func TestNoLookBeginsAfterClose(t *testing.T) {
	t.Parallel()
	p := &locktest.Memory{}
	q := newLine(p, nil, slog.New(slog.DiscardHandler))
	if err := q.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := q.enter([]lock.Request{{Key: "late", Region: "LOCKS"}})
	select {
	case <-w.wake:
	default:
		t.Error("the caller is not woken")
	}
	q.leave(w)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running {
		t.Error("a look runs that nobody waits for")
	}
}

var wanted = lock.Request{Key: "page", Region: "LOCKS", TTL: time.Minute, Mode: lock.Exclusive}

// counted is a line that counts what is asked of it.
type counted struct {
	locktest.Memory
	mu          sync.Mutex
	noted, left int
	// noting runs while callers are noted.
	noting func()
}

func (c *counted) Wait(ctx context.Context, requests []lock.Request) ([]lock.Turn, error) {
	c.mu.Lock()
	c.noted += len(requests)
	noting := c.noting
	c.mu.Unlock()
	if noting != nil {
		noting()
	}
	return c.Memory.Wait(ctx, requests)
}

func (c *counted) Leave(ctx context.Context, requests []lock.Request) error {
	c.mu.Lock()
	c.left += len(requests)
	c.mu.Unlock()
	return c.Memory.Leave(ctx, requests)
}

func (c *counted) counts() (noted, left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.noted, c.left
}

// What a caller costs that comes or goes does not depend on how many wait.
func TestLineNotesThoseWhoComeAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &counted{}
		q := newLine(p, nil, slog.New(slog.DiscardHandler))
		const callers = 20
		waiting := make([]*waiter, callers)
		for i := range waiting {
			waiting[i] = q.enter([]lock.Request{wanted})
			synctest.Wait()
		}
		if noted, _ := p.counts(); noted != callers {
			t.Errorf("%d callers were noted %d times as they came", callers, noted)
		}
		time.Sleep(lookEvery + time.Millisecond)
		if noted, _ := p.counts(); noted != 2*callers {
			t.Errorf("%d callers were noted %d times after a look at all", callers, noted)
		}
		r := wanted
		r.Place = q.place(waiting[0])
		if _, err := p.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		q.leave(waiting[0])
		synctest.Wait()
		if noted, left := p.counts(); noted != 2*callers || left != 1 || p.Waiting() != callers-1 {
			t.Errorf("one who has acquired the lock left %d times; %d were noted, %d wait", left, noted, p.Waiting())
		}
		for _, w := range waiting[1:] {
			q.leave(w)
		}
		if err := q.close(t.Context()); err != nil {
			t.Error(err)
		}
		if p.Waiting() != 0 {
			t.Errorf("%d wait at the end", p.Waiting())
		}
	})
}

// A look that runs while a caller acquires the lock notes it again, behind its back.
func TestLineForgetsOneWhoIsNotedTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &counted{}
		q := newLine(p, nil, slog.New(slog.DiscardHandler))
		w := q.enter([]lock.Request{wanted})
		synctest.Wait()
		acquired := false
		p.mu.Lock()
		p.noting = func() {
			if acquired {
				return
			}
			acquired = true
			r := wanted
			r.Place = q.place(w)
			if _, err := p.Acquire(t.Context(), r); err != nil {
				t.Error(err)
			}
			q.leave(w)
		}
		p.mu.Unlock()
		time.Sleep(lookEvery + time.Millisecond)
		synctest.Wait()
		if !acquired || p.Waiting() != 0 {
			t.Errorf("acquired %v; %d wait", acquired, p.Waiting())
		}
		if err := q.close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

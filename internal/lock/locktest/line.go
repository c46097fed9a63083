package locktest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lock"
)

// queue is a client of a provider that has a line.
type queue struct {
	lock.Provider
	lock.Line
	t *testing.T
}

func newQueue(t *testing.T, h Harness) queue {
	t.Helper()
	p := h.Provider()
	l, ok := p.(lock.Line)
	if !ok {
		t.Skip("nobody can wait in line at this provider")
	}
	return queue{p, l, t}
}

// waiting returns the request of a caller that waits.
func (h Harness) waiting(node string, mode lock.Mode, priority int) lock.Request {
	r := h.request(node)
	r.Mode, r.Place = mode, lock.Place{ID: uuid.NewString(), Priority: priority}
	return r
}

// isTurn notes that the caller waits, and reports whether its turn has come.
func (q queue) isTurn(r *lock.Request) bool {
	q.t.Helper()
	turns, err := q.Wait(q.t.Context(), []lock.Request{*r})
	if err != nil || len(turns) != 1 || turns[0].Ticket <= 0 {
		q.t.Fatalf("wait: %+v, %v", turns, err)
	}
	if t := r.Place.Ticket; t != 0 && t != turns[0].Ticket {
		q.t.Fatalf("ticket %d became %d", t, turns[0].Ticket)
	}
	r.Place.Ticket = turns[0].Ticket
	return turns[0].Come
}

func (q queue) acquire(r lock.Request) lock.Grant {
	q.t.Helper()
	return acquire(q.t, q.Provider, r)
}

func (q queue) release(g lock.Grant) {
	q.t.Helper()
	release(q.t, q.Provider, g)
}

// passed tries to get past the one who waits.
func (q queue) passed(r lock.Request, waits string) {
	q.t.Helper()
	var held *lock.HeldError
	if err := refuse(q.t, q.Provider, r); !errors.As(err, &held) || !held.Waits || held.Node != waits {
		q.t.Errorf("%v does not say that %s waits", err, waits)
	}
}

func inOrder(t *testing.T, h Harness) {
	a, b, c := newQueue(t, h), newQueue(t, h), newQueue(t, h)
	holder := a.acquire(h.waiting("a", lock.Exclusive, 0))
	first, second := h.waiting("b", lock.Exclusive, 0), h.waiting("c", lock.Exclusive, 0)
	if b.isTurn(&first) || c.isTurn(&second) {
		t.Error("a held lock is for those who wait")
	}
	a.release(holder)
	if !b.isTurn(&first) || c.isTurn(&second) {
		t.Error("it is not the first one's turn alone")
	}
	c.passed(h.waiting("d", lock.Exclusive, 0), "b")
	c.passed(second, "b")
	held := b.acquire(first)
	b.release(held)
	if !c.isTurn(&second) {
		t.Error("the second does not come after the first")
	}
	c.release(c.acquire(second))
	a.release(a.acquire(h.waiting("d", lock.Exclusive, 0)))
}

func byPriority(t *testing.T, h Harness) {
	a, b, c := newQueue(t, h), newQueue(t, h), newQueue(t, h)
	holder := a.acquire(h.waiting("a", lock.Exclusive, 0))
	low, high := h.waiting("b", lock.Exclusive, 0), h.waiting("c", lock.Exclusive, 5)
	b.isTurn(&low)
	c.isTurn(&high)
	a.release(holder)
	if b.isTurn(&low) || !c.isTurn(&high) {
		t.Error("the lesser priority is ahead")
	}
	b.passed(low, "c")
	a.release(a.acquire(h.waiting("d", lock.Exclusive, 6)))
	if err := c.Leave(t.Context(), []lock.Request{high}); err != nil {
		t.Fatal(err)
	}
	b.release(b.acquire(low))
}

func writerWaits(t *testing.T, h Harness) {
	_ = h.shared(t, "a", lock.Shared)
	a, b, w := newQueue(t, h), newQueue(t, h), newQueue(t, h)
	reading := a.acquire(h.waiting("a", lock.Shared, 0))
	writer, reader := h.waiting("w", lock.Exclusive, 0), h.waiting("b", lock.Shared, 0)
	if w.isTurn(&writer) || b.isTurn(&reader) {
		t.Error("the writer is passed")
	}
	if err := refuse(t, b.Provider, h.waiting("c", lock.Shared, 0)); err == nil {
		t.Error("a reader has passed the writer")
	}
	a.release(reading)
	writing := w.acquire(writer)
	w.release(writing)
	if !b.isTurn(&reader) {
		t.Error("the reader does not come after the writer")
	}
	first := b.acquire(reader)
	// One who waits and goes with the other is not in the way.
	change := h.waiting("x", lock.IntentExclusive, 0)
	if w.isTurn(&change) {
		t.Error("the intent does not wait for the reader")
	}
	a.release(a.acquire(h.waiting("i", lock.Intent, 0)))
	_ = refuse(t, a.Provider, h.waiting("r", lock.Shared, 0))
	b.release(first)
	w.release(w.acquire(change))
}

func losesItsPlace(t *testing.T, h Harness) {
	a, b := newQueue(t, h), newQueue(t, h)
	holder := a.acquire(h.waiting("a", lock.Exclusive, 0))
	first := h.waiting("b", lock.Exclusive, 0)
	b.isTurn(&first)
	a.release(holder)
	_ = refuse(t, a.Provider, h.waiting("c", lock.Exclusive, 0))
	pause(t, 6*time.Second)
	a.release(a.acquire(h.waiting("c", lock.Exclusive, 0)))
	if !b.isTurn(&first) {
		t.Error("its place is lost for ever")
	}
	b.release(b.acquire(first))
}

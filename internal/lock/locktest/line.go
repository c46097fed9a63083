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
	return queue{p, p.Capabilities().Line, t}
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
	set := []lock.Request{*r}
	come := q.isTurnOf(set)
	*r = set[0]
	return come
}

// isTurnOf is isTurn of a caller that wants several locks.
func (q queue) isTurnOf(set []lock.Request) bool {
	q.t.Helper()
	turns, err := q.Wait(q.t.Context(), set)
	if err != nil || len(turns) != len(set) || turns[0].Ticket <= 0 {
		q.t.Fatalf("wait: %+v, %v", turns, err)
	}
	come := true
	for i, turn := range turns {
		if t := set[i].Place.Ticket; turn.Ticket != turns[0].Ticket || t != 0 && t != turn.Ticket {
			q.t.Fatalf("ticket %d became %d; those of the caller are %+v", t, turn.Ticket, turns)
		}
		set[i].Place.Ticket = turn.Ticket
		come = come && turn.Come
	}
	return come
}

// waitingForAll returns the requests of a caller that waits for all these keys.
func (h Harness) waitingForAll(node string, keys ...string) []lock.Request {
	set := make([]lock.Request, len(keys))
	for i, key := range keys {
		set[i] = h.waiting(node, lock.Exclusive, 0)
		set[i].Key, set[i].Place = key, set[0].Place
	}
	return set
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

func setInAllLines(t *testing.T, h Harness) {
	a, b, c := newQueue(t, h), newQueue(t, h), newQueue(t, h)
	one := func(node, key string) lock.Request { return h.waitingForAll(node, key)[0] }
	first, second := a.acquire(one("a", "first")), a.acquire(one("a", "second"))
	set, behind := h.waitingForAll("set", "third", "second", "first"), one("c", "third")
	if b.isTurnOf(set) || c.isTurn(&behind) {
		t.Error("a held set is for the one who waits, or its free lock for one behind it")
	}
	if behind.Place.Ticket <= set[0].Place.Ticket {
		t.Errorf("the set has the ticket %d, and one behind it %d", set[0].Place.Ticket, behind.Place.Ticket)
	}
	c.passed(behind, "set")
	a.release(second)
	c.passed(one("d", "second"), "set")
	if b.isTurnOf(set) {
		t.Error("a set is for the one who waits though one of its locks is held")
	}
	a.release(first)
	if c.isTurn(&behind) || !b.isTurnOf(set) {
		t.Error("it is not the set's turn")
	}
	grants, err := b.Capabilities().Sets.AcquireAll(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		b.release(g)
	}
	// It has left all lines, and does so when it gives up.
	a.release(a.acquire(one("d", "first")))
	if !c.isTurn(&behind) {
		t.Error("the next one does not come after the set")
	}
	c.release(c.acquire(behind))
	third := a.acquire(one("a", "third"))
	set = h.waitingForAll("set", "first", "second", "third")
	b.isTurnOf(set)
	c.passed(one("d", "second"), "set")
	if err := b.Leave(t.Context(), set[:1]); err != nil {
		t.Fatal(err)
	}
	a.release(a.acquire(one("d", "second")))
	a.release(third)
}

// A holder that wants another lock would wait for the set that waits for it, or for one who
// waits behind that set.
func holderPasses(t *testing.T, h Harness) {
	a, b, c := newQueue(t, h), newQueue(t, h), newQueue(t, h)
	held := a.acquire(h.waitingForAll("a", "held")[0])
	set, behind := h.waitingForAll("set", "free", "held"), h.waitingForAll("c", "free")[0]
	b.isTurnOf(set)
	c.passed(behind, "set")
	stranger := h.waitingForAll("a", "free")[0]
	stranger.Holds = map[string]lock.Mode{"another": lock.Exclusive, "hel": lock.Exclusive, "free-held": lock.Exclusive}
	c.passed(stranger, "set")
	own := h.waitingForAll("a", "free")
	own[0].Holds = map[string]lock.Mode{"another": lock.Exclusive, "held": lock.Exclusive}
	for range 2 {
		if !a.isTurnOf(own) {
			t.Error("the holder waits for those who wait for it")
		}
		a.release(a.acquire(own[0]))
		c.isTurn(&behind)
	}
	grants, err := a.Capabilities().Sets.AcquireAll(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	a.release(grants[0])
	a.release(held)
	if !b.isTurnOf(set) {
		t.Error("it is not the set's turn")
	}
}

// A holder keeps its place behind those whom its hold does not keep out.
func sharerWaits(t *testing.T, h Harness) {
	a, b := newQueue(t, h), newQueue(t, h)
	held := h.waitingForAll("a", "held")[0]
	held.Mode = lock.Shared
	shared := a.acquire(held)
	other := h.waitingForAll("b", "free")[0]
	free := b.acquire(other)
	set := h.waitingForAll("set", "free", "held")
	set[1].Mode = lock.Intent
	b.isTurnOf(set)
	b.release(free)
	own := h.waitingForAll("a", "free")[0]
	own.Holds = map[string]lock.Mode{"held": lock.Shared}
	a.passed(own, "set")
	a.release(shared)
}

// user takes one lock again and again, each time from the end of the line.
type user struct {
	queue
	key     string
	request lock.Request
	grant   *lock.Grant
	// served is how often it has had the lock.
	served int
}

func (u *user) step(h Harness) {
	switch {
	case u.grant != nil:
		u.release(*u.grant)
		u.grant, u.request = nil, h.waitingForAll(u.key, u.key)[0]
		u.isTurn(&u.request)
	case u.isTurn(&u.request):
		g := u.acquire(u.request)
		u.grant = &g
		u.served++
	}
}

// Each key has two users, and is never free without one of them waiting. A set of all keys
// waits for those that were there before it, and for no other.
func setIsServed(t *testing.T, h Harness) {
	q := newQueue(t, h)
	keys := []string{"first", "second", "third"}
	var users []*user
	for _, key := range append(keys, keys...) {
		users = append(users, &user{queue: newQueue(t, h), key: key, request: h.waitingForAll(key, key)[0]})
	}
	set := h.waitingForAll("set", keys...)
	const noted, most = 20, 60
	for step := range most {
		for i, u := range users {
			if (step+i)%2 == 0 { // So that their holds end at different times.
				u.step(h)
			}
		}
		if step < noted {
			continue
		}
		if step == noted {
			for _, u := range users {
				if u.served < 2 {
					t.Fatalf("a user of %s was served %d times before the set came", u.key, u.served)
				}
				u.served = 0
			}
		}
		if !q.isTurnOf(set) {
			continue
		}
		if _, err := q.Capabilities().Sets.AcquireAll(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		served := make(map[string]int)
		for _, u := range users {
			served[u.key] += u.served
		}
		for key, n := range served {
			if n > 2 {
				t.Errorf("%s was granted %d times after the set stood in line", key, n)
			}
		}
		return
	}
	t.Errorf("the set has nothing after %d steps", most-noted)
}

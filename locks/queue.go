package locks

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/wait"
)

const (
	// firstAsk and lastAsk bound how often the first caller asks where the provider tells of
	// releases: the call for one that it has missed, or that was no release, as an expiry.
	firstAsk = 100 * time.Millisecond
	lastAsk  = time.Second
	// listenFor is for how long the process listens after a caller has waited, so that
	// one after the other costs no subscription each.
	listenFor = 5 * time.Second
)

// queue are the callers of this process that want locks of a provider without a line, in
// their order. The first one of those who want a key asks the provider. While it is
// refused, the others wait behind it, and ask nobody.
type queue struct {
	attempt attempt
	notify  func(ctx context.Context, region string, free func(key string)) error // nil: nobody tells
	region  string
	log     *slog.Logger
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu     sync.Mutex
	all    []*asker
	closed bool
	// listening since a caller was refused; waited is when that was the last time.
	listening bool
	waited    time.Time
}

// asker is a caller in the queue. What follows q is guarded by it.
type asker struct {
	requests []lock.Request
	wake     chan struct{}
	q        *queue
	// refused since it has asked for the first time.
	refused bool
	// due: what it wants may have become free.
	due bool
	// next is when it asks again before its pause is over, and every its last pace; zero
	// for never.
	next  time.Time
	every time.Duration
}

func newQueue(notify func(context.Context, string, func(string)) error, try attempt, o Options) *queue {
	q := &queue{attempt: try, notify: notify, region: o.Region, log: o.Logger}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q
}

// join puts a caller behind those with its priority or a greater one.
func (q *queue) join(requests []lock.Request) turns {
	a := &asker{requests: requests, wake: make(chan struct{}, 1), q: q}
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.IndexFunc(q.all, func(o *asker) bool { return ahead(a.requests[0].Place, o.requests[0].Place) < 0 })
	if at < 0 {
		at = len(q.all)
	}
	q.all = slices.Insert(q.all, at, a)
	return a
}

// leave lets those who can hold the locks together with a caller that has got them ask at
// once; otherwise the next one asks when the former would have.
func (a *asker) leave(got bool) {
	q := a.q
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = slices.DeleteFunc(q.all, func(o *asker) bool { return o == a })
	if got {
		a.next, a.every = time.Time{}, 0
		if q.notify != nil {
			a.next = time.Now().Add(firstAsk)
		}
	}
	for _, o := range q.all {
		if overlap(a.requests, o.requests, anyMode) && q.blocker(o) == nil {
			o.due = o.due || got && !overlap(a.requests, o.requests, lock.Mode.Conflicts)
			o.next, o.every = a.next, a.every
		}
	}
	q.tellLocked(a)
}

// tellLocked wakes those who want the same as a caller whose attempt has ended.
func (q *queue) tellLocked(a *asker) {
	for _, o := range q.all {
		if o != a && overlap(a.requests, o.requests, anyMode) {
			wait.Wake(o.wake)
		}
	}
}

// overlap reports whether two callers want the same key, in modes of which the function
// says so.
func overlap(a, b []lock.Request, modes func(a, b lock.Mode) bool) bool {
	return slices.ContainsFunc(a, func(r lock.Request) bool {
		return slices.ContainsFunc(b, func(s lock.Request) bool { return r.Key == s.Key && modes(r.Mode, s.Mode) })
	})
}

func wants(requests []lock.Request, key string) bool {
	return slices.ContainsFunc(requests, func(r lock.Request) bool { return r.Key == key })
}

func anyMode(lock.Mode, lock.Mode) bool { return true }

// blocker returns the first caller for which this one waits; nil for none. Callers that may
// hold the locks together ask at the same time until one was refused. A caller that holds
// what another waits for waits for nobody, for they would wait for each other.
func (q *queue) blocker(a *asker) *asker {
	if holds := a.requests[0].Holds; len(holds) > 0 && slices.ContainsFunc(q.all, func(o *asker) bool { return o.waitsFor(holds) }) {
		return nil
	}
	for _, o := range q.all {
		if o == a {
			return nil
		}
		if overlap(o.requests, a.requests, lock.Mode.Conflicts) || o.refused && overlap(o.requests, a.requests, anyMode) {
			return o
		}
	}
	return nil
}

// waitsFor reports whether what the caller wants is held, by one who holds these locks.
func (a *asker) waitsFor(holds map[string]lock.Mode) bool {
	return slices.ContainsFunc(a.requests, func(r lock.Request) bool { return holds[r.Key] != "" && r.Mode.Conflicts(holds[r.Key]) })
}

// released lets the first callers that want the key ask for it.
func (q *queue) released(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range q.all {
		if wants(a.requests, key) && q.blocker(a) == nil {
			a.due = true
			wait.Wake(a.wake)
		}
	}
}

// try waits for those ahead that have not been refused: they may get
// what they want, or leave.
func (a *asker) try(ctx context.Context) ([]*lock.Lease, error) {
	for end := time.Now().Add(attemptWait); ; {
		a.q.mu.Lock()
		o := a.q.blocker(a)
		refused := o != nil && o.refused
		a.q.mu.Unlock()
		switch {
		case o == nil:
			return a.ask(ctx)
		case refused:
			return nil, a.behind(o)
		}
		switch wait.Until(ctx, time.Until(end), a.wake) {
		case wait.Canceled:
			return nil, context.Cause(ctx)
		case wait.Elapsed:
			return nil, lock.ErrBusy
		}
	}
}

// behind is the refusal of a caller that waits for another one of this process.
func (a *asker) behind(o *asker) error {
	for _, r := range a.requests {
		if wants(o.requests, r.Key) {
			return &lock.HeldError{Key: r.Key, Node: r.Node, Waits: true}
		}
	}
	return lock.ErrHeld
}

func (a *asker) tryAfter(ctx context.Context, pause time.Duration) (leases []*lock.Lease, tries int, err error) {
	for end := time.Now().Add(pause); ; {
		at, asks := a.looksAgain(end)
		switch wait.Until(ctx, time.Until(at), a.wake) {
		case wait.Canceled:
			return nil, tries, context.Cause(ctx)
		case wait.Notified:
			continue
		}
		tries++
		if !asks {
			leases, err = a.try(ctx)
			return leases, tries, err
		}
		if leases, err = a.ask(ctx); !mayWait(err) {
			return leases, tries, err
		}
	}
}

// looksAgain is when the caller has something to do: it asks, or its pause is over.
func (a *asker) looksAgain(end time.Time) (at time.Time, asks bool) {
	a.q.mu.Lock()
	defer a.q.mu.Unlock()
	switch {
	case a.q.closed:
		return time.Time{}, true
	case a.q.blocker(a) != nil:
		return end, false
	case a.due:
		return time.Time{}, true
	case a.next.IsZero() || a.next.Add(a.every/2).After(end): // One attempt is enough.
		return end, false
	}
	return a.next, true
}

// ask asks the provider, and notes when to ask again.
func (a *asker) ask(ctx context.Context) ([]*lock.Lease, error) {
	a.q.mu.Lock()
	a.due = false
	a.q.mu.Unlock()
	leases, err := a.q.attempt(ctx, a.requests)
	if !mayWait(err) {
		return leases, err
	}
	a.q.mu.Lock()
	defer a.q.mu.Unlock()
	a.refused = true
	a.next = time.Time{}
	if held, ok := errors.AsType[*lock.HeldError](err); ok && held.Left > 0 {
		a.next = time.Now().Add(held.Left) // Nobody tells of an expiry.
	}
	if a.q.notify != nil {
		a.every = min(max(2*a.every, firstAsk), lastAsk)
		if next := time.Now().Add(spread(a.every)); a.next.IsZero() || next.Before(a.next) {
			a.next = next
		}
		a.q.listenLocked()
	}
	a.q.tellLocked(a)
	return leases, err
}

// listenLocked lets the provider tell of releases while callers wait.
func (q *queue) listenLocked() {
	q.waited = time.Now()
	if !q.listening && !q.closed {
		q.listening = true
		q.done.Go(q.listen)
	}
}

func (q *queue) listen() {
	ctx, cancel := context.WithCancel(q.ctx)
	defer cancel()
	q.done.Go(func() {
		for wait.For(ctx, listenFor) {
			if q.listensNoMore() {
				cancel()
			}
		}
	})
	for ctx.Err() == nil {
		if err := q.notify(ctx, q.region, q.released); ctx.Err() == nil {
			q.log.Debug("Releases of locks are not heard of; asking for them", "err", err)
			wait.For(ctx, lastAsk)
		}
	}
}

func (q *queue) listensNoMore() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	waits := slices.ContainsFunc(q.all, func(a *asker) bool { return a.refused })
	q.listening = waits || time.Since(q.waited) < listenFor
	return !q.listening
}

// close lets all who wait ask again, which is refused by now.
func (q *queue) close(ctx context.Context) error {
	q.mu.Lock()
	q.closed = true
	for _, a := range q.all {
		wait.Wake(a.wake)
	}
	q.mu.Unlock()
	q.cancel()
	return wait.Group(ctx, &q.done, "the notices of released locks")
}

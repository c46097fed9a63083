package locks

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/wait"
)

const (
	// lookEvery is how often the process notes that its callers wait, and looks whose turn
	// has come. One look is for all of them; in between those alone are noted that have just
	// come.
	lookEvery = 500 * time.Millisecond
	// lookTimeout limits a look. One that hangs leaves time for another before the places
	// are lost.
	lookTimeout = 2 * time.Second
)

// line are the callers of this process that wait for a lock. They keep their places beside
// those of other processes, and are woken when their turn may have come.
type line struct {
	provider lock.Line
	attempt  attempt
	log      *slog.Logger
	poke     chan struct{}
	done     sync.WaitGroup

	mu      sync.Mutex
	waiting []*waiter
	// gone are those whose places must be given back.
	gone    []lock.Request
	running bool
	closing bool
}

// lined is a caller that stands in the line once it was refused.
type lined struct {
	requests []lock.Request
	q        *line
	w        *waiter // nil until then
}

func (q *line) join(requests []lock.Request) turns { return &lined{requests: requests, q: q} }

func (l *lined) try(ctx context.Context) ([]*lock.Lease, error) { return l.q.attempt(ctx, l.requests) }

func (l *lined) leave(bool) {
	if l.w != nil {
		l.q.leave(l.w)
	}
}

func (l *lined) tryAfter(ctx context.Context, pause time.Duration) (leases []*lock.Lease, tries int, err error) {
	if l.w == nil {
		l.w = l.q.enter(l.requests)
	}
	for end := time.Now().Add(pause); ; {
		how := wait.Until(ctx, time.Until(end), l.w.wake)
		if how == wait.Canceled {
			return nil, tries, context.Cause(ctx)
		}
		place := l.q.place(l.w)
		for i := range l.requests {
			l.requests[i].Place = place
		}
		leases, err := l.q.attempt(ctx, l.requests)
		if tries++; how == wait.Elapsed || !mayWait(err) {
			return leases, tries, err
		}
	}
}

// waiter is a caller that waits, in the lines of all that it wants. What it has in its
// requests is guarded by the line.
type waiter struct {
	requests []lock.Request
	wake     chan struct{}
	// noted: a look has noted it, or will.
	noted bool
}

// place is the same in all of its lines.
func (w *waiter) place() lock.Place { return w.requests[0].Place }

func newLine(provider lock.Line, try attempt, log *slog.Logger) *line {
	return &line{provider: provider, attempt: try, log: log, poke: make(chan struct{}, 1)}
}

// enter puts a caller into the lines for all locks that the requests are for.
func (q *line) enter(requests []lock.Request) *waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := &waiter{requests: slices.Clone(requests), wake: make(chan struct{}, 1)}
	id := uuid.NewString()
	for i := range w.requests {
		w.requests[i].Place.ID = id
	}
	q.waiting = append(q.waiting, w)
	if q.closing {
		wait.Wake(w.wake)
	}
	q.runLocked()
	return w
}

// leave takes the caller out of its lines. The provider does so for one who has acquired the
// locks, but may miss a place that a look notes at the same time. The look that gives it
// back comes after that one.
func (q *line) leave(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(other *waiter) bool { return other == w })
	if w.noted {
		q.gone = append(q.gone, w.requests[0])
		q.runLocked()
	}
}

// place is where the caller stands.
func (q *line) place(w *waiter) lock.Place {
	q.mu.Lock()
	defer q.mu.Unlock()
	return w.place()
}

// released wakes the callers of this process that want a lock which was released, and wait
// for nobody of this process: all who can hold it together.
func (q *line) released(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := slices.Clone(q.waiting)
	slices.SortStableFunc(all, func(a, b *waiter) int { return ahead(a.place(), b.place()) })
	for i, w := range all {
		conflicts := func(other *waiter) bool { return overlap(w.requests, other.requests, lock.Mode.Conflicts) }
		if wants(w.requests, key) && !slices.ContainsFunc(all[:i], conflicts) {
			wait.Wake(w.wake)
		}
	}
}

// ahead is negative for a place that is before the other. One without a ticket is last.
func ahead(a, b lock.Place) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(uint64(a.Ticket-1), uint64(b.Ticket-1))) //nolint:gosec // 0 becomes the greatest.
}

// runLocked lets the line be looked at soon. After close no look begins: nobody would wait
// for its end.
func (q *line) runLocked() {
	wait.Wake(q.poke)
	if !q.running && !q.closing {
		q.running = true
		q.done.Go(q.run)
	}
}

// run looks until no caller waits.
func (q *line) run() {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		all := false
		select {
		case <-q.poke:
		case <-ticker.C:
			all = true
		}
		waiting, gone, goOn := q.take(all)
		if !goOn {
			return
		}
		q.look(waiting, gone)
	}
}

// take returns those who wait, or of them those who have no ticket yet, and those who wait no
// more. The line is not running any more when there are none.
func (q *line) take(all bool) (waiting []*waiter, gone []lock.Request, goOn bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiting {
		if all || w.place().Ticket == 0 {
			w.noted = true
			waiting = append(waiting, w)
		}
	}
	gone, q.gone = q.gone, nil
	q.running = len(q.waiting)+len(gone) > 0
	return waiting, gone, q.running
}

// look notes who waits and who does no more, and wakes those whose turn has come. A place
// that could not be given back is lost when it was not noted for some seconds.
func (q *line) look(waiting []*waiter, gone []lock.Request) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	if len(gone) > 0 {
		if err := q.provider.Leave(ctx, gone); err != nil {
			q.log.Debug("Line not left; the places are lost soon", "err", err)
		}
	}
	if len(waiting) == 0 {
		return
	}
	var requests []lock.Request
	q.mu.Lock()
	for _, w := range waiting {
		requests = append(requests, w.requests...)
	}
	q.mu.Unlock()
	turns, err := q.provider.Wait(ctx, requests)
	if err != nil {
		q.log.Debug("Places in line not kept; trying again", "err", err)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range waiting {
		come := true
		for i := range w.requests {
			w.requests[i].Place.Ticket = turns[i].Ticket
			come = come && turns[i].Come
		}
		turns = turns[len(w.requests):]
		if come {
			wait.Wake(w.wake)
		}
	}
}

// close wakes all who wait, whose next attempt is refused, and waits until they have left.
func (q *line) close(ctx context.Context) error {
	q.mu.Lock()
	q.closing = true
	for _, w := range q.waiting {
		wait.Wake(w.wake)
	}
	q.mu.Unlock()
	return wait.Group(ctx, &q.done, "the line of those who wait for locks")
}

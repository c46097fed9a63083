package locks

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/wait"
)

// Pauses are those between the attempts to take a lock that another holds. After the last
// of them, and one more attempt, waiting is over.
type Pauses = iter.Seq[time.Duration]

// Backoff returns pauses that begin at first and double, each longer or shorter by up to
// a tenth, so that attempts of several processes spread.
func Backoff(first time.Duration, pauses int) Pauses {
	return func(yield func(time.Duration) bool) {
		for i, d := 0, first; i < pauses && yield(spread(d)); i, d = i+1, 2*d {
		}
	}
}

// Fixed returns that many pauses of the same length.
func Fixed(d time.Duration, pauses int) Pauses {
	return func(yield func(time.Duration) bool) {
		for i := 0; i < pauses && yield(d); i++ {
		}
	}
}

// spread returns a time between nine and eleven tenths of d.
func spread(d time.Duration) time.Duration {
	tenth := max(d, 0) / 10
	return d - tenth + rand.N(2*tenth+1)
}

// Option changes what [Manager.Acquire] takes, and how it waits for a lock that is held.
// Without one it tries again after about 1, 2, 4, 8 and 16 seconds. The last of several
// options for the same thing counts.
type Option func(*waiting)

// waiting is how a caller acquires.
type waiting struct {
	pauses  Pauses
	intents bool
}

// FailFast does not wait.
func FailFast() Option { return Retry(Fixed(0, 0)) }

// Retry tries again after each of the pauses.
func Retry(pauses Pauses) Option {
	if pauses == nil {
		pauses = Fixed(0, 0)
	}
	return func(w *waiting) { w.pauses = pauses }
}

// Within tries again, after short pauses, until that time is over.
func Within(limit time.Duration) Option {
	return Retry(func(yield func(time.Duration) bool) {
		end := time.Now().Add(limit)
		for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
			left := time.Until(end)
			if left <= 0 || !yield(min(spread(pause), left)) {
				return
			}
		}
	})
}

func waitingOf(options []Option) waiting {
	w := waiting{pauses: Backoff(time.Second, 5)}
	for _, o := range options {
		o(&w)
	}
	return w
}

// wait takes the locks from the provider.
func (m *Manager) wait(ctx context.Context, ds []Descriptor, how waiting) ([]*lock.Lease, error) {
	requests := make([]lock.Request, len(ds))
	for i, d := range ds {
		r, err := m.request(d)
		if err != nil {
			return nil, err
		}
		requests[i] = r
	}
	tries := 1
	leases, err := m.try(ctx, requests)
	for pause := range how.pauses {
		if !errors.Is(err, ErrHeld) {
			break
		}
		if !wait.For(ctx, pause) {
			return nil, context.Cause(ctx)
		}
		tries++
		leases, err = m.try(ctx, requests)
	}
	if err != nil {
		return nil, asHeld(err, ds, tries)
	}
	return leases, nil
}

// try makes one attempt.
func (m *Manager) try(ctx context.Context, requests []lock.Request) ([]*lock.Lease, error) {
	if len(requests) > 1 {
		return m.keeper.AcquireAll(ctx, requests)
	}
	l, err := m.keeper.Acquire(ctx, requests[0])
	return []*lock.Lease{l}, err
}

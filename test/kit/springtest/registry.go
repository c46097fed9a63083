package springtest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// idle is the pause between two attempts.
const idle = 100 * time.Millisecond

// Registry is a JdbcLockRegistry: locks by name, each of which one thread of
// the application holds at a time. It is safe for concurrent use.
type Registry struct {
	repository *Repository
	retried    atomic.Int64

	mu    sync.Mutex
	local map[string]chan struct{} // the ReentrantLock of each key
}

// NewRegistry returns a registry of the repository's locks.
func NewRegistry(r *Repository) *Registry {
	return &Registry{repository: r, local: make(map[string]chan struct{})}
}

// Retried is how often an operation was tried again after a transient error.
func (g *Registry) Retried() int64 { return g.retried.Load() }

// TryLock tries for the given time; false when another held the lock for so
// long. After a transient error it tries again at once, and does not look at
// the time.
func (g *Registry) TryLock(ctx context.Context, name string, wait time.Duration) (bool, error) {
	key, end := g.repository.options.Generation.Key(name), time.Now().Add(wait)
	local := g.thread(key)
	if !take(ctx, local, wait) {
		return false, context.Cause(ctx)
	}
	for {
		acquired, err := g.retry(ctx, func() (bool, error) { return g.repository.Acquire(ctx, key) })
		if acquired {
			return true, nil
		}
		if err != nil || !time.Now().Before(end) || !pause(ctx, idle) {
			<-local
			return false, failed("lock", name, err)
		}
	}
}

// Unlock gives the lock back. The error is [ErrLost] when it was gone; but
// Spring 5 says nothing then.
func (g *Registry) Unlock(ctx context.Context, name string) error {
	key := g.repository.options.Generation.Key(name)
	defer func() { <-g.thread(key) }()
	deleted, err := g.retry(ctx, func() (bool, error) { return g.repository.Delete(ctx, key) })
	if err == nil && !deleted && g.repository.options.Generation != Spring5 {
		return fmt.Errorf("unlock %s: %w", name, ErrLost)
	}
	return failed("unlock", name, err)
}

// retry repeats f while its error is transient.
func (g *Registry) retry(ctx context.Context, f func() (bool, error)) (bool, error) {
	for {
		ok, err := f()
		if !transient(err) || ctx.Err() != nil {
			return ok, err
		}
		g.retried.Add(1)
	}
}

func (g *Registry) thread(key string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.local[key] == nil {
		g.local[key] = make(chan struct{}, 1)
	}
	return g.local[key]
}

// take takes the lock within the application, within the time.
func take(ctx context.Context, local chan struct{}, wait time.Duration) bool {
	select {
	case local <- struct{}{}:
		return true
	default:
	}
	select {
	case local <- struct{}{}:
		return true
	case <-ctx.Done():
	case <-time.After(wait):
	}
	return false
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func failed(what, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, name, err)
}

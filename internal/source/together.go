package source

import (
	"context"
	"slices"
	"sync"
)

// Together lets calls that wait at the same time share one question to a source: what one
// poll asks before it reads, all may know.
type Together[K comparable, V any] struct {
	asking chan struct{} // holds the token of the one who asks
	mu     sync.Mutex
	// next is the question of those who wait while another is asked; nil for none.
	next *shared[K, V]
}

// NewTogether returns one without questions.
func NewTogether[K comparable, V any]() *Together[K, V] {
	return &Together[K, V]{asking: make(chan struct{}, 1)}
}

// shared is a question, and its answer once done is closed.
type shared[K comparable, V any] struct {
	keys   []K
	done   chan struct{}
	answer V
	err    error
	// gone says that whoever leads was called off.
	gone bool
}

// Ask returns an answer that was asked for after the call began. keys has the keys of
// all who share it. ask is called in the goroutine of one of them, with its context. The
// error is that of ask, or of the end of ctx.
func (t *Together[K, V]) Ask(ctx context.Context, key K, ask func(ctx context.Context, keys []K) (V, error)) (none V, err error) {
	for {
		q, leads := t.join(key)
		if leads {
			t.lead(ctx, q, ask)
		}
		select {
		case <-q.done:
		case <-ctx.Done():
			return none, Ended(ctx, "wait for what another poll asks")
		}
		if leads || !q.gone {
			return q.answer, q.err
		}
	}
}

// join returns the question that is asked next, and whether the caller asks it.
func (t *Together[K, V]) join(key K) (q *shared[K, V], leads bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if leads = t.next == nil; leads {
		t.next = &shared[K, V]{done: make(chan struct{}), gone: true}
	}
	if !slices.Contains(t.next.keys, key) {
		t.next.keys = append(t.next.keys, key)
	}
	return t.next, leads
}

// lead asks the question once the one before it is answered. From then on nobody joins it.
func (t *Together[K, V]) lead(ctx context.Context, q *shared[K, V], ask func(ctx context.Context, keys []K) (V, error)) {
	defer close(q.done)
	select {
	case t.asking <- struct{}{}:
		defer func() { <-t.asking }()
	case <-ctx.Done():
		q.err = Ended(ctx, "wait for what another poll asks")
	}
	t.mu.Lock()
	t.next = nil
	t.mu.Unlock()
	if q.err == nil {
		q.answer, q.err = ask(ctx, q.keys)
		q.gone = ctx.Err() != nil
	}
}

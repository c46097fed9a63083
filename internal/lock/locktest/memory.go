package locktest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lock"
)

// Memory grants leases in memory, by time.Now, so that it lives in a synctest
// bubble too. It is a [lock.Provider] and safe for concurrent use; all users of one
// Memory compete. The zero value is ready.
type Memory struct {
	// Clock is the provider's, where it is not that of its users; nil is
	// time.Now. It is set before the first call.
	Clock func() time.Time

	mu       sync.Mutex
	rows     map[row]*held
	fence    int64
	attempts map[string]int
	down     error
}

type row struct{ region, key string }

type held struct {
	grant lock.Grant
	// touched is when it was granted or last renewed, on the provider's clock.
	touched time.Time
}

// ends is when the lease is over unless it is renewed.
func (h *held) ends() time.Time { return h.touched.Add(h.grant.TTL) }

// Acquire implements [lock.Provider].
func (m *Memory) Acquire(ctx context.Context, r lock.Request) (lock.Grant, error) {
	g := lock.Grant{Request: r, Term: uuid.NewString(), Began: time.Now()}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.unavailable(ctx); err != nil {
		return lock.Grant{}, fmt.Errorf("acquire lock %s: %w", r.Key, err)
	}
	m.count(r.Key)
	if r.Mode != "" && r.Mode != lock.Exclusive {
		return lock.Grant{}, fmt.Errorf("lock %s in mode %s: %w", r.Key, r.Mode, lock.ErrUnsupported)
	}
	if h := m.taken(r); h != nil {
		return lock.Grant{}, &lock.HeldError{Key: r.Key, Node: h.grant.Node, Left: h.ends().Sub(m.now())}
	}
	m.fence++
	g.Fence = m.fence
	if m.rows == nil {
		m.rows = make(map[row]*held)
	}
	m.rows[row{r.Region, r.Key}] = &held{grant: g, touched: m.now()}
	return g, nil
}

// Renew implements [lock.Provider].
func (m *Memory) Renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.unavailable(ctx); err != nil {
		return nil, fmt.Errorf("renew %d leases: %w", len(grants), err)
	}
	renewals := make([]lock.Renewal, len(grants))
	for i, g := range grants {
		renewals[i] = lock.Lost
		if h := m.live(g.Request); h != nil && h.grant.Term == g.Term {
			h.touched = m.now()
			renewals[i] = lock.Renewed
		}
	}
	return renewals, nil
}

// Extend implements [lock.Extender].
func (m *Memory) Extend(ctx context.Context, g lock.Grant, ttl time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.unavailable(ctx); err != nil {
		return fmt.Errorf("extend lock %s: %w", g.Key, err)
	}
	h := m.live(g.Request)
	if h == nil || h.grant.Term != g.Term {
		return fmt.Errorf("extend lock %s: %w", g.Key, lock.ErrLost)
	}
	h.grant.TTL, h.touched = ttl, m.now()
	return nil
}

// Release implements [lock.Provider].
func (m *Memory) Release(ctx context.Context, g lock.Grant) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.unavailable(ctx); err != nil {
		return fmt.Errorf("release lock %s: %w", g.Key, err)
	}
	h := m.rows[row{g.Region, g.Key}]
	if h == nil || h.grant.Term != g.Term {
		return fmt.Errorf("release lock %s: %w", g.Key, lock.ErrLost)
	}
	delete(m.rows, row{g.Region, g.Key})
	return nil
}

// Holds reports whether the grant's lease lives, as a fenced write checks.
func (m *Memory) Holds(g lock.Grant) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.live(g.Request)
	return h != nil && h.grant.Term == g.Term
}

// Holder returns the grant that holds the lock now; false when the lock is free.
func (m *Memory) Holder(r lock.Request) (lock.Grant, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.taken(r); h != nil {
		return h.grant, true
	}
	return lock.Grant{}, false
}

// Expire ends the lease as if its TTL had passed. A lease that another term
// has replaced is left alone.
func (m *Memory) Expire(g lock.Grant) { m.Date(g, -g.TTL) }

// Date makes the lease one that was granted or renewed that far ahead of the
// provider's clock. A lease that another term has replaced is left alone.
func (m *Memory) Date(g lock.Grant, ahead time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.rows[row{g.Region, g.Key}]; h != nil && h.grant.Term == g.Term {
		h.touched = m.now().Add(ahead)
	}
}

// Fail makes all calls fail with the error, as a database that is down; nil
// ends it.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = err
}

// Attempts returns how often the key's lock was tried, with or without
// success.
func (m *Memory) Attempts(key string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.attempts[key]
}

func (m *Memory) now() time.Time {
	if m.Clock != nil {
		return m.Clock()
	}
	return time.Now()
}

func (m *Memory) count(key string) {
	if m.attempts == nil {
		m.attempts = make(map[string]int)
	}
	m.attempts[key]++
}

func (m *Memory) unavailable(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return m.down
}

// live returns the lock's row unless its TTL is over: its term may renew it.
func (m *Memory) live(r lock.Request) *held {
	h := m.rows[row{r.Region, r.Key}]
	if h == nil || !m.now().Before(h.ends()) {
		return nil
	}
	return h
}

// taken returns the row of a lock that others may not take: one whose time is
// too far ahead they may.
func (m *Memory) taken(r lock.Request) *held {
	h := m.live(r)
	if h == nil || h.touched.Sub(m.now()) > 2*h.grant.TTL {
		return nil
	}
	return h
}

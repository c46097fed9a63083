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
// bubble too. It is a [lock.Provider] and safe for concurrent use; all who use
// one Memory compete. The zero value is ready.
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
	grant   lock.Grant
	expires time.Time
}

// Acquire implements [lock.Provider].
func (m *Memory) Acquire(ctx context.Context, r lock.Request) (lock.Grant, error) {
	g := lock.Grant{Request: r, Term: uuid.NewString(), Began: time.Now()}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.unavailable(ctx); err != nil {
		return lock.Grant{}, fmt.Errorf("acquire lock %s: %w", r.Key, err)
	}
	m.count(r.Key)
	if h := m.live(r); h != nil {
		return lock.Grant{}, &lock.HeldError{Key: r.Key, Node: h.grant.Node, Left: h.expires.Sub(m.now())}
	}
	m.fence++
	g.Fence = m.fence
	if m.rows == nil {
		m.rows = make(map[row]*held)
	}
	m.rows[row{r.Region, r.Key}] = &held{grant: g, expires: m.now().Add(r.TTL)}
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
			h.expires = m.now().Add(g.TTL)
			renewals[i] = lock.Renewed
		}
	}
	return renewals, nil
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

// Holds tells whether the grant's lease lives, as a guarded write would ask.
func (m *Memory) Holds(g lock.Grant) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.live(g.Request)
	return h != nil && h.grant.Term == g.Term
}

// Holder returns who holds the lock now; false when nobody does.
func (m *Memory) Holder(r lock.Request) (lock.Grant, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.live(r); h != nil {
		return h.grant, true
	}
	return lock.Grant{}, false
}

// Expire ends the lease as if its TTL had passed. A lease that another term
// has replaced is left alone.
func (m *Memory) Expire(g lock.Grant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.rows[row{g.Region, g.Key}]; h != nil && h.grant.Term == g.Term {
		h.expires = m.now()
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

// live returns the lock's row unless it has expired.
func (m *Memory) live(r lock.Request) *held {
	h := m.rows[row{r.Region, r.Key}]
	if h == nil || !m.now().Before(h.expires) {
		return nil
	}
	return h
}

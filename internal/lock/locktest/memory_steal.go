package locktest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// Steal implements [lock.Stealer]. It keeps no records.
func (m *Memory) Steal(ctx context.Context, r lock.Request, seen lock.Held, _ lock.By) (lock.Grant, error) {
	began := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.unavailable(ctx); err != nil {
		return lock.Grant{}, fmt.Errorf("steal lock %s: %w", r.Key, err)
	}
	h := m.held(lock.Grant{Request: r, Term: seen.Term})
	switch {
	case h == nil:
		return lock.Grant{}, fmt.Errorf("steal lock %s: %w", r.Key, lock.ErrEnded)
	case h.mark() != seen.Mark:
		return lock.Grant{}, fmt.Errorf("steal lock %s: %w", r.Key, lock.ErrRenewed)
	}
	before := m.rows[rowOf(r)]
	m.rows[rowOf(r)] = slices.DeleteFunc(slices.Clone(before), func(other *held) bool { return other == h })
	wanted := r
	wanted.Place = lock.Place{Priority: math.MaxInt32, Ticket: 1} // ahead of all who wait
	if _, err := m.acquireAll([]lock.Request{wanted}, began); err != nil {
		m.rows[rowOf(r)] = before
		return lock.Grant{}, err
	}
	holders := m.rows[rowOf(r)]
	g := &holders[len(holders)-1].grant
	g.Request, g.Recovered = r, true
	return *g, nil
}

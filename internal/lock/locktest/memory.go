package locktest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
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
	rows     map[row][]*held
	line     []waiter
	fence    int64
	attempts map[string]int
	down     error
}

type row struct{ region, key string }

type held struct {
	grant    lock.Grant
	acquired time.Time
	// touched is when it was granted or last renewed, on the provider's clock.
	touched  time.Time
	renewals int
}

// mark is [lock.Held.Mark].
func (h *held) mark() string { return strconv.Itoa(h.renewals) }

// ends is when the lease is over unless it is renewed.
func (h *held) ends() time.Time { return h.touched.Add(h.grant.TTL) }

// Capabilities implements [lock.Provider].
func (m *Memory) Capabilities() lock.Capabilities {
	return lock.Capabilities{Name: "memory", Modes: true, Sets: m, Extender: m, Line: m, Finder: m, Stealer: m, Delayer: m}
}

// Acquire implements [lock.Provider].
func (m *Memory) Acquire(ctx context.Context, r lock.Request) (lock.Grant, error) {
	grants, err := m.AcquireAll(ctx, []lock.Request{r})
	if err != nil {
		return lock.Grant{}, err
	}
	return grants[0], nil
}

// AcquireAll implements [lock.Sets].
func (m *Memory) AcquireAll(ctx context.Context, requests []lock.Request) ([]lock.Grant, error) {
	began := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.unavailable(ctx); err != nil {
		return nil, fmt.Errorf("acquire %d locks: %w", len(requests), err)
	}
	return m.acquireAll(requests, began)
}

func (m *Memory) acquireAll(requests []lock.Request, began time.Time) ([]lock.Grant, error) {
	for _, r := range requests {
		m.count(r.Key)
		if !r.Mode.Known() {
			return nil, fmt.Errorf("lock %s in mode %s: %w", r.Key, r.Mode, lock.ErrUnsupported)
		}
	}
	for _, r := range requests {
		if h := m.refuses(r); h != nil {
			return nil, &lock.HeldError{Key: r.Key, Node: h.grant.Node, Left: h.ends().Sub(m.now())}
		}
		if w := m.ahead(r); w != nil {
			return nil, &lock.HeldError{Key: r.Key, Node: w.request.Node, Waits: true}
		}
	}
	if m.rows == nil {
		m.rows = make(map[row][]*held)
	}
	grants := make([]lock.Grant, len(requests))
	for i, r := range requests {
		m.fence++
		grants[i] = lock.Grant{Request: r, Term: uuid.NewString(), Fence: m.fence, Began: began}
		grants[i].Recovered = len(m.rows[rowOf(r)]) > 0 && len(m.taken(r)) == 0
		m.rows[rowOf(r)] = append(m.taken(r), &held{grant: grants[i], acquired: m.now(), touched: m.now()})
		m.leave(r.Place.ID)
	}
	return grants, nil
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
		if h := m.live(g); h != nil {
			h.touched = m.now()
			h.renewals++
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
	h := m.live(g)
	if h == nil {
		return fmt.Errorf("extend lock %s: %w", g.Key, lock.ErrLost)
	}
	h.grant.TTL, h.touched = ttl, m.now()
	h.renewals++
	return nil
}

// ReleaseAfter implements [lock.Delayer].
func (m *Memory) ReleaseAfter(ctx context.Context, g lock.Grant, after time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.unavailable(ctx); err != nil {
		return fmt.Errorf("release lock %s in %s: %w", g.Key, after, err)
	}
	h := m.live(g)
	if h == nil {
		return fmt.Errorf("release lock %s in %s: %w", g.Key, after, lock.ErrLost)
	}
	h.grant.Term, h.grant.TTL, h.touched = uuid.NewString(), after, m.now()
	return nil
}

// Release implements [lock.Provider].
func (m *Memory) Release(ctx context.Context, g lock.Grant) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.unavailable(ctx); err != nil {
		return fmt.Errorf("release lock %s: %w", g.Key, err)
	}
	if m.held(g) == nil {
		return fmt.Errorf("release lock %s: %w", g.Key, lock.ErrLost)
	}
	m.rows[rowOf(g.Request)] = slices.DeleteFunc(m.rows[rowOf(g.Request)], func(h *held) bool { return h.grant.Term == g.Term })
	return nil
}

// Holds reports whether the grant's lease lives, as a fenced write checks.
func (m *Memory) Holds(g lock.Grant) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live(g) != nil
}

// Holder returns the grant that has held the lock for longest; false when the lock is free.
func (m *Memory) Holder(r lock.Request) (lock.Grant, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if holders := m.taken(r); len(holders) > 0 {
		return holders[0].grant, true
	}
	return lock.Grant{}, false
}

// Expire ends the lease as if its TTL had passed. A lease that another term
// has replaced is left alone.
func (m *Memory) Expire(g lock.Grant) { m.Date(g, -g.TTL) }

// ExpireTerm is Expire for the lease of that term.
func (m *Memory) ExpireTerm(term string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, holders := range m.rows {
		for _, h := range holders {
			if h.grant.Term == term {
				h.touched = m.now().Add(-h.grant.TTL)
			}
		}
	}
}

// Date makes the lease one that was granted or renewed that far ahead of the
// provider's clock. A lease that another term has replaced is left alone.
func (m *Memory) Date(g lock.Grant, ahead time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.held(g); h != nil {
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

func rowOf(r lock.Request) row { return row{r.Region, r.Key} }

// held returns the grant's holder, whether its TTL is over or not.
func (m *Memory) held(g lock.Grant) *held {
	for _, h := range m.rows[rowOf(g.Request)] {
		if h.grant.Term == g.Term {
			return h
		}
	}
	return nil
}

// live returns the grant's holder unless its TTL is over: its term may renew it.
func (m *Memory) live(g lock.Grant) *held {
	if h := m.held(g); h != nil && m.now().Before(h.ends()) {
		return h
	}
	return nil
}

// taken returns the holders of a lock that others must respect. One that is dated in the
// future is dated now: the clock was set back.
func (m *Memory) taken(r lock.Request) []*held {
	var holders []*held
	for _, h := range m.rows[rowOf(r)] {
		if h.touched.After(m.now()) {
			h.touched = m.now()
		}
		if m.now().Before(h.ends()) {
			holders = append(holders, h)
		}
	}
	return holders
}

// refuses returns a holder that keeps out the request; nil for none.
func (m *Memory) refuses(r lock.Request) *held {
	for _, h := range m.taken(r) {
		if h.grant.Mode.Conflicts(r.Mode) {
			return h
		}
	}
	return nil
}

// lineTTL is for how long a caller keeps its place that is not noted again.
const lineTTL = 5 * time.Second

// waiter is a caller in the line.
type waiter struct {
	request lock.Request
	touched time.Time
}

// Wait implements [lock.Line].
func (m *Memory) Wait(ctx context.Context, requests []lock.Request) ([]lock.Turn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.unavailable(ctx); err != nil {
		return nil, fmt.Errorf("wait for %d locks: %w", len(requests), err)
	}
	turns := make([]lock.Turn, len(requests))
	tickets := make(map[string]int64)
	for _, r := range requests {
		m.leave(r.Place.ID)
		tickets[r.Place.ID] = r.Place.Ticket
	}
	for i, r := range requests {
		if tickets[r.Place.ID] == 0 {
			m.fence++
			tickets[r.Place.ID] = m.fence
		}
		r.Place.Ticket = tickets[r.Place.ID]
		m.line = append(m.line, waiter{r, m.now()})
		turns[i].Ticket = r.Place.Ticket
	}
	for i, r := range requests {
		r.Place.Ticket = turns[i].Ticket
		turns[i].Come = m.refuses(r) == nil && m.ahead(r) == nil
	}
	return turns, nil
}

// Leave implements [lock.Line].
func (m *Memory) Leave(_ context.Context, requests []lock.Request) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range requests {
		m.leave(r.Place.ID)
	}
	return m.down
}

// Waiting returns how many places in lines are taken.
func (m *Memory) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.line)
}

func (m *Memory) leave(id string) {
	m.line = slices.DeleteFunc(m.line, func(w waiter) bool { return w.request.Place.ID == id })
}

// ahead returns one who waits and must not be passed; nil for none.
func (m *Memory) ahead(r lock.Request) *waiter {
	if r.Mode == "" {
		return nil
	}
	waits := func(w waiter) bool { return w.request.Place.ID != r.Place.ID && m.now().Sub(w.touched) < lineTTL }
	if slices.ContainsFunc(m.line, func(w waiter) bool {
		held, ok := r.Holds[w.request.Key]
		return ok && waits(w) && w.request.Region == r.Region && w.request.Mode.Conflicts(held)
	}) {
		return nil
	}
	for _, w := range m.line {
		p, own := w.request.Place, r.Place
		before := p.Priority > own.Priority || p.Priority == own.Priority && (own.Ticket == 0 || p.Ticket < own.Ticket)
		if before && waits(w) && rowOf(w.request) == rowOf(r) && w.request.Mode.Conflicts(r.Mode) {
			return &w
		}
	}
	return nil
}

// Find implements [lock.Finder].
func (m *Memory) Find(ctx context.Context, q lock.Query) ([]lock.Held, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.unavailable(ctx); err != nil {
		return nil, fmt.Errorf("find locks: %w", err)
	}
	var found []lock.Held
	for at, holders := range m.rows {
		for _, h := range holders {
			later := at.key > q.After.Row || at.key == q.After.Row && h.grant.Term > q.After.Term
			age, left := m.now().Sub(h.acquired), h.ends().Sub(m.now())
			if at.region == q.Region && later && (q.Key == "" || q.Key == at.key) && (q.Node == "" || q.Node == h.grant.Node) && age >= q.OlderThan && (!q.Expired || left <= 0) {
				found = append(found, lock.Held{Grant: h.grant, Row: at.key, Age: age, Left: left, Waiting: m.waitingFor(at), Mark: h.mark()})
			}
		}
	}
	slices.SortFunc(found, lock.Held.Compare)
	return found[:min(len(found), q.Limit)], nil
}

func (m *Memory) waitingFor(at row) int {
	n := 0
	for _, w := range m.line {
		if rowOf(w.request) == at {
			n++
		}
	}
	return n
}

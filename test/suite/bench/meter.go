package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/turn"
)

// span is one turn, from the first look to the release.
type span struct {
	// locking is the time of acquisition and release, memory that of looking
	// whose turn it is and of noting that it was taken.
	locking, memory, whole time.Duration
}

func (p span) lockShare() float64 { return float64(p.locking) / float64(p.whole) }
func (p span) bothShare() float64 { return float64(p.locking+p.memory) / float64(p.whole) }

// meter divides turns into locking, memory and the rest.
type meter struct {
	// turns says that one more has ended.
	turns chan struct{}

	mu     sync.Mutex
	began  time.Time // of the turn; zero between two turns
	polled bool
	now    span
	spans  []span
}

// locks times a call of the lock.
func (m *meter) locks(call func() error) error {
	began, err := time.Now(), call()
	m.add(began, func(p *span, took time.Duration) { p.locking += took })
	return err
}

// remembers times a call of the memory of turns.
func (m *meter) remembers(call func() error) error {
	began, err := time.Now(), call()
	m.add(began, func(p *span, took time.Duration) { p.memory += took })
	return err
}

func (m *meter) add(began time.Time, to func(*span, time.Duration)) {
	took := time.Since(began)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.began.IsZero() {
		m.began = began
	}
	to(&m.now, took)
}

// noted says that this turn has polled.
func (m *meter) noted() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.polled = true
}

// end ends the turn. One that did not poll does not count.
func (m *meter) end() {
	m.mu.Lock()
	if m.polled {
		m.now.whole = time.Since(m.began)
		m.spans = append(m.spans, m.now)
	}
	m.began, m.now, m.polled = time.Time{}, span{}, false
	m.mu.Unlock()
	select {
	case m.turns <- struct{}{}:
	default: // Someone is told already.
	}
}

func (m *meter) ended() []span {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]span(nil), m.spans...)
}

// timedLeases times the provider of locks. Renewals run beside the poll, and
// only every third of the TTL.
type timedLeases struct {
	lock.Provider
	meter *meter
}

func (t timedLeases) Acquire(ctx context.Context, r lock.Request) (g lock.Grant, err error) {
	err = t.meter.locks(func() error { g, err = t.Provider.Acquire(ctx, r); return err })
	return g, err
}

func (t timedLeases) Release(ctx context.Context, g lock.Grant) error {
	defer t.meter.end()
	return t.meter.locks(func() error { return t.Provider.Release(ctx, g) })
}

// timedStore times the memory of turns.
type timedStore struct {
	schedule.Store
	meter *meter
}

func (t timedStore) Turn(ctx context.Context, typ string, r lock.Request) (s turn.State, err error) {
	err = t.meter.remembers(func() error { s, err = t.Store.Turn(ctx, typ, r); return err })
	return s, err
}

func (t timedStore) TurnAndStreams(ctx context.Context, typ string, ids []string) (last turn.State, found map[string]turn.Stream, err error) {
	err = t.meter.remembers(func() error { last, found, err = t.Store.TurnAndStreams(ctx, typ, ids); return err })
	return last, found, err
}

func (t timedStore) NoteStream(ctx context.Context, g lock.Grant, n turn.StreamTaken) error {
	if n.Outcome == turn.OK && n.Rows == turnRows {
		t.meter.noted()
	}
	return t.meter.remembers(func() error { return t.Store.NoteStream(ctx, g, n) })
}

func (t timedStore) TakeTurn(ctx context.Context, g lock.Grant, n turn.Taken) error {
	return t.meter.remembers(func() error { return t.Store.TakeTurn(ctx, g, n) })
}

// freshPoller is an observer to which all rows are new in every turn: it polls
// under another stream each time.
type freshPoller struct {
	source observer.Source
	db     *lockdb.DB
	n      atomic.Int64
}

// ID implements [schedule.Observer].
func (*freshPoller) ID() string { return stream }

// Poll implements [schedule.Observer].
func (p *freshPoller) Poll(ctx context.Context, g lock.Grant) (observer.Stats, error) {
	spec := orderSpec("orders", observer.DetectNew, 0)
	spec.Stream = fmt.Sprintf("%s-%d", stream, p.n.Add(1))
	o, err := observer.New(spec)
	if err != nil {
		return observer.Stats{}, err
	}
	return o.Poll(ctx, p.source, p.db.Store(g))
}

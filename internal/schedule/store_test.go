package schedule_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/locktest"
	"github.com/observerd/observerd/internal/turn"
)

var errDown = errors.New("connection refused")

// memory is the coordination database in memory: one value for all nodes.
type memory struct {
	locks locktest.Memory

	mu      sync.Mutex
	skew    time.Duration // database's clock less the nodes'
	down    bool
	unread  error // of the read under a lock
	turns   map[string]turn.Taken
	history []turn.Taken
	streams map[string]turn.Stream
	notes   []turn.StreamTaken
	nodes   map[string]turn.Node
}

func newMemory() *memory {
	return &memory{
		turns: make(map[string]turn.Taken), streams: make(map[string]turn.Stream), nodes: make(map[string]turn.Node),
	}
}

// do runs f as one statement.
func (m *memory) do(ctx context.Context, f func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if m.down {
		return errDown
	}
	return f()
}

func (m *memory) isDown() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.down
}

func (m *memory) now() time.Time { return time.Now().Add(m.skew).UTC() }

func (m *memory) Now(ctx context.Context) (now time.Time, err error) {
	err = m.do(ctx, func() error { now = m.now(); return nil })
	return now, err
}

func (m *memory) Turn(ctx context.Context, typ string, r lock.Request) (s turn.State, err error) {
	err = m.do(ctx, func() error {
		g, held := m.locks.Holder(r)
		s = turn.State{At: m.turns[typ].At, Now: m.now(), Held: held, Holder: g.Node}
		for boot, n := range m.nodes {
			if held && n.Name == g.Node {
				s.HolderBoot = boot
			}
		}
		return nil
	})
	return s, err
}

// fenced runs f unless the lease has ended, as for a write that a stale holder may not make.
func (m *memory) fenced(ctx context.Context, g lock.Grant, f func()) error {
	return m.do(ctx, func() error {
		if !m.locks.Holds(g) {
			return lock.ErrFenced
		}
		f()
		return nil
	})
}

func (m *memory) TakeTurn(ctx context.Context, g lock.Grant, t turn.Taken) error {
	return m.fenced(ctx, g, func() {
		m.turns[t.Type] = t
		m.history = append(m.history, t)
	})
}

func (m *memory) TurnAndStreams(ctx context.Context, typ string, ids []string) (last turn.State, found map[string]turn.Stream, err error) {
	err = m.do(ctx, func() error {
		last = turn.State{At: m.turns[typ].At, Now: m.now()}
		found = maps.Clone(m.streams)
		maps.DeleteFunc(found, func(id string, _ turn.Stream) bool { return !slices.Contains(ids, id) })
		return m.unread
	})
	return last, found, err
}

func (m *memory) NoteStream(ctx context.Context, g lock.Grant, t turn.StreamTaken) error {
	return m.fenced(ctx, g, func() {
		s := m.streams[t.Stream]
		s.Stream, s.Failures, s.FailureClass, s.RetryAt = t.Stream, t.Failures, t.FailureClass, t.RetryAt
		if !t.Left {
			s.At = t.At
		}
		if t.Outcome == turn.OK {
			s.OKAt, s.Lag, s.Unread = m.now(), t.Lag, t.Lag > 0
		}
		m.streams[t.Stream] = s
		m.notes = append(m.notes, t)
	})
}

func (m *memory) Beat(ctx context.Context, n turn.Node) error {
	return m.do(ctx, func() error {
		n.SeenAt = m.now()
		m.nodes[n.BootID] = n
		return nil
	})
}

func (m *memory) Nodes(ctx context.Context, within time.Duration) (live []turn.Node, err error) {
	err = m.do(ctx, func() error {
		for _, n := range m.nodes {
			if m.now().Sub(n.SeenAt) <= within {
				live = append(live, n)
			}
		}
		slices.SortFunc(live, func(a, b turn.Node) int { return cmp.Compare(a.BootID, b.BootID) })
		return nil
	})
	return live, err
}

func (m *memory) Leave(ctx context.Context, bootID string) error {
	return m.do(ctx, func() error { delete(m.nodes, bootID); return nil })
}

// set changes something, as an operator or a fault would.
func (m *memory) set(f func(m *memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m)
}

// taken returns the turns of a type in the order in which they were taken.
func (m *memory) taken(typ string) []turn.Taken {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.history), func(t turn.Taken) bool { return t.Type != typ })
}

// noted returns the notes of an observer.
func (m *memory) noted(stream string) []turn.StreamTaken {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.notes), func(t turn.StreamTaken) bool { return t.Stream != stream })
}

// wire is one node's connection to the database, which can break. It is the
// node's store and its provider of locks.
type wire struct {
	*memory
	beforeAcquire func()
	// beforeTurn comes before each look at a turn, and may fail it.
	beforeTurn func() error
	// beatTakes is how long the database needs for a sign of life, also for one
	// whose sender does not wait for it.
	beatTakes time.Duration

	mu    sync.Mutex
	cut   bool
	looks int // at turns
}

func (w *wire) breaks() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
}

func (w *wire) looked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.looks
}

func (w *wire) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return errDown
	}
	return nil
}

func (w *wire) Now(ctx context.Context) (time.Time, error) {
	if err := w.err(); err != nil {
		return time.Time{}, err
	}
	return w.memory.Now(ctx)
}

func (w *wire) Turn(ctx context.Context, typ string, r lock.Request) (turn.State, error) {
	if err := w.look(); err != nil {
		return turn.State{}, err
	}
	return w.memory.Turn(ctx, typ, r)
}

func (w *wire) TurnAndStreams(ctx context.Context, typ string, ids []string) (turn.State, map[string]turn.Stream, error) {
	if err := w.look(); err != nil {
		return turn.State{}, nil, err
	}
	return w.memory.TurnAndStreams(ctx, typ, ids)
}

// look counts the reads of turns.
func (w *wire) look() error {
	if err := w.err(); err != nil {
		return err
	}
	w.mu.Lock()
	w.looks++
	w.mu.Unlock()
	if w.beforeTurn == nil {
		return nil
	}
	return w.beforeTurn()
}

func (w *wire) TakeTurn(ctx context.Context, g lock.Grant, t turn.Taken) error {
	if err := w.err(); err != nil {
		return err
	}
	return w.memory.TakeTurn(ctx, g, t)
}

func (w *wire) NoteStream(ctx context.Context, g lock.Grant, t turn.StreamTaken) error {
	if err := w.err(); err != nil {
		return err
	}
	return w.memory.NoteStream(ctx, g, t)
}

func (w *wire) Beat(ctx context.Context, n turn.Node) error {
	if err := w.err(); err != nil {
		return err
	}
	if w.beatTakes == 0 {
		return w.memory.Beat(ctx, n)
	}
	done := make(chan error, 1)
	time.AfterFunc(w.beatTakes, func() { done <- w.memory.Beat(context.WithoutCancel(ctx), n) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *wire) Leave(ctx context.Context, bootID string) error {
	if err := w.err(); err != nil {
		return err
	}
	return w.memory.Leave(ctx, bootID)
}

func (w *wire) Acquire(ctx context.Context, r lock.Request) (lock.Grant, error) {
	if err := w.err(); err != nil {
		return lock.Grant{}, err
	}
	if w.beforeAcquire != nil {
		w.beforeAcquire()
	}
	return w.locks.Acquire(ctx, r)
}

func (w *wire) Renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
	if err := w.err(); err != nil {
		return nil, err
	}
	return w.locks.Renew(ctx, grants)
}

func (*wire) Capabilities() lock.Capabilities { return lock.Capabilities{Name: "wire"} }

func (w *wire) Release(ctx context.Context, g lock.Grant) error {
	if err := w.err(); err != nil {
		return err
	}
	return w.locks.Release(ctx, g)
}

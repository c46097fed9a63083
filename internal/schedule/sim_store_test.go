package schedule_test

import (
	"context"
	"errors"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/turn"
	"github.com/observerd/observerd/test/kit/simtest"
)

// simStore is the coordination database as one node sees it, through its wire:
// the node's store and its provider of locks.
type simStore struct {
	node *simNode
	db   *memory
	wire *simtest.Wire
}

func (s *simStore) Now(ctx context.Context) (time.Time, error) {
	return simtest.Call(ctx, s.wire, "now", "", s.db.Now)
}

func (s *simStore) Turn(ctx context.Context, typ string, r lock.Request) (turn.State, error) {
	return simtest.Call(ctx, s.wire, "turn", typ, func(ctx context.Context) (turn.State, error) {
		return s.db.Turn(ctx, typ, r)
	})
}

// TakeTurn judges the turn before it is taken, in one step with it: nothing
// else runs between two calls that do not wait.
func (s *simStore) TakeTurn(ctx context.Context, g lock.Grant, t turn.Taken) error {
	return simtest.Do(ctx, s.wire, "take", t.Type, func(ctx context.Context) error {
		return s.node.world.write(g, func() error {
			s.node.world.judgeTurn(s.node, t)
			return s.db.TakeTurn(ctx, g, t)
		})
	})
}

func (s *simStore) TurnAndStreams(ctx context.Context, typ string, ids []string) (turn.State, map[string]turn.Stream, error) {
	type answer struct {
		last  turn.State
		found map[string]turn.Stream
	}
	a, err := simtest.Call(ctx, s.wire, "streams", ids[0], func(ctx context.Context) (a answer, err error) {
		a.last, a.found, err = s.db.TurnAndStreams(ctx, typ, ids)
		return a, err
	})
	return a.last, a.found, err
}

func (s *simStore) NoteStream(ctx context.Context, g lock.Grant, t turn.StreamTaken) error {
	return simtest.Do(ctx, s.wire, "note", t.Stream, func(ctx context.Context) error {
		return s.node.world.write(g, func() error {
			s.node.world.judgeNote(s.node, g, t)
			return s.db.NoteStream(ctx, g, t)
		})
	})
}

func (s *simStore) Beat(ctx context.Context, n turn.Node) error {
	return simtest.Do(ctx, s.wire, "beat", "", func(ctx context.Context) error { return s.db.Beat(ctx, n) })
}

func (s *simStore) Nodes(ctx context.Context, within time.Duration) ([]turn.Node, error) {
	return simtest.Call(ctx, s.wire, "nodes", "", func(ctx context.Context) ([]turn.Node, error) {
		return s.db.Nodes(ctx, within)
	})
}

func (s *simStore) Leave(ctx context.Context, bootID string) error {
	return simtest.Do(ctx, s.wire, "leave", "", func(ctx context.Context) error { return s.db.Leave(ctx, bootID) })
}

func (*simStore) Capabilities() lock.Capabilities { return lock.Capabilities{Name: "sim"} }

func (s *simStore) Acquire(ctx context.Context, r lock.Request) (lock.Grant, error) {
	began := time.Now()
	return simtest.Call(ctx, s.wire, "acquire", r.Key, func(ctx context.Context) (lock.Grant, error) {
		g, err := s.db.locks.Acquire(ctx, r)
		if err == nil {
			s.node.world.granted(s.node, g)
		}
		g.Began = began
		return g, err
	})
}

func (s *simStore) Renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
	return simtest.Call(ctx, s.wire, "renew", "", func(ctx context.Context) ([]lock.Renewal, error) {
		return s.db.locks.Renew(ctx, grants)
	})
}

func (s *simStore) Release(ctx context.Context, g lock.Grant) error {
	return simtest.Do(ctx, s.wire, "release", g.Key, func(ctx context.Context) error {
		err := s.db.locks.Release(ctx, g)
		if err == nil {
			s.node.world.released(g)
		}
		return err
	})
}

// write is a fenced write of the holder of the grant: it is done, or refused.
// What a database that is down refuses was not written, and is not judged.
func (w *simWorld) write(g lock.Grant, do func() error) error {
	if w.db.isDown() {
		return errDown
	}
	if !w.db.locks.Holds(g) {
		w.tally.Count("stale write refused")
		return lock.ErrFenced
	}
	err := do()
	if errors.Is(err, lock.ErrFenced) {
		w.broken("write refused though the lease stood")
	}
	return err
}

package app

import (
	"context"

	"github.com/observerd/observerd/internal/lockdb"
)

// Pause stops the polls of an observer on every node until [Operator.Resume],
// over restarts too. It reports false when it was paused already.
func (op *Operator) Pause(ctx context.Context, id, actor string) (changed bool, err error) {
	polled, err := op.known(ctx, id)
	if err != nil || polled[id].Paused {
		return false, err
	}
	return true, op.db.Pause(ctx, id, actor)
}

// Resume lets a paused observer be polled again and ends its backoff. It
// reports false when there was nothing to end.
func (op *Operator) Resume(ctx context.Context, id, actor string) (changed bool, err error) {
	polled, err := op.known(ctx, id)
	if err != nil {
		return false, err
	}
	s := polled[id]
	if !s.Paused && s.Failures == 0 {
		return false, nil
	}
	return true, op.db.Resume(ctx, id, actor)
}

// Reset sets an observer back to the beginning of its source; with forget,
// every row becomes an event again. It reports false for an observer that was
// never polled.
func (op *Operator) Reset(ctx context.Context, id, actor string, forget bool) (changed bool, err error) {
	polled, err := op.known(ctx, id)
	if err != nil {
		return false, err
	}
	if _, ok := polled[id]; !ok {
		return false, nil
	}
	return true, op.db.Reset(ctx, id, actor, lockdb.ResetOptions{Forget: forget})
}

// KnowsObserver returns nil when the configuration or the database has the id,
// and an [*UnknownObserverError] when neither has.
func (op *Operator) KnowsObserver(ctx context.Context, id string) error {
	_, err := op.known(ctx, id)
	return err
}

// Package guardtest is a guard without locks and without a database, for the tests of handlers.
package guardtest

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"github.com/observerd/observerd/guard"
	"github.com/observerd/observerd/guard/internal/attempt"
)

// Guard runs each event once, and forgets it again when its handler fails. One handler runs at a
// time. Its zero value is ready, and it is safe for concurrent use.
type Guard struct {
	// Tx is what handlers get, such as a transaction that the test rolls back.
	Tx guard.Tx
	// Fail is what Do returns in the place of running the handler, such as
	// [guard.ErrLockTimeout]; nil means nothing.
	Fail error

	mu      sync.Mutex
	applied map[string]bool
}

// Do runs the handler unless the event was processed.
func (g *Guard) Do(ctx context.Context, _, eventID string, f guard.Handler) (guard.Outcome, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Fail != nil {
		return "", g.Fail
	}
	if g.applied[eventID] {
		return guard.DuplicateInbox, nil
	}
	id := uuid.NewSHA1(uuid.NameSpaceURL, []byte(eventID)).String()
	if err := f(attempt.With(ctx, attempt.Attempt{IdempotencyKey: id, Fence: int64(len(g.applied) + 1)}), g.Tx); err != nil {
		return "", err
	}
	if g.applied == nil {
		g.applied = make(map[string]bool)
	}
	g.applied[eventID] = true
	return guard.Applied, nil
}

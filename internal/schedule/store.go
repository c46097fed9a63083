package schedule

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
)

// The types of these interfaces live in package turn, so that lockdb, which
// implements them, need not import this package (layers).

// turns is the memory of turns, and its clock.
type turns interface {
	Now(ctx context.Context) (time.Time, error)
	Turn(ctx context.Context, typ string, r lock.Request) (turn.State, error)
	// TakeTurn is refused with lock.ErrFenced when the lease has ended.
	TakeTurn(ctx context.Context, g lock.Grant, t turn.Taken) error
}

// streams is the memory of each observer's part.
type streams interface {
	Streams(ctx context.Context, ids []string) (map[string]turn.Stream, error)
	NoteStream(ctx context.Context, g lock.Grant, t turn.StreamTaken) error
}

// members is who is alive.
type members interface {
	Beat(ctx context.Context, n turn.Node) error
	Nodes(ctx context.Context, within time.Duration) ([]turn.Node, error)
	Leave(ctx context.Context, bootID string) error
}

// Store is all of the above; lockdb.DB is one.
type Store interface {
	turns
	streams
	members
}

// Observer polls one stream once, under the grant.
type Observer interface {
	ID() string
	Poll(ctx context.Context, g lock.Grant) (observer.Stats, error)
}

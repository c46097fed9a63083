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

// turns stores turns, and has the clock that decides.
type turns interface {
	Now(ctx context.Context) (time.Time, error)
	Turn(ctx context.Context, typ string, r lock.Request) (turn.State, error)
	// TakeTurn is refused with lock.ErrFenced when the lease has ended.
	TakeTurn(ctx context.Context, g lock.Grant, t turn.Taken) error
}

// streams stores each observer's part of the turns.
type streams interface {
	Streams(ctx context.Context, ids []string) (map[string]turn.Stream, error)
	NoteStream(ctx context.Context, g lock.Grant, t turn.StreamTaken) error
}

// members stores the live nodes.
type members interface {
	Beat(ctx context.Context, n turn.Node) error
	Nodes(ctx context.Context, within time.Duration) ([]turn.Node, error)
	Leave(ctx context.Context, bootID string) error
}

// Store stores turns, streams and members; lockdb.DB is one.
type Store interface {
	turns
	streams
	members
}

// Liveness knows which other nodes have died; liveness.Monitor is one.
type Liveness interface {
	// Gone reports whether the node of that boot id is known to be dead.
	Gone(bootID string) bool
	// Freed returns a channel that is closed when the lock may have become free, or
	// another node was found dead. Nil: there is no such notification.
	Freed(r lock.Request) <-chan struct{}
}

// noLiveness knows no dead node.
type noLiveness struct{}

func (noLiveness) Gone(string) bool                   { return false }
func (noLiveness) Freed(lock.Request) <-chan struct{} { return nil }

// Observer polls one stream once, under the grant.
type Observer interface {
	ID() string
	Poll(ctx context.Context, g lock.Grant) (observer.Stats, error)
}

// Beginner is an [Observer] whose polls wait for other polls of this node before they
// begin. The wait does not count as time of the poll.
type Beginner interface {
	// Begin waits until a poll may begin, and returns the context of that poll. The
	// caller calls end, which is never nil, when the poll has ended. The error is the
	// cause with which ctx ended; there is no poll then.
	Begin(ctx context.Context) (begun context.Context, end func(), err error)
}

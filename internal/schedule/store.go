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

// Liveness is what is known of other nodes; liveness.Monitor is one.
type Liveness interface {
	// Gone reports whether the node of that boot id is known to be dead.
	Gone(bootID string) bool
	// Freed returns a channel that is closed when the lock may have become
	// free, or another node was found dead. Nil: that is not known here.
	Freed(r lock.Request) <-chan struct{}
}

// unaware knows of nobody's death.
type unaware struct{}

func (unaware) Gone(string) bool                   { return false }
func (unaware) Freed(lock.Request) <-chan struct{} { return nil }

// Observer polls one stream once, under the grant.
type Observer interface {
	ID() string
	Poll(ctx context.Context, g lock.Grant) (observer.Stats, error)
}

// Beginner is an [Observer] whose polls wait for others of this node before they
// begin. That takes nothing of the time of a poll.
type Beginner interface {
	// Begin waits until a poll may begin. The poll has the context that it returns, and
	// end, which is never nil, is called when it has ended. The error is the cause of
	// the end of ctx; there is no poll then.
	Begin(ctx context.Context) (begun context.Context, end func(), err error)
}

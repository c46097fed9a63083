package schedule

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
)

// Defaults of [Options] and [Type].
const (
	DefaultHeartbeat       = 5 * time.Second
	DefaultShutdownTimeout = 20 * time.Second
	DefaultPollTimeout     = 10 * time.Minute
	DefaultConcurrency     = 8
	DefaultConnections     = 8
)

// callTimeout limits one call of the store.
const callTimeout = 10 * time.Second

// Options configure a scheduler. The configuration that they come from is checked.
type Options struct {
	// Node describes this process; BootID and Name are required. Types,
	// Unreachable and SeenAt are filled in by the scheduler.
	Node turn.Node
	// Types are the types of observers that this node polls; it may be empty.
	Types []Type
	// Keeper takes and renews the locks. Required; it outlives the scheduler.
	Keeper *lock.Keeper
	// Store is the coordination database. Required.
	Store Store
	// Liveness knows the other nodes that died. Nil knows none: their leases end
	// with the TTL.
	Liveness Liveness
	// Enabled is the switch of the node. If false, the node is seen as alive, but
	// takes no lock and no turn.
	Enabled bool
	// Concurrency is how many observers of one type run side by side;
	// 0 means 8.
	Concurrency int
	// Connections is how many calls the store answers at a time. As many turns
	// may look at it and take their lock at a time; 0 means 8.
	Connections int
	// Heartbeat is the time between two heartbeats; a node that is silent for three
	// of them counts as dead. 0 means 5 s. It must be the same on all nodes.
	Heartbeat time.Duration
	// ShutdownTimeout is how long Stop waits for polls to finish or abandon
	// their chunk; 0 means 20 s.
	ShutdownTimeout time.Duration
	// Quiet puts the records of each turn without events and errors at DEBUG, and adds one of
	// each hour that sums the turns up.
	Quiet bool
	// Logger receives the scheduler's records; nil discards them.
	Logger *slog.Logger
	// Registerer receives the metrics; nil registers none.
	Registerer prometheus.Registerer
	// Beat is called when a loop is alive and will call again within the given time;
	// 0 means that the loop has ended. Nil is not called.
	Beat func(loop string, within time.Duration)
}

// Type is a type of observers, which are polled together under one lock.
type Type struct {
	// Name is the name of the type, such as "order". Required, and unique.
	Name string
	// Interval is the time between the starts of two polls in the whole cluster. Required;
	// at least a second, in whole milliseconds: the database keeps milliseconds, and gocron
	// full seconds apart.
	Interval time.Duration
	// Shift is how long after each tick the type fires, which keeps types
	// apart that are due together; 0 means at the tick. Less than Interval.
	// The turn is still that of the tick, so that nodes with different shifts
	// neither repeat a turn nor leave one out.
	Shift time.Duration
	// Request is the type's lock. Required.
	Request lock.Request
	// Wait is how long a turn that finds another holder looks at the lock at least
	// twice a second; after it (with 0, from the start) the time between looks grows,
	// until the next turn is due.
	Wait time.Duration
	// Observers are polled side by side.
	Observers []Observer
	// NotBetween is a time of day in which no poll of the type begins, and no node takes
	// its lock. Nil: none.
	NotBetween Window
	// Timings are those of the observers that have their own, by id.
	Timings map[string]Timing
	// PollTimeout ends the poll of an observer when nothing of the type was committed
	// for that long; 0 means 10 minutes.
	PollTimeout time.Duration
	// Activity records the type's commits: the code that commits its chunks calls
	// [Activity.Committed]. Nil: nothing calls it.
	Activity *Activity
}

func (o Options) withDefaults() Options {
	o.Concurrency = cmp.Or(o.Concurrency, DefaultConcurrency)
	o.Connections = cmp.Or(o.Connections, DefaultConnections)
	o.Heartbeat = cmp.Or(o.Heartbeat, DefaultHeartbeat)
	o.ShutdownTimeout = cmp.Or(o.ShutdownTimeout, DefaultShutdownTimeout)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Liveness = cmp.Or[Liveness](o.Liveness, noLiveness{})
	o.Registerer = cmp.Or[prometheus.Registerer](o.Registerer, prometheus.NewRegistry())
	if o.Beat == nil {
		o.Beat = func(string, time.Duration) {}
	}
	o.Types = slices.Clone(o.Types)
	for i := range o.Types {
		typ := &o.Types[i]
		typ.PollTimeout = cmp.Or(typ.PollTimeout, DefaultPollTimeout)
		typ.Activity = cmp.Or(typ.Activity, NewActivity())
	}
	return o
}

// The types of these interfaces live in package turn, so that lockdb, which
// implements them, need not import this package (layers).

// members stores the live nodes.
type members interface {
	Beat(ctx context.Context, n turn.Node) error
	Nodes(ctx context.Context, within time.Duration) ([]turn.Node, error)
	Leave(ctx context.Context, bootID string) error
}

// Store stores turns, each observer's part of them, and members, and has the clock that
// decides; lockdb.DB is one.
type Store interface {
	members
	Now(ctx context.Context) (time.Time, error)
	Turn(ctx context.Context, typ string, r lock.Request) (turn.State, error)
	// TakeTurn is refused with lock.ErrFenced when the lease has ended.
	TakeTurn(ctx context.Context, g lock.Grant, t turn.Taken) error
	// TurnAndStreams returns the last turn of a type, without the holder of its lock, and those
	// of its observers.
	TurnAndStreams(ctx context.Context, typ string, ids []string) (turn.State, map[string]turn.Stream, error)
	NoteStream(ctx context.Context, g lock.Grant, t turn.StreamTaken) error
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

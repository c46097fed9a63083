// Package relay delivers the event log of the coordination database to sinks.
package relay

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/observerd/observerd/internal/wait"
)

var (
	// ErrHeld is what [Options].Lead returns while another relay leads the
	// sink. It is the normal state of all nodes but one.
	ErrHeld = errors.New("another relay leads the sink")
	// ErrUnknown reports that the sink holds an event that the event log does not know:
	// of another log, or of a later state of this one.
	ErrUnknown = errors.New("the sink holds events that this log does not know")
)

// Lease is the right to feed one sink. *lock.Lease is one.
type Lease interface {
	// Context ends when the lease can no longer be trusted; its cause says why.
	Context() context.Context
	// Fence grows with every lease on the same sink.
	Fence() int64
	// Release gives the lease back. It is called once, lost or not.
	Release(ctx context.Context) error
}

// Relay delivers the event log to one sink, in the order of the sequence
// within each stream, and moves the sink's offset past what the sink has
// stored and never further.
//
// Every node runs a relay for every sink; the one that holds the sink's lease
// leads, and keeps leading while it is healthy. The others stand by. A term
// goes: claim its offsets with the lease's fence, open the sink, compare what the sink
// has with what the log knows of it where the sink can tell, then deliver batches of the
// streams that have a backlog, one of which is read while the sink stores the one before.
//
//   - The sink fails: the batch is repeated with growing pauses, and after
//     [Options].GiveUp failures in a row the lease is given back and this node
//     stands aside once, because the cause may be on this host (a full disk, a
//     route) and not in the sink.
//   - The sink is halted ([sink.ErrHalted]): the relay keeps the lease, so that no other
//     node covers the loss, and tries again until a person has acted. Another term
//     does not know of the halt.
//   - The coordination database fails: the relay waits, keeps the lease as
//     long as the lease is renewed, and logs that once.
//   - The lease is lost, or a later relay has claimed the sink: the batch is
//     abandoned, nothing more is acknowledged, and the relay stands by.
//   - The log has a gap, the sink rejects an event for good, or it holds other events than
//     the log knows: that stream is halted, and tried again every 15 s, in case somebody
//     has acted; the others go on.
type Relay struct {
	opts    Options
	metrics *relayMetrics
	wake    chan struct{}
	// database is the outage of the event log and of the lease that was logged.
	database wait.Outage
}

// New returns a relay that delivers nothing until [Relay.Run].
func New(opts Options) *Relay {
	opts.setDefaults()
	opts.Logger = opts.Logger.With("sink", opts.Sink)
	metrics := newRelayMetrics(opts.Registerer, opts.Sink)
	for _, stream := range opts.Streams {
		if stream.Zone != nil {
			metrics.latency.WithLabelValues(stream.Type) // A rate over it is defined from the start.
		}
	}
	return &Relay{opts: opts, metrics: metrics, wake: make(chan struct{}, 1)}
}

// Wake tells the relay that this process has committed events, so that it reads them at
// once. It never blocks.
func (r *Relay) Wake() { wait.Wake(r.wake) }

// Run stands by, leads, and stands by again until ctx ends. It then
// acknowledges what the sink has stored, closes the sink and releases the lease:
// no error ends a relay. Calls must not overlap.
func (r *Relay) Run(ctx context.Context) {
	defer r.beat(0)
	for ctx.Err() == nil {
		r.standBy(ctx)
	}
}

// standBy leads for one term if it can, and waits before the next attempt, or until the
// lease of another leader is free. A relay that has just led lets the others try first.
func (r *Relay) standBy(ctx context.Context) {
	d, freed := r.opts.Standby, r.opts.Freed() // before the attempt, so that nothing is missed
	r.beat(r.opts.Timeout)
	switch lease, err := r.opts.Lead(ctx); {
	case err == nil:
		r.databaseAnswers()
		d, freed = r.lead(ctx, lease), nil
	case errors.Is(err, ErrHeld):
		r.databaseAnswers()
	default:
		r.databaseFails(ctx, err)
		freed = nil
	}
	// Nodes that were started together do not try together.
	r.pause(ctx, time.Duration(float64(d)*(0.75+0.5*rand.Float64())), freed)
}

// lead runs one term, and returns how long to stand by after it.
func (r *Relay) lead(ctx context.Context, lease Lease) time.Duration {
	defer r.release(ctx, lease)
	work, cancel := context.WithCancelCause(lease.Context())
	defer cancel(nil)
	// The lease may or may not live on ctx; the work ends with either.
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()

	t := newTerm(ctx, r, lease)
	defer t.close()
	r.opts.Logger.Info("Relay leads", "epoch", lease.Fence())
	err := t.run(work)
	switch {
	case ctx.Err() != nil:
		r.opts.Logger.Info("Relay stopped")
	case errors.Is(err, errGaveUp):
		r.opts.Logger.Error("Sink keeps failing, letting another node try", "err", err)
		// Others try every Standby, give or take a quarter: twice that, they
		// come first.
		return 2 * r.opts.Standby
	default:
		r.opts.Logger.Warn("Relay lost the lead", "err", err)
	}
	return r.opts.Standby
}

// release gives the lease back, on a context that outlives shutdown: a lease
// that stays behind would keep the other nodes waiting for its TTL.
func (r *Relay) release(ctx context.Context, lease Lease) {
	lost := lease.Context().Err() != nil && ctx.Err() == nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := lease.Release(ctx); err != nil && !lost {
		r.opts.Logger.Error("Error releasing lock", "err", err)
	}
}

// stopTimeout bounds calls after the end of the work's context.
const stopTimeout = 5 * time.Second

// pause waits for d, or until ctx ends or the channel is closed.
func (r *Relay) pause(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	r.beat(d)
	wait.Until(ctx, d, wake)
}

// beat reports that the loop is alive and does something next that takes at most d; 0
// reports its end.
func (r *Relay) beat(d time.Duration) {
	if d > 0 {
		d = 2*d + time.Minute // The process may be starved of CPU without being stuck.
	}
	r.opts.Beat("relay "+r.opts.Sink, d)
}

func (r *Relay) databaseFails(ctx context.Context, err error) {
	if ctx.Err() == nil && r.database.Begin() {
		r.opts.Logger.Warn("Coordination database fails, relay waits", "err", err)
	}
}

func (r *Relay) databaseAnswers() {
	if lasted, over := r.database.End(); over {
		r.opts.Logger.Info("Coordination database answers again", "after", lasted)
	}
}

package schedule

import (
	"context"
	"errors"
	"time"

	"github.com/observerd/observerd/internal/turn"
)

const heartbeatLoop = "schedule/heartbeat"

// beatGrace is how long a stop waits for a running heartbeat, at most. The database
// may execute an abandoned statement all the same, after the node has signed off: the
// node would then keep its rank though it has gone.
const beatGrace = 2 * time.Second

// heartbeats records again and again that this node is alive. The jobs begin after
// the first heartbeat that succeeds: before it, neither the database's clock nor the
// other nodes are known.
func (s *Scheduler) heartbeats(ctx context.Context) {
	ticker := time.NewTicker(s.opts.Heartbeat)
	defer ticker.Stop()
	for {
		s.opts.Beat(heartbeatLoop, deadAfter*s.opts.Heartbeat+2*callTimeout)
		if err := s.heartbeat(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			if !errors.Is(err, turn.ErrBusy) {
				s.outages.begin(heartbeatLoop, err)
			}
		} else {
			s.outages.end(heartbeatLoop)
			s.startJobs()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (s *Scheduler) heartbeat(ctx context.Context) error {
	ctx, cancel := withGrace(ctx, min(beatGrace, s.opts.ShutdownTimeout/2))
	defer cancel()
	sent := s.clock.local()
	db, err := s.opts.Store.Now(ctx)
	if err != nil {
		return err
	}
	s.clock.measured(sent, s.clock.local(), db)
	if err := s.membership.beat(ctx, s.opts.Heartbeat); err != nil {
		return err
	}
	s.metrics.liveNodes.Set(float64(s.membership.size()))
	return nil
}

// withGrace returns the context of a call, which ends only that long after ctx.
func withGrace(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return call, func() {
		stop()
		cancel()
	}
}

// Begun returns a channel that is closed when the scheduler works: the database's
// clock is known, the other nodes can see this node, and the jobs of its types run,
// if it has any. It stays open when Stop comes first.
func (s *Scheduler) Begun() <-chan struct{} { return s.begun }

// Waiting reports whether the coordination database does not answer or refuses writes, so that turns
// wait for it. It has the result of the last heartbeat: a type whose turn has met
// the outage may not look again before its next turn, in an hour perhaps.
func (s *Scheduler) Waiting() bool { return s.outages.lasts(heartbeatLoop) }

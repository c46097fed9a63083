package schedule

import (
	"context"
	"errors"
	"time"

	"github.com/observerd/observerd/internal/turn"
)

const heartbeatLoop = "schedule/heartbeat"

// beatGrace is how long a sign of life that is under way is still waited for at a
// stop, at most. A statement that is abandoned may be carried out all the same, after the
// farewell: the node would stand in line as alive when it has gone.
const beatGrace = 2 * time.Second

// heartbeats says every now and then that this node is alive. With the first
// that succeeds, the jobs begin: before, neither the database's clock nor the
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
				s.outage.failed(heartbeatLoop, err)
			}
		} else {
			s.outage.passed(heartbeatLoop)
			s.startJobs()
			s.noteBegun()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (s *Scheduler) heartbeat(ctx context.Context) error {
	ctx, cancel := spared(ctx, min(beatGrace, s.opts.ShutdownTimeout/2))
	defer cancel()
	sent := s.clock.local()
	db, err := s.opts.Store.Now(ctx)
	if err != nil {
		return err
	}
	s.clock.measured(sent, s.clock.local(), db)
	if err := s.member.beat(ctx, s.opts.Heartbeat); err != nil {
		return err
	}
	s.metrics.liveNodes.Set(float64(s.member.size()))
	return nil
}

// spared returns the context of a call that the end of ctx interrupts only after
// that time.
func spared(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return call, func() {
		stop()
		cancel()
	}
}

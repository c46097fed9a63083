package schedule

import (
	"context"
	"time"
)

const heartbeatLoop = "schedule/heartbeat"

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
			s.outage.failed(heartbeatLoop, err)
		} else {
			s.outage.passed(heartbeatLoop)
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
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
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

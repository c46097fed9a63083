package schedule

import "sync"

// begun says once that the work has begun.
type begun struct {
	once sync.Once
	done chan struct{}
}

// Begun is closed when the scheduler works: the database's clock is known, the
// other nodes can see this one, and the jobs of its types run, if it has any. It
// stays open when Stop comes first.
func (s *Scheduler) Begun() <-chan struct{} { return s.begun.done }

// noteBegun is told of each sign of life that succeeded. Jobs that could not be
// started are tried again with the next.
func (s *Scheduler) noteBegun() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || s.jobs == nil && len(s.opts.Types) > 0 {
		return
	}
	s.begun.once.Do(func() { close(s.begun.done) })
}

// Waiting reports whether the coordination database does not answer, so that turns
// wait for it. It is what the heartbeat has last found: a type whose turn has met
// the outage may not look again before its next one, in an hour perhaps.
func (s *Scheduler) Waiting() bool { return s.outage.lasts(heartbeatLoop) }

// lasts reports whether the loop still waits.
func (o *outage) lasts(loop string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.away[loop]
}

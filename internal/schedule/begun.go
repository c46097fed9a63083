package schedule

// Begun returns a channel that is closed when the scheduler works: the database's
// clock is known, the other nodes can see this node, and the jobs of its types run,
// if it has any. It stays open when Stop comes first.
func (s *Scheduler) Begun() <-chan struct{} { return s.begun }

// noteBegun is called after each heartbeat that succeeded. Jobs that could not be
// started are tried again with the next heartbeat.
func (s *Scheduler) noteBegun() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || s.jobs == nil && len(s.opts.Types) > 0 {
		return
	}
	s.beginOnce.Do(func() { close(s.begun) })
}

// Waiting reports whether the coordination database does not answer, so that turns
// wait for it. It has the result of the last heartbeat: a type whose turn has met
// the outage may not look again before its next turn, in an hour perhaps.
func (s *Scheduler) Waiting() bool { return s.outages.lasts(heartbeatLoop) }

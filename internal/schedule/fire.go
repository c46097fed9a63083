package schedule

import (
	"fmt"
	"runtime/debug"
	"time"
)

func loopName(typ string) string { return "schedule/" + typ }

// stuckAfter returns how long a type's job may be silent before it counts as stuck:
// a few intervals more than all its observers may take one after the other.
func (s *Scheduler) stuckAfter(typ Type) time.Duration {
	rounds := (len(typ.Observers) + s.opts.Concurrency - 1) / s.opts.Concurrency
	return 3*typ.Interval + time.Duration(rounds)*typ.PollTimeout + 6*callTimeout
}

// fire is a type's job: one turn, for the tick that is due on the
// database's clock.
func (s *Scheduler) fire(typ Type) {
	if !s.beginTurn() {
		return
	}
	defer s.turns.Done()
	s.opts.Beat(loopName(typ.Name), s.stuckAfter(typ))
	n := typ.serves(s.clock.now())
	r := &run{
		Scheduler: s, typ: typ, n: n, at: tick(n, typ.Interval),
		log: s.opts.Logger.With("type", typ.Name, "lock", typ.Request.Key),
	}
	locked := false
	s.cycles.begin(r.at, typ.Name)
	defer func() { s.cycles.end(r.at, typ.Name, locked) }()
	defer r.catchPanic()
	locked = r.turn(s.ctx)
}

// catchPanic recovers from a panic in a turn; the next turn begins anew.
func (r *run) catchPanic() {
	if p := recover(); p != nil {
		_ = r.panicked(p) // It is logged already.
	}
}

// panicked logs and counts a panic, and returns it as an error.
func (r *run) panicked(p any) error {
	r.metrics.panics.WithLabelValues(r.typ.Name).Inc()
	err := fmt.Errorf("panic: %v", p)
	r.log.Error("Panic while polling", "err", err, "stack", string(debug.Stack()))
	return err
}

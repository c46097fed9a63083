package schedule

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
)

// startJobs starts the jobs, once. They fire at once for the present tick, so that a
// new node does not idle until the next, then at each following one. It is called after each
// heartbeat that succeeded, so jobs that could not be started are tried again.
func (s *Scheduler) startJobs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return
	}
	if s.jobs == nil && len(s.opts.Types) > 0 {
		started, err := s.newJobs()
		if err != nil {
			s.opts.Logger.Error("Jobs not started; trying again", "err", err)
			return
		}
		s.jobs, s.began = started, s.clock.now()
		s.cycles.expect(s.began)
		started.Start()
	}
	s.beginOnce.Do(func() { close(s.begun) })
}

// job takes the turns of a type.
type job struct {
	typ Type
	// turn is locked during one. A tick during a turn is left out: gocron's singleton mode takes
	// 25 kB a job for that.
	turn sync.Mutex
	// elsewhere is when this node last found that another had the turn; zero if it did not in the
	// last turn at which it looked.
	elsewhere time.Time
	// held says that another node held the lock in the last turn.
	held bool
}

// newJobs makes the jobs of the types.
func (s *Scheduler) newJobs() (gocron.Scheduler, error) {
	cron, err := gocron.NewScheduler(
		gocron.WithLocation(time.UTC),
		gocron.WithClock(steadyClock{clockwork.NewRealClock(), s.clock}))
	if err != nil {
		return nil, err
	}
	for _, typ := range s.opts.Types {
		s.opts.Beat(loopName(typ.Name), s.stuckAfter(typ))
		j := &job{typ: typ}
		_, err := cron.NewJob(
			gocron.CronJob("* * * * *", false), // aligned replaces it
			gocron.NewTask(func() {
				if j.turn.TryLock() {
					defer j.turn.Unlock()
					s.fire(j)
				}
			}),
			gocron.WithName(typ.Name),
			gocron.WithCronImplementation(newAligned(s.clock, typ)),
			gocron.WithStartAt(gocron.WithStartImmediately()))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("job of type %s: %w", typ.Name, err), cron.Shutdown())
		}
	}
	return cron, nil
}

// endJobs ends gocron; no job may run any more.
func (s *Scheduler) endJobs(ctx context.Context) error {
	if s.jobs == nil {
		return nil
	}
	if err := s.jobs.ShutdownWithContext(ctx); err != nil {
		return fmt.Errorf("shut gocron down: %w", err)
	}
	return nil
}

// steadyClock is gocron's clock. It ignores steps of the node's clock: after one back,
// jobs would wait for as long as the clock went back.
type steadyClock struct {
	clockwork.Clock
	clock *clock
}

func (c steadyClock) Now() time.Time { return c.clock.local() }

// aligned is a gocron.Cron that fires for the ticks of a type on the database's
// clock. Its arguments and results are times of this node, whose offset to that clock
// may have changed since the last call: as long as the change stays within the slack,
// no tick is repeated or left out.
type aligned struct {
	clock *clock
	typ   Type
	away  *time.Location
}

func newAligned(c *clock, typ Type) aligned {
	return aligned{clock: c, typ: typ, away: time.FixedZone("away", 3600)}
}

// IsValid implements gocron.Cron; there is no crontab to check.
func (aligned) IsValid(string, *time.Location, time.Time) error { return nil }

// Next implements gocron.Cron. The zone of its answers alternates: gocron
// takes two firings within one second of the wall clock for the end of summer
// time and leaves the second out, but the firings of ticks that are a second apart
// come a little closer when the offset changes.
func (a aligned) Next(last time.Time) time.Time {
	ahead := a.clock.ahead()
	next := a.typ.due(a.typ.serves(last.Add(ahead)) + 1).Add(-ahead)
	if last.Location() == a.away {
		return next
	}
	return next.In(a.away)
}

func loopName(typ string) string { return "schedule/" + typ }

// stuckAfter returns how long a type's job may be silent before it counts as stuck:
// a few intervals more than all its observers may take one after the other.
func (s *Scheduler) stuckAfter(typ Type) time.Duration {
	rounds := (len(typ.Observers) + s.opts.Concurrency - 1) / s.opts.Concurrency
	return 3*typ.Interval + time.Duration(rounds)*typ.PollTimeout + 6*callTimeout
}

// fire is a type's job: one turn, for the tick that is due on the
// database's clock.
func (s *Scheduler) fire(j *job) {
	if !s.beginTurn() {
		return
	}
	defer s.turns.Done()
	typ := j.typ
	s.opts.Beat(loopName(typ.Name), s.stuckAfter(typ))
	n := typ.serves(s.clock.now())
	r := &run{
		Scheduler: s, job: j, typ: typ, n: n, at: tick(n, typ.Interval),
		log: s.opts.Logger.With("type", typ.Name, "lock", typ.Request.Key),
	}
	locked := false
	s.cycles.begin(r.at, typ.Name)
	defer func() { s.cycles.end(r.at, typ.Name, locked) }()
	defer func() {
		if p := recover(); p != nil {
			_ = r.panicked(p) // It is logged already, and the next turn begins anew.
		}
	}()
	locked = r.turn(s.ctx)
}

// panicked logs and counts a panic, and returns it as an error.
func (r *run) panicked(p any) error {
	r.metrics.panics.WithLabelValues(r.typ.Name).Inc()
	err := fmt.Errorf("panic: %v", p)
	r.log.Error("Panic while polling", "err", err, "stack", string(debug.Stack()))
	return err
}

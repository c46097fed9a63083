package schedule

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"golang.org/x/sync/semaphore"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/wait"
)

// errStopping is the cause with which contexts end because of [Scheduler.Stop].
var errStopping = errors.New("scheduler is stopping")

// signOffTimeout limits the last write of a node.
const signOffTimeout = 5 * time.Second

// Scheduler runs the turns of this node.
type Scheduler struct {
	opts    Options
	metrics *metrics
	clock   *clock
	cycles  *cycles
	outages *outageLog

	membership *membership
	admission  *admission // of all turns
	passedOver *passedOver
	conditions *conditions

	// ctx is the context of all turns; Stop cancels it with errStopping.
	ctx    context.Context
	cancel context.CancelCauseFunc
	turns  sync.WaitGroup // and the heartbeat

	begun     chan struct{}
	beginOnce sync.Once

	stopped sync.Once
	stopErr error

	mu       sync.Mutex
	started  bool
	stopping bool
	jobs     gocron.Scheduler // nil before they began
	began    time.Time        // when the jobs began, on the database's clock
	released []string         // locks that were released because of Stop
}

// New returns a scheduler that does nothing yet.
func New(o Options) *Scheduler {
	o = o.withDefaults()
	o.Logger = o.Logger.With("node", o.Node.Name)
	if !o.Enabled {
		o.Types = nil
	}
	o.Node.Types, o.Node.Intervals = nil, make(map[string]time.Duration)
	for _, typ := range o.Types {
		o.Node.Types = append(o.Node.Types, typ.Name)
		o.Node.Intervals[typ.Name] = typ.Interval
	}
	m, c := newMetrics(o.Registerer), newClock()
	for _, typ := range o.Types {
		m.prepare(o.Node.Name, typ)
	}
	conditions := newConditions(o.Types, c)
	o.Registerer.MustRegister(conditions)
	s := &Scheduler{
		conditions: conditions,
		opts:       o,
		metrics:    m,
		clock:      c,
		cycles:     newCycles(o.Logger, m, o.Types, o.Quiet),
		outages:    &outageLog{log: o.Logger},
		membership: newMembership(o.Node, o.Store),
		admission:  &admission{slots: semaphore.NewWeighted(int64(o.Connections)), metrics: m},
		passedOver: &passedOver{log: o.Logger, turns: m.passed, sincePoll: m.passedRow},
		begun:      make(chan struct{}),
	}
	for _, typ := range o.Types {
		typ.Activity.alive = func() { o.Beat(loopName(typ.Name), s.stuckAfter(typ)) }
	}
	return s
}

// Start begins, and returns at once: a database that is down is waited for.
// When ctx ends, turns end as they do in Stop, which must still be called.
func (s *Scheduler) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started || s.stopping {
		return errors.New("start the scheduler: it was started or stopped before")
	}
	s.started = true
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.turns.Go(func() { s.heartbeats(s.ctx) })
	return nil
}

// Stop lets no turn begin any more, interrupts those that wait, and lets polls
// finish or abandon their chunk; it waits for them until ShutdownTimeout or
// the end of ctx. Each releases its lock as it ends. Stop may be called
// before Start and more than once; a later call returns what the first did.
func (s *Scheduler) Stop(ctx context.Context) error {
	s.stopped.Do(func() { s.stopErr = s.stop(ctx) })
	return s.stopErr
}

func (s *Scheduler) stop(ctx context.Context) error {
	if !s.refuseTurns() {
		return nil
	}
	began := time.Now()
	s.cancel(errStopping)
	waiting, cancel := context.WithTimeout(ctx, s.opts.ShutdownTimeout)
	defer cancel()
	err := wait.Group(waiting, &s.turns, "stop the scheduler: a poll")
	if err == nil {
		// gocron's Shutdown spins while a job runs, so it comes after the last;
		// with one that does not end, only the end of the process helps.
		err = s.endJobs(ctx)
	}
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), signOffTimeout)
	defer cancel()
	if err := s.opts.Store.Leave(leaving, s.opts.Node.BootID); err != nil {
		s.opts.Logger.Warn("Node not signed off; it counts as alive until its last heartbeat is old", "err", err)
	}
	for _, typ := range s.opts.Types {
		s.opts.Beat(loopName(typ.Name), 0)
	}
	s.opts.Beat(heartbeatLoop, 0)
	s.opts.Logger.Info("Scheduler stopped", "released", s.releasedLocks(), "duration", time.Since(began))
	return err
}

// refuseTurns lets no turn begin any more. It reports whether the scheduler was started.
func (s *Scheduler) refuseTurns() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	return s.started
}

// Wait waits, after Stop, for turns that did not end in time.
func (s *Scheduler) Wait() { s.turns.Wait() }

// beginTurn reports whether a turn may begin; it may not when the scheduler stops.
// The turn ends with turns.Done.
func (s *Scheduler) beginTurn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.turns.Add(1)
	return true
}

// recordRelease remembers a lock that was released because of Stop.
func (s *Scheduler) recordRelease(r lock.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		s.released = append(s.released, r.Key)
	}
}

func (s *Scheduler) releasedLocks() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.released))
}

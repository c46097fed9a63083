package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/lock"
)

// errStopping is the cause of what ends because of [Scheduler.Stop].
var errStopping = errors.New("scheduler is stopping")

// leaveTimeout bounds the farewell of a node.
const leaveTimeout = 5 * time.Second

// Scheduler runs the turns of this node.
type Scheduler struct {
	opts    Options
	metrics *metrics
	clock   *clock
	member  *member
	cycles  *cycles
	outage  *outage
	begun   begun
	// admission is of all turns.
	admission  *admission
	passedOver *passedOver

	// life is the context of all turns; Stop ends it with errStopping.
	life  context.Context
	end   context.CancelCauseFunc
	turns sync.WaitGroup // and the heartbeat

	stopped sync.Once
	stopErr error

	mu       sync.Mutex
	started  bool
	stopping bool
	jobs     *jobs
	began    time.Time // when the jobs did, on the database's clock
	released []string  // locks given back because of Stop
}

// New returns a scheduler that does nothing yet.
func New(o Options) (*Scheduler, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	o = o.withDefaults()
	o.Logger = o.Logger.With("node", o.Node.Name)
	if !o.Enabled {
		o.Types = nil
	}
	o.Node.Types = nil
	for _, typ := range o.Types {
		o.Node.Types = append(o.Node.Types, typ.Name)
	}
	m := newMetrics(o.Registerer)
	for _, typ := range o.Types {
		m.prepare(o.Node.Name, typ)
	}
	s := &Scheduler{
		opts:       o,
		metrics:    m,
		clock:      newClock(),
		member:     newMember(o.Node, o.Store),
		cycles:     newCycles(o.Logger, m, o.Types),
		outage:     &outage{log: o.Logger},
		begun:      begun{done: make(chan struct{})},
		admission:  newAdmission(o.Connections, m),
		passedOver: &passedOver{log: o.Logger, turns: m.passed, row: m.passedRow},
	}
	for _, typ := range o.Types {
		typ.Progress.beat = func() { o.Beat(loopName(typ.Name), s.patience(typ)) }
	}
	return s, nil
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
	s.life, s.end = context.WithCancelCause(ctx)
	s.turns.Go(func() { s.heartbeats(s.life) })
	return nil
}

// Stop lets no turn begin any more, interrupts those that wait, and lets polls
// finish or abandon their chunk; it waits for them until ShutdownTimeout or
// the end of ctx. Each gives its lock back as it ends. Stop may be called
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
	s.end(errStopping)
	err := s.join(ctx)
	if err == nil {
		// gocron's Shutdown spins while a job runs, so it comes after the last;
		// with one that does not end, only the end of the process helps.
		err = s.jobs.shutdown(ctx)
	}
	err = errors.Join(err, s.leave(ctx))
	for _, typ := range s.opts.Types {
		s.opts.Beat(loopName(typ.Name), 0)
	}
	s.opts.Beat(heartbeatLoop, 0)
	s.opts.Logger.Info("Scheduler stopped", "released", s.givenBack(), "duration", time.Since(began))
	return err
}

// refuseTurns lets no turn begin any more; false when none ever could.
func (s *Scheduler) refuseTurns() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	return s.started
}

// join waits for the turns and the heartbeat.
func (s *Scheduler) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.ShutdownTimeout)
	defer cancel()
	done := make(chan struct{})
	go func() {
		s.turns.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the scheduler: a poll did not end in time: %w", context.Cause(ctx))
	}
}

// Wait waits, after Stop, for what did not end in time.
func (s *Scheduler) Wait() { s.turns.Wait() }

func (s *Scheduler) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	return s.opts.Store.Leave(ctx, s.opts.Node.BootID)
}

// enter lets a turn begin, unless the scheduler stops. leave it with
// turns.Done.
func (s *Scheduler) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.turns.Add(1)
	return true
}

// noteRelease remembers a lock that was given back because of Stop.
func (s *Scheduler) noteRelease(r lock.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		s.released = append(s.released, r.Key)
	}
}

func (s *Scheduler) givenBack() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.released))
}

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/eventlog"
	"github.com/observerd/observerd/internal/relay"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/source/access"
	"github.com/observerd/observerd/internal/turn"
	"github.com/observerd/observerd/internal/wait"
	"github.com/observerd/observerd/internal/wiring"
)

// parts work once the coordination database is ready.
type parts struct {
	schedule *schedule.Scheduler
	relays   []*relay.Relay
	janitor  *lockdb.Janitor
	log      *eventlog.Log

	// enabled is the switch of the node: without it, it takes no lock at all.
	enabled bool

	mu sync.Mutex
	// stopped says that stop came, before or after start.
	stopped bool
	// cancel ends the relays, the janitor and the notices; work waits for them.
	cancel context.CancelFunc
	work   sync.WaitGroup
}

func (a *App) newParts() (p *parts, err error) {
	p = &parts{cancel: func() {}, enabled: a.cfg.Scheduler.Enabled}
	sources, err := a.openSources()
	if err != nil {
		return nil, err
	}
	if p.schedule, err = a.newSchedule(sources); err != nil {
		return nil, err
	}
	for _, s := range a.cfg.Sinks {
		r, err := a.newRelay(s)
		if err != nil {
			return nil, fmt.Errorf("sink %s: %w", s.ID, err)
		}
		p.relays = append(p.relays, r)
	}
	p.log = a.db.Log()
	a.db.OnCommit(func() {
		p.wake()
		p.log.Announce()
	})
	p.janitor = a.newJanitor()
	return p, nil
}

// start begins the polls, the delivery and the cleaning. A node that is
// switched off only shows that it is there. After stop it does nothing.
func (p *parts) start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil
	}
	if err := p.schedule.Start(ctx); err != nil {
		return err
	}
	if !p.enabled {
		return nil
	}
	ctx, p.cancel = context.WithCancel(ctx)
	for _, r := range p.relays {
		p.work.Go(func() { r.Run(ctx) })
	}
	p.work.Go(func() { p.janitor.Run(ctx) })
	p.work.Go(func() { p.log.Notices(ctx, p.wake) })
	return nil
}

// wake has the relays look for events at once.
func (p *parts) wake() {
	for _, r := range p.relays {
		r.Wake()
	}
}

// stop ends them in that order, so that the commits of the last polls are still
// delivered if there is time.
func (p *parts) stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	err := p.schedule.Stop(ctx)
	p.cancel()
	return errors.Join(err, wait.Group(ctx, &p.work, "delivery"))
}

// openSources opens the sources that some enabled observer reads, each behind
// the breaker of its database.
func (a *App) openSources() (map[string]*access.Source, error) {
	opener, metrics := wiring.NewOpener(a.cfg, access.Options{Accounts: a.db.Accounts(), Logger: a.log}), access.NewMetrics(a.registry)
	opened := map[string]*access.Source{}
	for _, observed := range a.cfg.Observers {
		name := observed.Source
		if !observed.Enabled || opened[name] != nil {
			continue
		}
		src, err := opener.OpenForPolls(name, a.cfg.Sources[name].PoolSize, metrics)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", name, err)
		}
		a.cleanups.close("source "+name, src)
		opened[name] = src
	}
	return opened, nil
}

func (a *App) newSchedule(sources map[string]*access.Source) (*schedule.Scheduler, error) {
	var types []schedule.Type
	metrics := newObserverMetrics(a.registry)
	polled, _ := a.cfg.Polled()
	for _, t := range polled {
		made, err := a.newType(t, sources, metrics)
		if err != nil {
			return nil, err
		}
		types = append(types, made)
	}
	shared := a.cfg.Scheduler.Shared
	return schedule.New(schedule.Options{
		Node: turn.Node{
			BootID: a.bootID, Name: a.cfg.Node.Name, Version: a.options.Version, Backend: a.db.Backend(), ConfigHash: a.cfg.Hash(),
			Sinks: sinkIDs(a.cfg.Sinks),
		},
		Types: types, Keeper: a.keeper, Store: a.db.Schedule(), Liveness: a.liveness, Enabled: shared.Enabled, Concurrency: shared.Concurrency,
		Connections:     a.cfg.Database.PoolSize,
		Quiet:           a.cfg.Log.Cycles == "quiet",
		ShutdownTimeout: shared.ShutdownTimeout, Logger: a.options.Logger.With("component", "schedule"), Registerer: a.registry, Beat: a.loops.Beat,
	}), nil
}

func (a *App) newType(t config.Type, sources map[string]*access.Source, metrics observerMetrics) (schedule.Type, error) {
	activity, latency := schedule.NewActivity(), metrics.latency.WithLabelValues(t.Name)
	made := wiring.Timed(t)
	made.Activity, made.Wait, made.Request = activity, t.Wait, wiring.TypeLockRequest(t, a.cfg.Node.Name)
	for _, o := range t.Observers {
		log := a.component("observer")
		p, err := wiring.NewPoller(o, a.definition(o, sources[o.Source]), sources[o.Source], a.db, log)
		if err != nil {
			return schedule.Type{}, err
		}
		zone := a.cfg.Sources[o.Source].Location()
		p.Committed = activity.Committed
		p.Logged = func(e *events.Event, now time.Time) {
			if late, ok := e.Latency(zone, now); ok {
				latency.Observe(late.Seconds())
			}
		}
		metrics.objective.WithLabelValues(t.Name, o.ID).Set(t.FreshnessObjective(o).Seconds())
		made.Observers = append(made.Observers, scheduled{
			Poller: p, source: sources[o.Source], db: a.db, log: log, config: o, zone: zone, node: a.cfg.Node.Name,
			budget: reconcileBudget(t.Interval, float64(o.MaxRate)), found: metrics.found.WithLabelValues(o.ID),
			interval: max(t.Interval, o.FixedDelay) + t.NotBetween.Longest() + o.Window().Longest(), backoff: &stepBackoff{},
		})
		// The poller keeps its own time; the scheduler's limit lies behind it.
		made.PollTimeout = max(made.PollTimeout, o.PollTimeout+time.Minute)
	}
	return made, nil
}

func (a *App) newJanitor() *lockdb.Janitor {
	r := a.cfg.Database.Retention
	return &lockdb.Janitor{
		DB: a.db, Every: a.cfg.Database.JanitorInterval, Log: a.component("janitor"), UnderLock: a.underLock(wiring.JanitorLock),
		Retention: lockdb.Retention{
			Events: r.Events, Polls: r.Polls, Dead: r.Dead, Audit: r.Audit, Nodes: r.Nodes, StaleLocks: r.StaleLocks,
			Sinks: sinkIDs(a.cfg.Sinks),
		},
	}
}

func sinkIDs(sinks []config.Sink) []string {
	return fn.Each(sinks, func(s config.Sink) string { return s.ID })
}

// underLock runs work on one node at a time.
func (a *App) underLock(name string) lockdb.UnderLock {
	return func(ctx context.Context, f func(context.Context) error) error {
		lease, err := a.keeper.Acquire(ctx, wiring.LockRequest(a.cfg, name))
		if errors.Is(err, lock.ErrHeld) {
			return nil
		}
		if err != nil {
			return err
		}
		err = f(lease.Context())
		released, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return errors.Join(err, lease.Release(released))
	}
}

func (a *App) newRelay(s config.Sink) (*relay.Relay, error) {
	settings, ok := s.Settings.(sink.Settings)
	if !ok {
		return nil, fmt.Errorf("sink %s: the configuration was loaded without the type %q", s.ID, s.Type)
	}
	name, size := wiring.SinkLock(s.ID), cmp.Or(s.BatchSize, settings.Batch())
	var streams []relay.Stream
	for _, o := range a.cfg.Observers {
		stream := relay.Stream{ID: o.ID, Type: o.Type}
		if o.Timestamp != "" {
			stream.Zone = a.cfg.Sources[o.Source].Location()
		}
		streams = append(streams, stream)
	}
	return relay.New(relay.Options{
		Sink: s.ID, Streams: streams, Log: a.db.Log(), Wanted: wiring.Wanted(s.Filter), Park: s.OnPoison == "park",
		BatchSize: size, BatchBytes: s.BatchBytes, Logger: a.component("relay"), Registerer: a.registry, Beat: a.loops.Beat,
		Freed: func() <-chan struct{} { return a.liveness.Freed(wiring.LockRequest(a.cfg, name)) },
		Open: settings.Opener(sink.Options{
			Sink: s.ID, BatchSize: size, Logger: a.component("sink").With("sink", s.ID), Registerer: a.registry, Stdout: a.options.Stdout, Terminal: a.options.Terminal,
		}),
		Lead: func(ctx context.Context) (relay.Lease, error) {
			lease, err := a.keeper.Acquire(ctx, wiring.LockRequest(a.cfg, name))
			if errors.Is(err, lock.ErrHeld) {
				return nil, relay.ErrHeld
			}
			if err != nil {
				return nil, err
			}
			return lease, nil
		},
	}), nil
}

// observerMetrics are those of observers that the scheduler does not know. A reload begins
// with new ones, so an observer that was removed has none.
type observerMetrics struct {
	found     *prometheus.CounterVec   // observer
	objective *prometheus.GaugeVec     // type, observer
	latency   *prometheus.HistogramVec // type
}

func newObserverMetrics(r prometheus.Registerer) observerMetrics {
	f := promauto.With(r)
	return observerMetrics{
		found: f.NewCounterVec(prometheus.CounterOpts{
			Name: "observerd_reconcile_found_total", Help: "Events of rows that polls had missed and a reconcile has found.",
		}, []string{"observer"}),
		objective: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "observerd_observer_freshness_objective_seconds",
			Help: "How far back the observer's stream may be known to be complete; 0 for no objective.",
		}, []string{"type", "observer"}),
		latency: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "observerd_event_log_latency_seconds",
			Help:    "Time from a row's own timestamp until its event was committed to the event log.",
			Buckets: events.LatencyBuckets(),
		}, []string{"type"}),
	}
}

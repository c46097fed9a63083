package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/schedule"
	"github.com/observerd/observerd/internal/turn"
)

// parts are what works once the coordination database is ready.
type parts struct {
	schedule *schedule.Scheduler
	relays   []*events.Relay
	janitor  *lockdb.Janitor

	mu sync.Mutex
	// cancel ends the relays and the janitor; work waits for them.
	cancel context.CancelFunc
	work   sync.WaitGroup
}

func (a *App) newParts() (p *parts, err error) {
	p = &parts{cancel: func() {}}
	sources, err := openSources(a.cfg, &a.cleanups)
	if err != nil {
		return nil, err
	}
	if p.schedule, err = a.newSchedule(sources); err != nil {
		return nil, err
	}
	for _, s := range a.cfg.Sinks {
		relay, err := a.newRelay(s)
		if err != nil {
			return nil, fmt.Errorf("sink %s: %w", s.ID, err)
		}
		p.relays = append(p.relays, relay)
	}
	a.db.OnCommit(func() {
		for _, relay := range p.relays {
			relay.Wake()
		}
	})
	p.janitor = a.newJanitor()
	return p, nil
}

// start begins the polls, the delivery and the cleaning.
func (p *parts) start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.schedule.Start(ctx); err != nil {
		return err
	}
	ctx, p.cancel = context.WithCancel(ctx)
	for _, relay := range p.relays {
		p.work.Go(func() { _ = relay.Run(ctx) }) // It waits out every fault.
	}
	p.work.Go(func() { p.janitor.Run(ctx) })
	return nil
}

// stop ends them in that order, so that what the last polls committed is still
// delivered if there is time.
func (p *parts) stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.schedule.Stop(ctx)
	p.cancel()
	p.work.Wait()
	return err
}

func (a *App) newSchedule(sources map[string]foreign) (*schedule.Scheduler, error) {
	var types []schedule.Type
	for _, t := range a.cfg.Types() {
		if !t.Enabled {
			continue
		}
		made, err := a.newType(t, sources)
		if err != nil {
			return nil, err
		}
		types = append(types, made)
	}
	shared := a.cfg.Scheduler.Shared
	return schedule.New(schedule.Options{
		Node: turn.Node{
			BootID: a.bootID, Name: a.cfg.Node.Name, Version: a.version, Backend: a.db.Backend(), ConfigHash: a.cfg.Hash(),
		},
		Types: types, Keeper: a.keeper, Store: a.db, Enabled: shared.Enabled, Concurrency: shared.Concurrency,
		ShutdownTimeout: shared.ShutdownTimeout, Logger: a.bare.With("component", "schedule"), Registerer: a.registry, Beat: a.pulse.Beat,
	})
}

func (a *App) newType(t config.Type, sources map[string]foreign) (schedule.Type, error) {
	made := schedule.Type{Name: t.Name, Interval: t.Interval, Wait: t.Wait, Request: typeRequest(t, a.cfg.Node.Name)}
	for _, o := range t.Observers {
		p, err := newPoller(o, sources[o.Source], a.db, a.component("observer"))
		if err != nil {
			return schedule.Type{}, err
		}
		made.Observers = append(made.Observers, p)
		// The poller keeps its own time; the scheduler's limit lies behind it.
		made.PollTimeout = max(made.PollTimeout, o.PollTimeout+time.Minute)
	}
	return made, nil
}

// request describes a lock of this node that is no observer type's.
func (a *App) request(name string) lock.Request {
	shared := a.cfg.Scheduler.Lock
	return lock.Request{
		Key: lock.Key(lock.KeyFormat(shared.KeyFormat), name), Region: shared.Region, TTL: shared.TTL,
		Name: name, Node: a.cfg.Node.Name,
	}
}

func (a *App) newJanitor() *lockdb.Janitor {
	r := a.cfg.Database.Retention
	sinks := make([]string, len(a.cfg.Sinks))
	for i, s := range a.cfg.Sinks {
		sinks[i] = s.ID
	}
	return &lockdb.Janitor{
		DB: a.db, Every: a.cfg.Database.JanitorInterval, Log: a.component("janitor"), Guard: a.underLock("observerd-janitor"),
		Retention: lockdb.Retention{
			Events: r.Events, Polls: r.Polls, Dead: r.Dead, Audit: r.Audit, Nodes: r.Nodes, StaleLocks: r.StaleLocks, Sinks: sinks,
		},
	}
}

// underLock runs work on one node at a time.
func (a *App) underLock(name string) lockdb.Guard {
	return func(ctx context.Context, f func(context.Context) error) error {
		lease, err := a.keeper.Acquire(ctx, a.request(name))
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

// Package app builds a node from its configuration, starts it and stops it.
// Nothing imports it but the command.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/failpoint"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/liveness"
	"github.com/observerd/observerd/internal/systemd/watchdog"
	"github.com/observerd/observerd/internal/wait"
	"github.com/observerd/observerd/internal/web"
)

// Options of a node. All fields but Terminal and Reloads are required.
type Options struct {
	Config  *config.Config
	Version string
	Logger  *slog.Logger
	// Stdout receives the events of stdout sinks.
	Stdout io.Writer
	// Terminal says that Stdout is a terminal.
	Terminal bool
	// Reloads is shared by the nodes of one process; nil for a node that is never
	// reloaded.
	Reloads *Reloads
}

// App is one node.
type App struct {
	options  Options
	cfg      *config.Config
	bootID   string
	log      *slog.Logger // with the node's name
	registry *prometheus.Registry
	loops    *watchdog.Loops
	cleanups cleanups
	reloads  *Reloads

	db       *lockdb.DB
	liveness *liveness.Monitor
	keeper   *lock.Keeper
	web      *web.Server
	parts    *parts

	// ctx is the life of the goroutines that Start begins.
	ctx    context.Context //nolint:containedctx // Start and Stop are its ends.
	cancel context.CancelCauseFunc
	work   sync.WaitGroup
	mu     sync.Mutex
	state  state
	// loaded is when the configuration was loaded, by the database's clock; zero before the
	// database has answered.
	loaded atomic.Pointer[time.Time]
	past   lockdb.Past
}

// New acquires the node's resources without connecting to any database: [App.Start]
// begins to wait for those. When it fails, nothing is left behind.
func New(ctx context.Context, o Options) (_ *App, err error) {
	if err := failpoint.Check(); err != nil {
		return nil, err
	}
	a := &App{
		options: o, cfg: o.Config, bootID: uuid.NewString(),
		log: o.Logger.With("node", o.Config.Node.Name), registry: prometheus.NewRegistry(), loops: &watchdog.Loops{}, reloads: cmp.Or(o.Reloads, NewReloads()),
	}
	a.loaded.Store(new(time.Time))
	a.ctx, a.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			err = errors.Join(err, a.cleanups.run(context.WithoutCancel(ctx), a.log))
		}
	}()
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	promauto.With(a.registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "observerd_build_info", Help: "Always 1; the version is a label.", ConstLabels: prometheus.Labels{"version": o.Version},
	}, func() float64 { return 1 })
	a.reloads.register(a.registry)
	if err = a.openWeb(ctx); err != nil {
		return nil, err
	}
	a.db, err = lockdb.Open(lockdb.Options{
		URL: a.cfg.Database.URL.Reveal(), PoolSize: a.cfg.Database.PoolSize, BootID: a.bootID, Node: a.cfg.Node.Name,
		Logger: a.component("lockdb"), Registerer: a.registry,
	})
	if err != nil {
		return nil, err
	}
	a.cleanups.close("coordination database", a.db)
	a.keeper = lock.NewKeeper(lock.KeeperOptions{Provider: a.db.Leases(), Logger: a.component("lock"), Registerer: a.registry})
	a.liveness = a.db.NewLiveness(liveness.Options{
		Regions: a.cfg.Scheduler.LockRegions(), SignOfLife: a.keeper.RenewNow, Logger: a.component("liveness"), Beat: a.loops.Beat,
	})
	a.cleanups.add("liveness", a.liveness.Stop)
	a.cleanups.add("leases", a.keeper.Close) // before the liveness: without it, their holder would count as dead
	if a.parts, err = a.newParts(); err != nil {
		return nil, err
	}
	return a, nil
}

// Start serves HTTP at once, and begins to work when the coordination database
// is ready, which it waits for in the background. Call it once.
func (a *App) Start() {
	a.serveWeb()
	a.work.Go(a.begin)
}

// Addr is the address of the status page; empty when it is switched off.
func (a *App) Addr() string {
	if a.web == nil {
		return ""
	}
	return a.web.Addr()
}

// Done is closed when the node cannot go on; [App.Err] says why.
func (a *App) Done() <-chan struct{} { return a.ctx.Done() }

// Err is why the node cannot go on; nil while it can, and after Stop.
func (a *App) Err() error { return a.now().failed }

// Stop ends the node: polls finish or abandon their chunk, leases are given
// back, sinks acknowledge the events that they have stored. It is safe to call twice, and
// before Start.
func (a *App) Stop(ctx context.Context) error {
	a.log.Info("Stopping")
	a.set(func(s *state) { s.stopping = true })
	defer a.beatWhileStopping(ctx)()
	err := a.parts.stop(ctx)
	a.cancel(nil)
	err = errors.Join(err, wait.Group(ctx, &a.work, "start"))
	if err != nil {
		a.reloads.leave(a.gone())
	}
	err = errors.Join(err, a.cleanups.run(ctx, a.log))
	a.log.Info("Stopped")
	return err
}

func (a *App) component(name string) *slog.Logger { return a.log.With("component", name) }

// cleanups release the acquired resources in reverse. The zero value is ready.
type cleanups struct{ steps []cleanup }

type cleanup struct {
	name string
	run  func(ctx context.Context) error
}

// add registers a step; call it on the line after the resource exists.
func (c *cleanups) add(name string, run func(ctx context.Context) error) {
	c.steps = append(c.steps, cleanup{name, run})
}

// close registers a Close.
func (c *cleanups) close(name string, closer interface{ Close() error }) {
	c.add(name, func(context.Context) error { return closer.Close() })
}

// run runs all steps under one deadline and joins their errors. A second call
// does nothing.
func (c *cleanups) run(ctx context.Context, log *slog.Logger) error {
	steps := c.steps
	c.steps = nil
	var errs []error
	for _, step := range slices.Backward(steps) {
		log.Debug("Stopping", "part", step.name)
		if err := step.run(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", step.name, err))
		}
	}
	return errors.Join(errs...)
}

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/source/access"
	"github.com/observerd/observerd/internal/status"
	"github.com/observerd/observerd/internal/wait"
	"github.com/observerd/observerd/internal/wiring"
)

// state is how far the node has come.
type state struct {
	began     bool
	migrating bool
	stopping  bool
	waiting   error // why it does not work yet
	failed    error
}

func (a *App) set(f func(*state)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.state)
}

func (a *App) now() state {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

// errStarting is the answer of readiness before the database was asked.
var errStarting = errors.New("starting")

// Waiting for the database: attempts, their distance and how long one may take.
const (
	firstWait  = 200 * time.Millisecond
	longestTry = 10 * time.Second
	longWait   = 5 * time.Second
	// A migration may move many rows, and waits for a node that migrates.
	longestMigration = 30 * time.Minute
)

// begin waits for the coordination database and starts the work. A database that is
// down is no failure; a database that a newer binary has migrated is, see
// [wiring.Unusable].
func (a *App) begin() {
	pauses := wait.NewBackoff(firstWait, longWait)
	said := ""
	for {
		a.loops.Beat("start", 2*longestTry+2*longWait)
		err := a.prepare()
		for _, ask := range []func(context.Context) error{a.db.SQL().WarnOfStrangers, a.noteLoaded} {
			if err == nil {
				err = a.try(ask)
			}
		}
		if err == nil {
			break
		}
		if a.ctx.Err() != nil {
			return
		}
		a.set(func(s *state) { s.waiting = err })
		if wiring.Unusable(err) != nil {
			a.fail(err)
			return
		}
		if said != err.Error() {
			said = err.Error()
			a.log.Warn("Waiting for the coordination database", "err", advised(err))
		}
		if !wait.For(a.ctx, pauses.NextBackOff()) {
			return
		}
	}
	a.loops.Beat("start", 0)
	if a.parts.enabled {
		select {
		case <-a.liveness.Start(context.WithoutCancel(a.ctx)): // it ends after the leases: see New
		case <-a.ctx.Done():
			return
		}
	}
	if err := a.parts.start(a.ctx); err != nil {
		a.fail(err)
		return
	}
	a.set(func(s *state) { s.began, s.waiting = true, nil })
	level := slog.LevelDebug
	if said != "" {
		level = slog.LevelInfo // The end of what was warned of.
	}
	a.log.Log(a.ctx, level, "Ready", "backend", a.db.Backend(), "boot_id", a.bootID)
}

// prepare brings the schema up to date, if auto-migrate is on, and checks it.
func (a *App) prepare() error {
	err := a.try(a.db.Ready)
	if !errors.Is(err, sqldb.ErrPending) || !a.cfg.Database.AutoMigrate {
		return err
	}
	a.loops.Beat("start", longestMigration+time.Minute)
	migrating, cancel := context.WithTimeout(a.ctx, longestMigration)
	defer cancel()
	a.set(func(s *state) { s.migrating = true })
	defer a.set(func(s *state) { s.migrating = false })
	if err := a.db.Migrate(migrating); err != nil {
		return err
	}
	a.log.Info("Schema of the coordination database is up to date")
	return a.try(a.db.Ready)
}

// try asks the database something, for no longer than one attempt may take.
func (a *App) try(ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(a.ctx, longestTry)
	defer cancel()
	return ask(ctx)
}

// advised adds a remedy to an error, for which the node waits.
func advised(err error) error {
	if refusal := sqldb.Refusal(err); refusal != "" {
		return fmt.Errorf("%s; the node waits until that is fixed there, or until database.url is and the node reloads: %w", refusal, err)
	}
	return err
}

// fail ends the node.
func (a *App) fail(err error) {
	a.set(func(s *state) { s.failed = err })
	a.cancel(err)
}

// errNoAnswer is the answer of readiness for a database that fails. The driver's own
// error names users and hosts; it is in the log.
var errNoAnswer = errors.New("the coordination database does not answer")

// errNoPrimary is the answer of readiness where a standby or a read-only server
// answers. Others of the URL may be down.
var errNoPrimary = errors.New("the coordination database is unavailable: a standby answers, and no primary accepts the node")

// errNoHeartbeat is the answer of readiness where the database can be read alone.
var errNoHeartbeat = errors.New("the coordination database has not taken the last heartbeat of this node; the log says why, and the next heartbeat tries again")

// ready is asked by /readyz. Its errors are for everyone.
func (a *App) ready(ctx context.Context) error {
	now := a.now()
	err := now.waiting
	switch {
	case now.began:
		if err = a.db.Ready(ctx); err == nil && a.parts.schedule.Waiting() {
			return errNoHeartbeat
		}
	case err == nil:
		return errStarting
	}
	if errors.Is(err, sqldb.ErrPending) {
		return sqldb.ErrPending
	}
	if plain := wiring.Unusable(err); plain != nil {
		return plain
	}
	if err != nil {
		a.log.Debug("Not ready", "err", err)
		return unanswered(err)
	}
	return nil
}

// unanswered says in a text for everyone why there is no session with the database.
func unanswered(err error) error {
	if refusal := sqldb.Refusal(err); refusal != "" {
		return fmt.Errorf("the coordination database cannot be used: %s", refusal)
	}
	if obstacle := sqldb.Obstacle(err); obstacle != "" {
		return fmt.Errorf("the coordination database answers, and cannot be used: %s", obstacle)
	}
	if errors.Is(err, sqldb.ErrReadOnly) {
		return errNoPrimary
	}
	return errNoAnswer
}

// Report describes the cluster. The error of a database that answers but is unusable
// says so, rather than which statement failed.
func (a *App) Report(ctx context.Context) (status.Report, error) {
	report, err := a.db.Report(ctx, a.cfg.Scheduler.LockRegions())
	if err == nil {
		report.Past, err = a.past.Polls(ctx, a.db, report.At)
	}
	if err == nil {
		wiring.Describe(a.cfg, &report)
	}
	if err == nil || sqldb.Unavailable(err) || sqldb.NoSession(err) {
		return report, err
	}
	if unfit := a.db.Ready(ctx); unfit != nil {
		err = unfit
	}
	return report, err
}

// plainly says on the page why there is no report. Once there is a session the
// error names tables and columns, and no role, host or value of a row; without
// one it names the role, the database and its address, and those stay in the log.
// So does the path of a file.
func plainly(err error) string {
	for _, plain := range []error{sqldb.ErrReplaced, sqldb.ErrNoDatabase, sqldb.ErrPooler, sqldb.ErrSearchPath, sqldb.ErrEncoding} {
		if errors.Is(err, plain) {
			return plain.Error()
		}
	}
	if sqldb.Unavailable(err) || sqldb.NoSession(err) {
		return unanswered(err).Error()
	}
	return err.Error()
}

func (a *App) definition(o config.Observer, src *access.Source) wiring.Definition {
	return wiring.Definition{Hash: wiring.DefinitionHash(o, src), Loaded: func() time.Time { return *a.loaded.Load() }}
}

// noteLoaded finds out when the configuration was loaded by the clock that all
// nodes share. It is done once: that of this host may be set, or stand still while
// the host sleeps.
func (a *App) noteLoaded(ctx context.Context) error {
	at, err := wiring.LoadedAt(ctx, a.db, a.cfg)
	if err == nil {
		a.loaded.Store(&at)
	}
	return err
}

// NoteReload notes for the audit table who has let the node reload its configuration, in
// which so many keys have changed.
func (a *App) NoteReload(ctx context.Context, actor string, changed int) error {
	return a.db.Operations().Note(ctx, lockdb.Did(lockdb.By{Actor: actor}, "reload", a.cfg.Node.Name, fmt.Sprintf("%d keys changed", changed)))
}

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/status"
)

// stopLoop is the loop of [App.Stop], and formerLoop stands for all loops of a
// node before this one.
const (
	stopLoop   = "stop"
	formerLoop = "former node"
)

// Polling is closed when the node has begun to work: the coordination database is
// usable, its clock is known, and the jobs of all types run. A node
// that is switched off has no jobs; it has begun when the others can see it.
func (a *App) Polling() <-chan struct{} { return a.parts.schedule.Begun() }

// Stuck names the loops of the process that hang; none means healthy. It asks
// no database. While the node stops, its loops end, and it is the stop itself
// that hangs when it exceeds its time. Leftovers of the node before a reload may
// hold a resource of this one, such as the file of a sink: only the end of the process
// frees it.
func (a *App) Stuck() []string {
	stuck := a.loops.Stuck()
	if a.now().stopping {
		return slices.DeleteFunc(stuck, func(loop string) bool { return loop != stopLoop })
	}
	if a.reloads.leftovers() {
		stuck = append(stuck, formerLoop)
	}
	return stuck
}

// gone is closed when nothing of a node that was stopped goes on.
func (a *App) gone() <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		a.work.Wait()
		a.parts.schedule.Wait()
		a.parts.work.Wait()
	}()
	return gone
}

// beatWhileStopping gives the stop until the end of ctx, and a little more for parts
// that ignore it.
func (a *App) beatWhileStopping(ctx context.Context) (done func()) {
	if until, ok := ctx.Deadline(); ok {
		a.loops.Beat(stopLoop, time.Until(until)+10*time.Second)
	}
	return func() { a.loops.Beat(stopLoop, 0) }
}

// Doing says in one line what the node does or waits for. It is meant for everyone: no
// name of a user or host, no error of a driver.
func (a *App) Doing() string {
	now := a.now()
	switch {
	case now.failed != nil:
		return "Ending after a failure; see the log"
	case now.stopping:
		return "Stopping: polls finish or abandon their chunk, leases are given back"
	case now.migrating:
		return "Brings the schema of the coordination database up to date"
	case now.waiting != nil:
		return "Waits for the coordination database" + obstacle(now.waiting)
	case !now.began:
		return "Starting: reading the coordination database"
	case a.parts.schedule.Waiting():
		return "Waits for the coordination database, which does not answer or refuses writes; see the log"
	case !closed(a.Polling()):
		return "Starting: asks the coordination database for its time"
	case !a.parts.enabled:
		return "Switched off (scheduler.observer.enabled: false): takes no lock and no turn"
	}
	return polls(a.cfg)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// obstacle says why the coordination database is not usable yet.
func obstacle(err error) string {
	switch {
	case errors.Is(err, sqldb.ErrPending):
		return ": 'observerd migrate up' has to bring its schema up to date first"
	case sqldb.Refusal(err) != "":
		return ": " + sqldb.Refusal(err) + "; see the log"
	case errors.Is(err, sqldb.ErrReadOnly):
		return ": a standby answers, and no primary accepts the node; see the log"
	case sqldb.Unavailable(err):
		return ", which does not answer; see the log"
	}
	return ", which cannot be worked with; the log says why"
}

// polls says what the node polls.
func polls(cfg *config.Config) string {
	types, observers := cfg.Polled()
	if len(types) == 0 {
		return "Polls nothing: the configuration has no type that is switched on"
	}
	names := fn.Each(types, func(t config.Type) string { return t.Name })
	return fmt.Sprintf("Polls %s of %s: %s", status.Plural(observers, "observer", "observers"), status.Plural(len(types), "type", "types"), strings.Join(names, ", "))
}

package app

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/access"
	"github.com/observerd/observerd/internal/wiring"
)

// scheduled is a poller with the reconcile of its observer, as the scheduler runs it.
type scheduled struct {
	*wiring.Poller
	source *access.Source
	db     *lockdb.DB
	log    *slog.Logger

	// Of the reconcile: when it is due, in which zone, the bounds of a step, and the
	// counter of its finds.
	config config.Observer
	zone   *time.Location
	node   string
	budget observer.Budget
	// interval is the longest time between two polls.
	interval time.Duration
	backoff  *stepBackoff
	found    prometheus.Counter
}

// Begin implements schedule.Beginner.
func (s scheduled) Begin(ctx context.Context) (begun context.Context, end func(), err error) {
	return s.source.Begin(ctx)
}

// Poll implements schedule.Observer. A poll that has nothing left to do for this
// turn is followed by a step of the reconcile, if one is due.
func (s scheduled) Poll(ctx context.Context, g lock.Grant) (observer.Stats, error) {
	stats, err := s.Poller.Poll(ctx, g)
	if err != nil || s.config.ReconcileAt == "" || stats.Behind > stats.HorizonLag {
		return stats, err
	}
	s.reconcile(ctx, g, &stats)
	return stats, nil
}

// Recovered implements schedule.Recoverable: an observer whose account was refused
// need not wait for half an hour once this node has another secret, or somebody has
// resumed an observer with that account.
func (s scheduled) Recovered(ctx context.Context) bool {
	if !s.source.HasGoodAccount(ctx) {
		return false
	}
	reason, err := s.db.Streams().LastError(ctx, s.ID())
	return err == nil && strings.HasPrefix(reason, string(observer.ClassCredentials)+":")
}

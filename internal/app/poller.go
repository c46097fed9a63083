package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

// errPollTimeout is the cause of a poll's context that took too long. What it
// has committed stays; the next poll goes on from there.
var errPollTimeout = errors.New("the poll took longer than poll-timeout; it goes on in the next turn")

// poller joins an observer to its source and to the coordination database.
type poller struct {
	id          string
	observer    *observer.Observer
	source      observer.Source
	db          *lockdb.DB
	timeout     time.Duration
	maxLookback time.Duration
	log         *slog.Logger
}

// ID implements schedule.Observer.
func (p *poller) ID() string { return p.id }

// Poll implements schedule.Observer.
func (p *poller) Poll(ctx context.Context, g lock.Grant) (observer.Stats, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, errPollTimeout)
	defer cancel()
	stats, err := p.observer.Poll(ctx, p.source, p.db.Store(g))
	if errors.Is(err, errPollTimeout) && stats.Chunks > 0 {
		// A backlog is worked off turn by turn; that is no failure.
		p.log.Info("Poll reached its time limit; the next turn goes on", "observer", p.id, "rows", stats.Rows)
		err = nil
	}
	if p.maxLookback > 0 && stats.HorizonLag > p.maxLookback {
		p.log.Warn("Horizon stands still: a transaction of the source is open for longer than max-lookback",
			"observer", p.id, "lag", stats.HorizonLag, "max_lookback", p.maxLookback)
	}
	return stats, err
}

func newPoller(o config.Observer, src observer.Source, db *lockdb.DB, log *slog.Logger) (*poller, error) {
	made, err := observer.New(spec(o, log))
	if err != nil {
		return nil, err
	}
	return &poller{id: o.ID, observer: made, source: src, db: db, timeout: o.PollTimeout, maxLookback: o.MaxLookback, log: log}, nil
}

// spec translates the configuration of an observer.
func spec(o config.Observer, log *slog.Logger) observer.Spec {
	return observer.Spec{
		Stream: o.ID, EventType: o.Event, Detect: observer.Detect(o.Detect), Query: query(o),
		ChunkRows: o.ChunkSize, MaxGone: float64(o.MaxGone) / 100, Logger: log.With("observer", o.ID),
	}
}

func query(o config.Observer) observer.Query {
	q := observer.Query{
		Stream: o.ID, Table: o.Table, SQL: o.Query, Columns: o.Columns, Key: o.Key, Timestamp: o.Timestamp,
		NullTimestamp: observer.NullPolicy(o.NullTimestamp), MaxRowBytes: o.MaxRowBytes,
	}
	if o.Overlap != nil {
		q.Overlap = *o.Overlap
	}
	return q
}

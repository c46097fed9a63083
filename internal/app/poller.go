package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
)

// poller joins an observer to its source and to the coordination database.
type poller struct {
	id          string
	observer    *observer.Observer
	source      observer.Source
	db          *lockdb.DB
	maxLookback time.Duration
	log         *slog.Logger
	// committed is told of each chunk that was committed; nil: nobody is.
	committed func()
}

// ID implements schedule.Observer.
func (p *poller) ID() string { return p.id }

// Poll implements schedule.Observer.
func (p *poller) Poll(ctx context.Context, g lock.Grant) (observer.Stats, error) {
	stats, err := p.observer.Poll(ctx, p.source, p.store(g))
	if p.maxLookback > 0 && stats.HorizonLag > p.maxLookback {
		p.log.Warn("Horizon stands still: a transaction of the source is open for longer than max-lookback",
			"observer", p.id, "lag", stats.HorizonLag, "max_lookback", p.maxLookback)
	}
	return stats, err
}

// store is the coordination database under the lease of a poll.
func (p *poller) store(g lock.Grant) observer.Store {
	if p.committed == nil {
		return p.db.Store(g)
	}
	return toldStore{p.db.Store(g), p.committed}
}

// toldStore tells of what was committed.
type toldStore struct {
	observer.Store
	committed func()
}

// Commit implements [observer.Store].
func (s toldStore) Commit(ctx context.Context, ch observer.Chunk) (observer.Cursor, error) {
	next, err := s.Store.Commit(ctx, ch)
	if err == nil {
		s.committed()
	}
	return next, err
}

func newPoller(o config.Observer, d definition, src observer.Source, db *lockdb.DB, log *slog.Logger) (*poller, error) {
	s := spec(o, log)
	s.Start.Began, s.Definition, s.Loaded = db.Streams().Start, d.hash, d.loaded
	made, err := observer.New(s)
	if err != nil {
		return nil, err
	}
	return &poller{id: o.ID, observer: made, source: src, db: db, maxLookback: o.MaxLookback, log: log}, nil
}

// spec translates the configuration of an observer.
func spec(o config.Observer, log *slog.Logger) observer.Spec {
	return observer.Spec{
		Stream: o.ID, EventType: o.Event, Detect: observer.Detect(o.Detect), Query: query(o),
		ChunkRows: o.ChunkSize, MaxGone: float64(o.MaxGone) / 100, Logger: log.With("observer", o.ID),
		MaxChanged: o.MaxChanged, MaxRate: float64(o.MaxRate), Start: start(o),
		PollTime: o.PollTimeout,
	}
}

func start(o config.Observer) observer.Start {
	now, at := o.StartAt()
	return observer.Start{Now: now, At: at}
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

package wiring

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source/access"
	"github.com/observerd/observerd/internal/wait"
)

// Poller joins an observer to its source and to the coordination database. Make one
// with [NewPoller].
type Poller struct {
	// Committed is told of each chunk that was committed.
	Committed func()
	// Logged is [observer.Spec.Logged].
	Logged func(e *events.Event, now time.Time)

	id          string
	observer    *observer.Observer
	source      observer.Source
	db          *lockdb.DB
	maxLookback time.Duration
	log         *slog.Logger
	// stalled lasts while the horizon stands still. Polls of an observer follow each other.
	stalled wait.Outage
}

// ID implements schedule.Observer.
func (p *Poller) ID() string { return p.id }

// Poll implements schedule.Observer.
func (p *Poller) Poll(ctx context.Context, g lock.Grant) (observer.Stats, error) {
	stats, err := p.observer.Poll(ctx, p.source, p.store(g))
	if err == nil {
		p.noteHorizon(stats.HorizonLag)
	}
	return stats, err
}

// noteHorizon logs once that the horizon stands still, and that it moves again.
func (p *Poller) noteHorizon(lag time.Duration) {
	if p.maxLookback > 0 && lag > p.maxLookback {
		if p.stalled.Begin() {
			p.log.Warn("Horizon does not move: a transaction of the source is open, or its replica has stopped, for longer than max-lookback",
				"observer", p.id, "lag", lag, "max_lookback", p.maxLookback)
		}
		return
	}
	if lasted, over := p.stalled.End(); over {
		p.log.Info("Horizon moves again", "observer", p.id, "after", lasted)
	}
}

// Sweep takes a step of a sweep, see [observer.Observer.Sweep].
func (p *Poller) Sweep(ctx context.Context, g lock.Grant, s observer.Sweep, b observer.Budget) (observer.Sweep, observer.Stats, error) {
	return p.observer.Sweep(ctx, p.source, p.store(g), s, b)
}

// store is the coordination database under the lease of a poll.
func (p *Poller) store(g lock.Grant) observer.Store {
	return commitHook{p.db.Store(g), p.Committed}
}

// commitHook tells of each chunk that was committed.
type commitHook struct {
	observer.Store
	committed func()
}

// Commit implements [observer.Store].
func (s commitHook) Commit(ctx context.Context, ch observer.Chunk) (observer.Cursor, error) {
	next, err := s.Store.Commit(ctx, ch)
	if err == nil {
		s.committed()
	}
	return next, err
}

// NewPoller returns the poller of an observer as it is configured.
func NewPoller(o config.Observer, d Definition, src observer.Source, db *lockdb.DB, log *slog.Logger) (*Poller, error) {
	s := Spec(o, log)
	s.Start.Began, s.Definition, s.Loaded = db.Streams().Start, d.Hash, d.Loaded
	p := &Poller{
		Committed: func() {}, Logged: func(*events.Event, time.Time) {},
		id: o.ID, source: src, db: db, maxLookback: o.MaxLookback, log: log,
	}
	s.Logged = func(e *events.Event, now time.Time) { p.Logged(e, now) }
	var err error
	if p.observer, err = observer.New(s); err != nil {
		return nil, err
	}
	return p, nil
}

// Spec translates the configuration of an observer.
func Spec(o config.Observer, log *slog.Logger) observer.Spec {
	now, at := o.StartAt()
	return observer.Spec{
		Stream: o.ID, EventType: o.Event, Detect: observer.Detect(o.Detect), Query: Query(o),
		ChunkRows: o.ChunkSize, MaxGone: float64(o.MaxGone) / 100, Logger: log.With("observer", o.ID),
		MaxChanged: o.MaxChanged, MaxRate: float64(o.MaxRate), Start: observer.Start{Now: now, At: at},
		PollTime: o.PollTimeout,
	}
}

// Query says what an observer reads.
func Query(o config.Observer) observer.Query {
	q := observer.Query{
		Stream: o.ID, Table: o.Table, SQL: o.Query, Columns: o.Columns, Key: o.Key, Timestamp: o.Timestamp,
		NullTimestamp: observer.NullPolicy(o.NullTimestamp), MaxRowBytes: o.MaxRowBytes,
	}
	if len(o.Redact) > 0 {
		q.Redact = make(map[string]observer.Redaction, len(o.Redact))
		for column, how := range o.Redact {
			q.Redact[column] = observer.Redaction(how)
		}
	}
	if key := o.HashKey().Reveal(); key != "" {
		q.HashKey = observer.NewHashKey(key)
	}
	if o.Overlap != nil {
		q.Overlap = *o.Overlap
	}
	return q
}

// Definition is what the events of an observer depend on in the configuration
// of this process, see [observer.Spec.Definition].
type Definition struct {
	Hash func(ctx context.Context, key []string) (string, error)
	// Loaded says when the configuration was loaded, see [LoadedAt]. It is nil for a
	// command beside nodes, which must not change the definition that they poll by.
	Loaded func() time.Time
}

// hashOf identifies an observer, its source first. The address of the source is left
// out: nodes may reach one database in different ways.
func hashOf(kind, database string, o config.Observer) string {
	q := Query(o)
	return hashed(4, o.Source, kind, database) + "/" +
		hashed(8, o.Table, o.Query, o.Key, o.Timestamp, o.Columns, o.Detect, o.Event, q.Redact, q.HashKey.Fingerprint())
}

// DefinitionHash returns what gives the hash of an observer of the source with a key, once
// the source has a URL.
func DefinitionHash(o config.Observer, src *access.Source) func(context.Context, []string) (string, error) {
	return func(ctx context.Context, key []string) (string, error) {
		o := o
		o.Key = key
		target, err := src.Target(ctx)
		if err != nil {
			return "", err
		}
		return hashOf(target.Kind, target.Database, o), nil
	}
}

func hashed(size int, parts ...any) string {
	text, err := json.Marshal(parts)
	if err != nil {
		panic(err) // Strings always encode.
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:size])
}

// LoadedAt is when the configuration was loaded, by the clock that all nodes share.
func LoadedAt(ctx context.Context, db *lockdb.DB, cfg *config.Config) (time.Time, error) {
	now, err := db.Now(ctx)
	return now.Add(-time.Since(cfg.Loaded())), err
}

// sweepRows bounds a step of a sweep, so that polls come in between.
const sweepRows = 50_000

// SweepBudget bounds a step of a sweep to that time, and to the rows that the rate
// allows in it, or the lock would be held for waiting. A rate of 0 is no limit.
func SweepBudget(step time.Duration, rate float64) observer.Budget {
	b := observer.Budget{Rows: sweepRows, Time: step}
	if rate > 0 {
		b.Rows = max(1, min(b.Rows, int(rate*step.Seconds())))
	}
	return b
}

// LastSweep returns the sweep of a kind that is running or was started last;
// zero for none.
func LastSweep(ctx context.Context, db *lockdb.DB, id string, kind observer.SweepKind) (observer.Sweep, error) {
	sweeps, err := db.Sweeps().Latest(ctx, id)
	last, _ := fn.Find(sweeps, func(s observer.Sweep) bool { return s.Kind == kind })
	return last, err
}

// SweepAdvanced reports whether a step of a sweep did anything.
func SweepAdvanced(before, after observer.Sweep) bool {
	return before.ID != after.ID || before.State != after.State || before.Position != after.Position || before.Rows != after.Rows
}

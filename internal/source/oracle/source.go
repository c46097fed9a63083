package oracle

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/oracle/client"
	"github.com/observerd/observerd/internal/source/oracle/goora"
)

const (
	defaultPoolSize = 2
	maxPoolSize     = 4
	connectTimeout  = 10 * time.Second
	// grace is how long the database may take to stop a statement.
	grace = 3 * time.Second
	// A firewall forgets connections that are idle, and a profile ends them; an
	// old session may have leaked memory over there.
	idleTimeout = 5 * time.Minute
	maxLifetime = 30 * time.Minute
	// largeFetchSize is how many rows with large objects one round trip brings:
	// each may be as large as a row may be, and all are in memory together.
	largeFetchSize = 4
)

// Kind is Oracle, whose people write the parameters of a URL in many ways.
var Kind = source.Kind{
	Scheme: "oracle", Example: "oracle://USER:PASSWORD@HOST:PORT/SERVICE",
	Harmless:   []string{"connect", "server", "sid", "ssl", "ssl-verify", "wallet"},
	Account:    []string{"connect", "server", "sid"},
	LooseNames: true,
	Fetches:    true,
	Open:       func(o source.Options) (source.Database, error) { return Open(o) },
}

// Options is what a source is opened with.
type Options = source.Options

// Source reads one database. It is safe for concurrent use.
type Source struct {
	source.TextCursors
	options   Options
	db        *sql.DB
	large     *sql.DB // for reads of rows with large objects
	connector *goora.Connector
	era       *source.Era
	target    string // for messages
	relations relations
	grants    atomic.Pointer[grants]
}

// Open prepares a source. It does not connect, so the database may be down.
func Open(options Options) (*Source, error) {
	o := options.WithDefaults(defaultPoolSize)
	o.PoolSize = min(o.PoolSize, maxPoolSize)
	target, err := client.ParseURL(o.URL)
	if err != nil {
		return nil, err
	}
	target.Action, target.Identifier = o.Name, o.Node
	target.FetchSize = o.FetchSize
	target.ConnectTimeout, target.Grace = connectTimeout, grace
	target.Gate, target.Era = o.Gate, new(source.Era)
	connector, err := goora.Open(target)
	if err != nil {
		return nil, err
	}
	target.FetchSize = min(target.FetchSize, largeFetchSize)
	large, err := goora.Open(target)
	if err != nil {
		return nil, err
	}
	return &Source{
		options: o, db: pool(connector, o.PoolSize), large: pool(large, 1), connector: connector, target: target.String(), era: target.Era,
	}, nil
}

func pool(connector driver.Connector, size int) *sql.DB {
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	db.SetConnMaxIdleTime(idleTimeout)
	db.SetConnMaxLifetime(maxLifetime)
	return db
}

// Close ends all sessions. It waits for reads that were not closed, but not for
// a database that does not answer any more.
func (s *Source) Close() error { return errors.Join(s.db.Close(), s.large.Close()) }

// CursorAt implements [observer.Source].
func (s *Source) CursorAt(ctx context.Context, q observer.Query, at time.Time) (string, error) {
	p, err := s.timed(ctx, q)
	switch {
	case err != nil:
		return "", err
	case p.selection.Timestamp < 0:
		return "", source.ErrNoTimestamp
	}
	return p.time.Horizon(at, s.options.Location), nil
}

// SQL returns the statements that Read would run, for people.
func (s *Source) SQL(ctx context.Context, q observer.Query, in observer.Range) (source.SQL, error) {
	p, err := s.plan(ctx, q, in)
	return source.Texts(p.steps, func(s step) (full, plain string) { return s.sql, s.plain }), err
}

// KeyOrder implements [observer.Source].
func (s *Source) KeyOrder(ctx context.Context, q observer.Query) (string, error) {
	p, err := s.plan(ctx, q, observer.Range{ByKey: true})
	return p.selection.OrderID(p.order.Parts, nil), err
}

func (s *Source) plan(ctx context.Context, q observer.Query, in observer.Range) (plan, error) {
	return inSession(ctx, s, func(c *session) (plan, error) { return c.plan(ctx, q, in) })
}

// timed is plan for the kind of the timestamp alone: it is content with what is
// remembered of the table, see [relations].
func (s *Source) timed(ctx context.Context, q observer.Query) (plan, error) {
	if r, ok := s.relations.get(q); ok {
		if p, err := newPlan(r, q); err == nil {
			return p, nil
		}
	}
	return s.plan(ctx, q, observer.Range{})
}

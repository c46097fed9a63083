package mysql

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

const (
	defaultPoolSize = 4
	connectTimeout  = 10 * time.Second
	idleTimeout     = 5 * time.Minute
	// endTimeout bounds the end of a transaction that has nothing to commit.
	endTimeout = 2 * time.Second
	// killTimeout bounds the end of a statement that is not waited for any more,
	// which may take a logon. The server is slow then, more often than not.
	killTimeout = connectTimeout
)

// Options is what a source is opened with.
type Options = source.Options

// Source reads one database. It is safe for concurrent use.
type Source struct {
	source.TextCursors
	options Options
	db      *sql.DB // a pool, and nothing else: see session
	sockets *source.Sockets
	target  string // host:port/database, for messages
	shared  sharedActivity
	waits   *source.LockWaits
	// closing ends when the source is closed, and with it what runs in the background.
	closing context.Context
	close   context.CancelFunc

	mu         sync.Mutex // orders what begins in the background and the wait for its end
	background sync.WaitGroup
}

// Open prepares a source. It does not connect, so the database may be down.
func Open(options Options) (*Source, error) {
	o := options.WithDefaults(defaultPoolSize)
	address, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Name == "" {
		o.Name = address.database
	}
	sockets := new(source.Sockets)
	connector, err := newConnector(o, address, sockets)
	if err != nil {
		return nil, err
	}
	s := &Source{
		options: o, db: sql.OpenDB(connector), sockets: sockets, target: address.host + "/" + address.database,
		shared: sharedActivity{Together: source.NewTogether[struct{}, activity]()}, waits: source.NewLockWaits(o.PoolSize, o.QueryTimeout, locked),
	}
	s.closing, s.close = context.WithCancel(context.Background())
	s.db.SetMaxOpenConns(o.PoolSize)
	s.db.SetMaxIdleConns(o.PoolSize)
	s.db.SetConnMaxIdleTime(idleTimeout)
	return s, nil
}

// Close ends all sessions that are not in use, at once; the others end with the
// reads that hold them. It never waits for the server.
func (s *Source) Close() error {
	s.mu.Lock()
	s.close()
	s.mu.Unlock()
	s.background.Wait()
	err := s.db.Close()
	s.sockets.CloseAll()
	return err
}

// later runs something in the background, for which only Close waits.
func (s *Source) later(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Err() == nil {
		s.background.Go(do)
	}
}

// CursorAt implements [observer.Source].
func (s *Source) CursorAt(ctx context.Context, q observer.Query, at time.Time) (string, error) {
	p, err := s.plan(ctx, q, observer.Range{})
	switch {
	case err != nil:
		return "", err
	case p.selection.Timestamp < 0:
		return "", source.ErrNoTimestamp
	}
	return p.time.least(at, s.options.Location), nil
}

// SQL returns the statements that Read would run, for people and for EXPLAIN,
// with ? in the place of a cursor.
func (s *Source) SQL(ctx context.Context, q observer.Query, in observer.Range) (source.SQL, error) {
	p, err := s.plan(ctx, q, in)
	return source.Texts(p.steps, func(s step) (full, plain string) { return s.text, s.plain }), err
}

// KeyOrder implements [observer.Source].
func (s *Source) KeyOrder(ctx context.Context, q observer.Query) (string, error) {
	p, err := s.plan(ctx, q, observer.Range{ByKey: true})
	return p.orderID(p.order.Parts), err
}

func (s *Source) plan(ctx context.Context, q observer.Query, in observer.Range) (plan, error) {
	return inSession(ctx, s, func(c *session) (plan, error) { return c.plan(ctx, q, in) })
}

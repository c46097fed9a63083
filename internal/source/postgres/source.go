package postgres

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/pgsession"
	"github.com/observerd/observerd/internal/source"
)

const (
	defaultPoolSize = 4
	connectTimeout  = 10 * time.Second
	idleTimeout     = 5 * time.Minute
	// closeTimeout is how long a server may take to say good-bye.
	closeTimeout = 2 * time.Second
	// endTimeout bounds the end of a transaction that has nothing to commit.
	endTimeout = 5 * time.Second
	// receiveBuffer is how many bytes are taken from a socket at once: the driver
	// alone takes 8 KiB, two dozen rows.
	receiveBuffer = 64 << 10
)

// sessionPrefix begins the application_name of every session of this package.
// [Source.Horizon] does not wait for such sessions, as none of them writes.
const sessionPrefix = "observerd source "

// defaultMoney is the lc_monetary of reads where the URL has none.
const defaultMoney = "C"

// Options is what a source is opened with.
type Options = source.Options

// Source reads one database. It is safe for concurrent use.
type Source struct {
	source.TextCursors
	options Options
	pool    *pgxpool.Pool
	sockets *source.Sockets
	waits   *source.LockWaits
	target  string // host:port/database, for messages
	// ascii says that nobody knows which characters the bytes of a database in SQL_ASCII
	// are; the URL may say that they are UTF-8.
	ascii bool
	// unprepared says that sessions do not keep the names of prepared statements.
	unprepared atomic.Bool
	// money is the lc_monetary of reads.
	money     string
	looks     *source.Together[tableName, look]
	relations relations
	seen      sync.Map // by inquiries
	era       source.Era
}

// Open prepares a source. It does not connect, so the database may be down.
func Open(options Options) (*Source, error) {
	o := options.WithDefaults(defaultPoolSize)
	config, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Name == "" {
		o.Name = config.ConnConfig.Database
	}
	config.MaxConns = int32(min(o.PoolSize, 1000))
	config.MinConns = 0
	config.MaxConnIdleTime = idleTimeout
	config.ConnConfig.ConnectTimeout = connectTimeout
	// Nothing else is asked for at the start of a session: a pooler would refuse
	// it, or drop it. See [session.settle] and [local] for the rest.
	config.ConnConfig.RuntimeParams["application_name"] = sessionName(o.Name)
	asked := pgsession.Pin(config.ConnConfig.RuntimeParams, "client_encoding", pgsession.Encoding)
	s := &Source{
		options: o, sockets: new(source.Sockets), waits: source.NewLockWaits(o.PoolSize, o.QueryTimeout, locked),
		looks: source.NewTogether[tableName, look](), relations: relations{known: make(map[tableName]known)},
		target: fmt.Sprintf("%s:%d/%s", config.ConnConfig.Host, config.ConnConfig.Port, config.ConnConfig.Database),
		ascii:  !strings.EqualFold(strings.ReplaceAll(asked, "-", ""), "UTF8"),
		money:  cmp.Or(pgsession.Take(config.ConnConfig.RuntimeParams, "lc_monetary"), defaultMoney),
	}
	config.BeforeConnect = s.beforeConnect
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return s.sockets.Add(conn)
	}
	config.ConnConfig.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		return pgproto3.NewFrontend(bufio.NewReaderSize(r, receiveBuffer), w)
	}
	if s.pool, err = pgxpool.NewWithConfig(context.Background(), config); err != nil {
		return nil, errors.New("prepare the connection pool: the settings are not accepted")
	}
	return s, nil
}

// milliseconds words a time limit of the server, for which 0 would be none.
func milliseconds(d time.Duration) string { return strconv.FormatInt(max(d.Milliseconds(), 1), 10) }

// Close ends all sessions. It waits for reads that were not closed, but not for a
// server that does not answer any more: the driver says good-bye to that and waits for
// its answer, each connection for 15 seconds.
func (s *Source) Close() error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(closeTimeout):
		s.sockets.CloseAll()
		<-closed
	}
	return nil
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
	return p.time.Horizon(at, s.options.Location), nil
}

// SQL returns the statements that Read would run, for people and for EXPLAIN.
func (s *Source) SQL(ctx context.Context, q observer.Query, in observer.Range) (source.SQL, error) {
	p, err := s.plan(ctx, q, in)
	return source.Texts(p.steps, func(s step) (full, plain string) { return s.sql, s.plain }), err
}

// KeyOrder implements [observer.Source].
func (s *Source) KeyOrder(ctx context.Context, q observer.Query) (string, error) {
	p, err := s.plan(ctx, q, observer.Range{ByKey: true})
	return p.orderID(p.order), err
}

func (s *Source) plan(ctx context.Context, q observer.Query, in observer.Range) (plan, error) {
	return inSession(ctx, s, func(c *session) (plan, error) { return c.plan(ctx, q, in) })
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/observerd/observerd/internal/observer"
)

const (
	defaultPoolSize     = 4
	defaultQueryTimeout = 30 * time.Second
	connectTimeout      = 10 * time.Second
	idleTimeout         = 5 * time.Minute
	// endTimeout bounds the end of a transaction that has nothing to commit.
	endTimeout = 5 * time.Second
)

// sessionPrefix begins the application_name of every session of this package.
// [Source.Horizon] does not wait for such sessions, as none of them writes.
const sessionPrefix = "observerd source "

// Options say which database to read and how.
type Options struct {
	// URL is postgres://user:password@host:port/database?sslmode=….
	URL string
	// Name appears in the sessions' application_name until a read names its
	// stream there. Empty means the name of the database.
	Name string
	// Location is the zone of timestamp and date columns, which have none of
	// their own. nil means UTC.
	Location *time.Location
	// PoolSize bounds the connections; a read keeps one to its end. 0 means 4.
	PoolSize int
	// QueryTimeout bounds each small statement, and how long a stream may be
	// silent while its reader waits. 0 means 30 seconds.
	QueryTimeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.Location == nil {
		o.Location = time.UTC
	}
	if o.PoolSize <= 0 {
		o.PoolSize = defaultPoolSize
	}
	if o.QueryTimeout <= 0 {
		o.QueryTimeout = defaultQueryTimeout
	}
	return o
}

// Source reads one database. It is safe for concurrent use.
type Source struct {
	options Options
	pool    *pgxpool.Pool
	target  string // host:port/database, for messages
}

var _ observer.Source = (*Source)(nil)

// Open prepares a source. It does not connect, so the database may be down.
func Open(options Options) (*Source, error) {
	o := options.withDefaults()
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
	session := config.ConnConfig.RuntimeParams
	session["application_name"] = sessionName(o.Name)
	session["default_transaction_read_only"] = "on"
	session["statement_timeout"] = strconv.FormatInt(max(o.QueryTimeout.Milliseconds(), 1), 10)
	// What a role or a database sets must not change the text of a value:
	// equal rows have equal bytes, whoever reads them.
	session["timezone"] = "UTC"
	session["datestyle"] = "ISO"
	session["intervalstyle"] = "iso_8601"
	session["bytea_output"] = "hex"
	session["extra_float_digits"] = "3"
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, errors.New("prepare the connection pool: the settings are not accepted")
	}
	c := config.ConnConfig
	return &Source{options: o, pool: pool, target: fmt.Sprintf("%s:%d/%s", c.Host, c.Port, c.Database)}, nil
}

// Close ends all sessions. It waits for reads that were not closed.
func (s *Source) Close() error {
	s.pool.Close()
	return nil
}

// Compare orders cursors by their text, whose width is fixed.
func (s *Source) Compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// SQL returns the statements that Read would run, for people and for EXPLAIN.
func (s *Source) SQL(ctx context.Context, q observer.Query, from string) (string, error) {
	var text string
	err := s.session(ctx, func(ctx context.Context, c *session) error {
		p, err := c.plan(ctx, q, from)
		if err != nil {
			return err
		}
		text = p.text()
		return nil
	})
	return text, err
}

package oracle

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// session is a connection that is kept for one use. On a pinned connection
// database/sql repeats no statement behind our back, as it would on the pool.
type session struct {
	source *Source
	conn   *sql.Conn
	// unclean says that a statement may have begun a transaction, as one does
	// that reads through a database link: an idle session of ours would hold the
	// horizon.
	unclean bool
}

// release gives the connection back. The driver's layer sorts out those that
// are of no more use.
func (c *session) release() {
	if c.unclean {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if _, err := c.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
			_ = c.conn.Raw(func(any) error { return driver.ErrBadConn })
		}
	}
	_ = c.conn.Close()
}

// discard closes the connection instead.
func (c *session) discard() {
	_ = c.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = c.conn.Close()
	c.unclean = false
}

// inSession runs a few small statements on a connection.
func inSession[T any](ctx context.Context, s *Source, use func(c *session) (T, error)) (made T, err error) {
	err = s.keep(ctx, s.db, func(c *session) (err error) {
		defer c.release()
		made, err = use(c)
		return err
	})
	return made, err
}

// keep is inSession for a use that releases the connection itself. A connection
// that was idle may have been lost unnoticed: then the others
// that are idle are no better, and the use is repeated once on a new one. That
// is safe because it only reads, and nothing was handed over yet.
func (s *Source) keep(ctx context.Context, pool *sql.DB, use func(c *session) error) error {
	for first := true; ; first = false {
		// The wait for a free connection is as long as the caller's: that says nothing about
		// the database. A logon has a deadline of its own.
		conn, err := pool.Conn(ctx)
		if err != nil {
			return s.translate(ctx, source.Connecting, "connect", err)
		}
		err = use(&session{source: s, conn: conn})
		if !first || ctx.Err() != nil || observer.ClassOf(err) != observer.ClassUnreachable {
			return err
		}
		pool.SetMaxIdleConns(0)
		pool.SetMaxIdleConns(pool.Stats().MaxOpenConnections)
	}
}

// rows runs a small query and returns its rows. NULL is the empty string, which
// Oracle does not tell apart either.
func (c *session) rows(ctx context.Context, operation, query string, binds ...any) ([][]string, error) {
	return c.small(ctx, source.Parsing, operation, query, binds...)
}

// small is rows for a query that may evaluate rows of the source.
func (c *session) small(ctx context.Context, p source.Phase, operation, query string, binds ...any) ([][]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.source.options.QueryTimeout, source.ErrTimeout)
	defer cancel()
	all, err := scanAll(c.conn.QueryContext(ctx, query, binds...))
	return all, c.source.translate(ctx, p, operation, err)
}

func scanAll(rows *sql.Rows, err error) ([][]string, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]sql.NullString, len(names))
	targets := make([]any, len(names))
	for i := range values {
		targets[i] = &values[i]
	}
	var all [][]string
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		all = append(all, fn.Each(values, func(v sql.NullString) string { return v.String }))
	}
	return all, rows.Err()
}

// exec runs a small statement that returns nothing.
func (c *session) exec(ctx context.Context, operation, statement string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.source.options.QueryTimeout, source.ErrTimeout)
	defer cancel()
	_, err := c.conn.ExecContext(ctx, statement)
	return c.source.translate(ctx, source.Parsing, operation, err)
}

package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// session is a pooled connection. It talks to the wire protocol's layer of the
// driver: unnamed statements, text in and text out, nothing cached, so a table
// that changes between two polls cannot upset a cached plan.
type session struct {
	source *Source
	pooled *pgxpool.Conn
	conn   *pgconn.PgConn
}

func (s *Source) acquire(ctx context.Context) (*session, error) {
	pooled, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, s.translate(ctx, "connect", err)
	}
	return &session{source: s, pooled: pooled, conn: pooled.Conn().PgConn()}, nil
}

// session runs a few small statements on a connection, each with a deadline of
// its own. The wait for a free connection has none but the caller's: it says
// nothing about the database.
func (s *Source) session(ctx context.Context, use func(context.Context, *session) error) error {
	c, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.pooled.Release()
	return use(ctx, c)
}

var errTimeout = errors.New("no answer within the query timeout")

// rows runs a small query and returns its rows; NULL is nil.
func (c *session) rows(ctx context.Context, operation, sql string, args ...string) ([][][]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.source.options.QueryTimeout, errTimeout)
	defer cancel()
	params := make([][]byte, len(args))
	for i, arg := range args {
		params[i] = []byte(arg)
	}
	result := c.conn.ExecParams(ctx, sql, params, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, c.source.translate(ctx, operation, result.Err)
	}
	return result.Rows, nil
}

// begin opens the transaction of a read. The statement timeout is lifted in it
// because it would count the time in which the reader is busy elsewhere; a
// silent database is noticed on our side.
func (c *session) begin(ctx context.Context, stream string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.source.options.QueryTimeout, errTimeout)
	defer cancel()
	sql := "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL statement_timeout = 0"
	if stream != "" {
		sql += "; SET LOCAL application_name = '" + sessionName(stream) + "'"
	}
	_, err := c.conn.Exec(ctx, sql).ReadAll()
	return c.source.translate(ctx, "begin the read", err)
}

// end closes the transaction and gives the connection back. A connection on
// which that fails is not given to anybody else.
func (c *session) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if !c.conn.IsClosed() && !c.conn.IsBusy() {
		// The pool looks at the state of the transaction, so a failure needs
		// no other answer than being left behind there.
		_, _ = c.conn.Exec(ctx, "COMMIT").ReadAll()
	}
	c.pooled.Release()
}

package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/observerd/observerd/internal/source"
)

// session is a pooled connection. It talks to the wire protocol's layer of the
// driver: unnamed statements, text in and, but for timestamps, text out, nothing
// cached, so a table that changes between two polls cannot upset a cached plan.
type session struct {
	source *Source
	pooled *pgxpool.Conn
	conn   *pgconn.PgConn
}

func (s *Source) acquire(ctx context.Context) (*session, error) {
	pooled, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, s.translate(ctx, source.Connecting, "connect", err)
	}
	return &session{source: s, pooled: pooled, conn: pooled.Conn().PgConn()}, nil
}

// session runs a few small statements on a connection, each with a deadline of
// its own. The wait for a free connection has none but the caller's: it says
// nothing about the database. Where a table is locked, all of them are repeated.
func (s *Source) session(ctx context.Context, use func(context.Context, *session) error) error {
	return s.waits.Retry(ctx, func() error {
		c, err := s.acquire(ctx)
		if err != nil {
			return err
		}
		defer c.pooled.Release()
		return use(ctx, c)
	})
}

// rows runs a small query of the catalogue and returns its rows; NULL is nil.
func (c *session) rows(ctx context.Context, operation, sql string, args ...string) ([][][]byte, error) {
	return c.answer(ctx, operation, question{sql: sql, params: paramsOf(args)})
}

// rowsByPath does so with the path of the reader's role, see question.
func (c *session) rowsByPath(ctx context.Context, operation, sql string, args ...string) ([][][]byte, error) {
	return c.answer(ctx, operation, question{sql: sql, params: paramsOf(args), byPath: true})
}

func (c *session) answer(ctx context.Context, operation string, q question) ([][][]byte, error) {
	answers, err := c.ask(ctx, operation, q)
	if err != nil {
		return nil, err
	}
	return answers[0].rows, nil
}

func paramsOf(args []string) [][]byte {
	params := make([][]byte, len(args))
	for i, arg := range args {
		params[i] = []byte(arg)
	}
	return params
}

// formsSQL fixes the text of a value: equal rows have equal bytes, whatever
// the account, and whatever a role, a database or a pooler sets.
const formsSQL = "; SET LOCAL timezone = 'UTC'; SET LOCAL datestyle = 'ISO'; SET LOCAL intervalstyle = 'iso_8601'" +
	"; SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 3"

// begin opens the transaction of a read and locks its tables. The statement
// timeout is lifted in it because it would count the time in which the reader is
// busy elsewhere; a silent database is noticed on our side.
// A read by key takes the index, be it slower than a sort: that would be one of all
// rows that are left, for each statement anew.
func (c *session) begin(ctx context.Context, stream string, p plan) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.source.options.QueryTimeout, source.ErrTimeout)
	defer cancel()
	sql := "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL statement_timeout = 0"
	if stream != "" {
		sql += "; SET LOCAL application_name = '" + sessionName(stream) + "'"
	}
	if p.order != nil {
		sql += "; SET LOCAL enable_sort = off"
	}
	sql += formsSQL + p.locks.sql(lockWait(c.source.options))
	_, err := c.conn.Exec(ctx, sql).ReadAll()
	return c.source.translate(ctx, source.Parsing, "begin the read", err)
}

// noTransaction is the state of a connection without one.
const noTransaction = 'I'

// end closes the transaction, if there is one, and gives the connection back. A connection on
// which that fails is not used again.
func (c *session) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if !c.conn.IsClosed() && !c.conn.IsBusy() && c.conn.TxStatus() != noTransaction {
		// The pool looks at the state of the transaction, so a failure needs
		// no other answer than being left behind there.
		_, _ = c.conn.Exec(ctx, "COMMIT").ReadAll()
	}
	c.pooled.Release()
}

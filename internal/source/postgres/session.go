package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/observerd/observerd/internal/pgsession"
	"github.com/observerd/observerd/internal/source"
)

// session is a pooled connection. It talks to the wire protocol's layer of the
// driver: text in and, but for timestamps, text out. Only statements on the catalogue are
// prepared, see withPrepared, so a table that changes between two polls cannot upset a cached plan.
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

// inSession runs a few small statements on a connection, each with a deadline of
// its own. The wait for a free connection has none but the caller's: it says
// nothing about the database. Where a table is locked, all of them are repeated.
func inSession[T any](ctx context.Context, s *Source, use func(c *session) (T, error)) (made T, err error) {
	err = s.waits.Retry(ctx, func() error {
		c, err := s.acquire(ctx)
		if err != nil {
			return err
		}
		defer c.pooled.Release()
		made, err = use(c)
		return err
	})
	return made, err
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

// unconverted reports whether the database holds bytes that the server converts for nobody.
func (c *session) unconverted() bool {
	return c.conn.ParameterStatus("server_encoding") == pgsession.ASCII
}

// names fix the text of names, and of what is sent, for each transaction: a pooler may give
// a session that was told otherwise. Text of a database in SQL_ASCII comes as it is, so that
// one that is no UTF-8 costs its row alone.
func (c *session) names() []string {
	encoding := pgsession.Encoding
	if c.unconverted() {
		encoding = pgsession.ASCII
	}
	return []string{
		"SET LOCAL client_encoding = '" + encoding + "'",
		"SET LOCAL standard_conforming_strings = on",
		"SET LOCAL quote_all_identifiers = off",
		"SET LOCAL lc_monetary = '" + strings.ReplaceAll(c.source.money, "'", "''") + "'", // A wrong one shows before the first read.
	}
}

// forms fix the text of a value: equal rows have equal bytes, whatever the account, and
// whatever a role, a database, a URL or a pooler sets. What is not among them, and why, is
// in docs/sources.md.
func (c *session) forms() []string {
	return append(c.names(),
		"SET LOCAL timezone = 'UTC'",
		"SET LOCAL datestyle = 'ISO'",
		"SET LOCAL intervalstyle = 'iso_8601'",
		"SET LOCAL bytea_output = 'hex'",
		"SET LOCAL extra_float_digits = 3",
		"SET LOCAL xmlbinary = 'base64'",
	)
}

// begin opens the transaction of a read and locks its tables. The statement
// timeout is lifted in it because it would count the time in which the reader is
// busy elsewhere; a silent database is noticed on our side.
// A read by key takes the index, be it slower than a sort: that would be one of all
// rows that are left, for each statement anew.
func (c *session) begin(ctx context.Context, stream string, p plan) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.source.options.QueryTimeout, source.ErrTimeout)
	defer cancel()
	opening := append([]string{"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", "SET LOCAL statement_timeout = 0"}, c.forms()...)
	if stream != "" {
		opening = append(opening, "SET LOCAL application_name = '"+sessionName(stream)+"'")
	}
	if p.order != nil {
		opening = append(opening, "SET LOCAL enable_sort = off")
	}
	_, err := c.send(ctx, append(opening, p.locks.statements(lockWait(c.source.options))...), nil)
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

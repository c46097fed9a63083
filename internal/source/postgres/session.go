package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/pgsession"
	"github.com/observerd/observerd/internal/source"
)

// session is a pooled connection. It talks to the wire protocol's layer of the
// driver: text in and, but for timestamps, text out.
type session struct {
	source *Source
	pooled *pgxpool.Conn
	conn   *pgconn.PgConn
	kept   *kept
}

// kept is what is known of a connection for as long as it lasts.
type kept struct {
	prepared map[string]bool   // by the names of statements
	reads    map[string]string // the names of those that read, by their texts
	// blind says that the role may not look at the control file.
	blind bool
	// pooled says that the process of the server is not the session's alone. settled says
	// that it is, and that it has the settings of reads; name is its application_name then.
	pooled, settled bool
	name            string
}

// keptKey is the key of kept among what the driver keeps for a connection.
const keptKey = "observerd"

func (s *Source) acquire(ctx context.Context) (*session, error) {
	pooled, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, s.translate(ctx, source.Connecting, "connect", err)
	}
	c := &session{source: s, pooled: pooled, conn: pooled.Conn().PgConn()}
	data := c.conn.CustomData()
	if data[keptKey] == nil {
		data[keptKey] = &kept{prepared: make(map[string]bool), reads: make(map[string]string)}
	}
	c.kept = data[keptKey].(*kept) //nolint:forcetypeassert // It is ours.
	return c, nil
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
	return fn.Each(args, func(arg string) []byte { return []byte(arg) })
}

// unconverted reports whether the database holds bytes that the server converts for nobody.
func (c *session) unconverted() bool {
	return c.conn.ParameterStatus("server_encoding") == pgsession.ASCII
}

// setting is one of a session or a transaction.
type setting struct{ name, value string }

// names fix the text of names, and of what is sent, for each transaction: a pooler may give
// a session that was told otherwise. Text of a database in SQL_ASCII comes as it is, so that
// one that is no UTF-8 costs its row alone.
func (c *session) names() []setting {
	encoding := pgsession.Encoding
	if c.unconverted() {
		encoding = pgsession.ASCII
	}
	return []setting{
		{"client_encoding", encoding},
		{"standard_conforming_strings", "on"},
		{"quote_all_identifiers", "off"},
		{"lc_monetary", c.source.money}, // A wrong one shows before the first read.
	}
}

// forms fix the text of a value: equal rows have equal bytes, whatever the account, and
// whatever a role, a database, a URL or a pooler sets. What is not among them, and why, is
// in docs/sources.md.
func (c *session) forms() []setting {
	return append(c.names(),
		setting{"timezone", "UTC"},
		setting{"datestyle", "ISO"},
		setting{"intervalstyle", "iso_8601"},
		setting{"bytea_output", "hex"},
		setting{"extra_float_digits", "3"},
		setting{"xmlbinary", "base64"},
	)
}

// local sets for a transaction.
func local(settings ...setting) []string {
	return fn.Each(settings, func(s setting) string { return "SET LOCAL " + s.name + " = " + literal(s.value) })
}

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// settle gives a session the settings of reads and the name of the observer, and reports
// whether it has them.
func (c *session) settle(ctx context.Context, stream string) (settled bool, err error) {
	name := sessionName(cmp.Or(stream, c.source.options.Name))
	switch {
	case c.kept.pooled:
		return false, nil
	case !c.kept.settled:
		return c.setUp(ctx, name)
	case name != c.kept.name:
		return true, c.rename(ctx, name)
	}
	return true, nil
}

// rename names a settled session after another observer.
func (c *session) rename(ctx context.Context, name string) error {
	_, err := c.conn.Exec(ctx, "SET application_name = "+literal(name)).ReadAll()
	if err == nil {
		c.kept.name = name
	}
	return c.source.translate(ctx, source.Parsing, "name the session", err)
}

// setUp gives a session the settings of reads for as long as it lasts. It does so only where
// the process of the server that answers is the one that the login has named: a pooler names
// another one.
func (c *session) setUp(ctx context.Context, name string) (settled bool, err error) {
	settings := append(c.forms(),
		setting{"application_name", name},
		setting{"default_transaction_isolation", "read committed"},
		setting{"default_transaction_read_only", "on"},
		setting{"default_transaction_deferrable", "off"},
		setting{"statement_timeout", "0"},
		setting{"lock_timeout", milliseconds(lockWait(c.source.options))})
	if c.isOf(12) {
		settings = append(settings, setting{"plan_cache_mode", "force_custom_plan"}, setting{"jit", "off"})
	}
	if c.isOf(14) {
		settings = append(settings, setting{"idle_session_timeout", "0"}) // The pool ends idle sessions.
	}
	values := fn.Each(settings, func(s setting) string { return "(" + literal(s.name) + ", " + literal(s.value) + ")" })
	sql := fmt.Sprintf(settleSQL, strings.Join(values, ", "), c.conn.PID())
	answers, err := c.send(ctx, []string{"BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY, NOT DEFERRABLE"}, []question{{sql: sql}}, "COMMIT")
	if _, refused := errors.AsType[*pgconn.PgError](err); refused && !c.conn.IsClosed() {
		return false, nil // A transaction that sets it says so better.
	}
	if err != nil {
		return false, c.source.translate(ctx, source.Parsing, "set up the session", err)
	}
	c.kept.settled = string(answers[0].rows[0][0]) != "0"
	c.kept.pooled, c.kept.name = !c.kept.settled, name
	return c.kept.settled, nil
}

// settleSQL sets what follows for the session, if its process is that one.
const settleSQL = `
SELECT pg_catalog.count(pg_catalog.set_config(s.name, s.value, false))
  FROM (VALUES %s) AS s(name, value)
 WHERE pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) %d`

// isOf reports whether the server is of that version or a later one.
func (c *session) isOf(version int) bool {
	major, _, _ := strings.Cut(c.conn.ParameterStatus("server_version"), ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= version
}

// begin opens the transaction of a read and locks its tables. The statement
// timeout is lifted in it because it would count the time in which the reader is
// busy elsewhere; a silent database is noticed on our side.
// A read by key takes the index, be it slower than a sort: that would be one of all
// rows that are left, for each statement anew.
//
// In a settled session a single statement over what is fixed needs none of that: the server locks
// what it reads when it parses or plans, and makes the snapshot after that.
func (c *session) begin(ctx context.Context, stream string, p plan) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.source.options.QueryTimeout, source.ErrTimeout)
	defer cancel()
	settled := false
	if p.relation.fixed() {
		if settled, err = c.settle(ctx, stream); err != nil || settled && p.isSingle() {
			return err
		}
	} else {
		c.kept.settled = false // What it calls may set anything.
	}
	opening := []string{"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"}
	if !settled {
		opening = append(opening, local(setting{"statement_timeout", "0"})...)
		opening = append(opening, local(c.forms()...)...)
		opening = append(opening, local(setting{"lock_timeout", milliseconds(lockWait(c.source.options))})...)
		if stream != "" {
			opening = append(opening, local(setting{"application_name", sessionName(stream)})...)
		}
	}
	if p.order != nil {
		opening = append(opening, "SET LOCAL enable_sort = off")
	}
	_, err = c.send(ctx, append(opening, p.locks.statements()...), nil)
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

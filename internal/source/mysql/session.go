package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/go-sql-driver/mysql"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

// session is a pooled connection. It talks to the driver itself, in the text
// protocol: nothing is prepared, so a table that changes between two polls
// cannot upset a statement, and values arrive as the server words them.
type session struct {
	source *Source
	pooled *sql.Conn
	conn   *conn
	// broken is a connection that is not used again.
	broken bool
}

func (s *Source) acquire(ctx context.Context) (*session, error) {
	pooled, err := s.db.Conn(ctx)
	if err != nil {
		return nil, s.translate(ctx, source.Connecting, "connect", err)
	}
	c := &session{source: s, pooled: pooled}
	err = pooled.Raw(func(raw any) error {
		c.conn = raw.(*conn) //nolint:forcetypeassert // The connector makes no others.
		return nil
	})
	if err != nil {
		return nil, s.translate(ctx, source.Connecting, "connect", errors.Join(err, pooled.Close()))
	}
	return c, nil
}

// release gives the connection back, or ends it when it is broken.
func (c *session) release() {
	if c.broken {
		c.conn.drop()
		_ = c.pooled.Raw(func(any) error { return driver.ErrBadConn }) // So the pool lets go of it.
	}
	_ = c.pooled.Close()
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
		defer c.release()
		made, err = use(c)
		return err
	})
	return made, err
}

// result is the result of a small query; NULL is nil.
type result struct {
	columns []string
	// types are those of the columns, as the driver names them, widths how long values
	// of the types with a fraction are, such as "(10,2)".
	types, widths []string
	rows          [][][]byte
}

// query runs a small query. Its parameters are put into the text by the driver,
// which quotes them: the statement is ours, only names come from elsewhere.
func (c *session) query(ctx context.Context, operation, sql string, args ...string) (result, error) {
	return c.small(ctx, source.Parsing, operation, sql, args...)
}

// try is query for a statement with the observer's query in it.
func (c *session) try(ctx context.Context, operation, before, sql string) (result, error) {
	r, err := c.small(ctx, source.Reading, operation, before+sql)
	return r, c.explained(ctx, operation, err, sql)
}

func (c *session) small(ctx context.Context, p source.Phase, operation, sql string, args ...string) (result, error) {
	outer := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, c.source.options.QueryTimeout, source.ErrTimeout)
	defer cancel()
	values := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	r, err := c.conn.fetch(ctx, sql, values)
	if err != nil {
		c.failed(err)
		if ctx.Err() != nil {
			c.kill()
		}
		if outer.Err() != nil {
			ctx = outer
		}
		return result{}, c.source.translate(ctx, p, operation, err)
	}
	return r, nil
}

// explained is the failure of a statement that may have run the observer's query.
// What the server has against the statement itself it says once more where it only
// prepares it, and that may be quoted; unless a function has raised it, as MariaDB calls
// some that are DETERMINISTIC while it prepares.
func (c *session) explained(ctx context.Context, operation string, err error, sql string) error {
	var refused, said *Error
	if observer.ClassOf(err) != observer.ClassQuery || !errors.As(err, &refused) || c.broken || ctx.Err() != nil {
		return err
	}
	before := c.raised(ctx)
	switch again := c.prepare(ctx, operation, sql); {
	case again == nil:
		said = &Error{Number: refused.Number, text: refused.text, advice: source.Sound}
	case !errors.As(again, &said) || said.Number != refused.Number || before == "" || c.raised(ctx) != before:
		return err
	}
	return c.source.refusal(source.Reading, operation, said)
}

// raised is how many errors functions have raised in this session: no other way leads
// from a value into a message that may be quoted. Empty where the server does not say.
func (c *session) raised(ctx context.Context) (counts string) {
	rows, err := c.rows(ctx, "look whether a function has failed", "SHOW SESSION STATUS WHERE Variable_name IN ('Com_signal', 'Com_resignal')")
	if err != nil {
		return ""
	}
	for _, row := range rows {
		counts += string(row[1]) + " "
	}
	return counts
}

// prepare lets the server take a statement apart: it looks up all names and rights.
func (c *session) prepare(ctx context.Context, operation, sql string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.source.options.QueryTimeout, source.ErrTimeout)
	defer cancel()
	statement, err := c.conn.PrepareContext(ctx, sql)
	if err == nil {
		err = statement.Close()
	}
	if err != nil {
		c.failed(err)
	}
	return c.source.translate(ctx, source.Parsing, operation, err)
}

// rows is query for one that needs the rows alone.
func (c *session) rows(ctx context.Context, operation, sql string, args ...string) ([][][]byte, error) {
	r, err := c.query(ctx, operation, sql, args...)
	return r.rows, err
}

func (c *conn) fetch(ctx context.Context, sql string, args []driver.NamedValue) (result, error) {
	rows, err := c.QueryContext(ctx, sql, args)
	if err != nil {
		return result{}, err
	}
	r := result{columns: rows.Columns()}
	for i := range r.columns {
		r.types = append(r.types, rows.ColumnTypeDatabaseTypeName(i))
		r.widths = append(r.widths, widthOf(rows, i))
	}
	values := make([]driver.Value, len(r.columns))
	for {
		switch err := rows.Next(values); {
		case err == io.EOF: //nolint:errorlint // The driver's contract is this very value.
			return r, rows.Close()
		case err != nil:
			return result{}, errors.Join(err, rows.Close())
		}
		r.rows = append(r.rows, texts(values))
	}
}

func widthOf(rows driverRows, i int) string {
	if precision, scale, ok := rows.ColumnTypePrecisionScale(i); ok && scale < math.MaxInt64 {
		return fmt.Sprintf("(%d,%d)", precision, scale)
	}
	return ""
}

// texts copies a row, whose buffers are the driver's.
func texts(values []driver.Value) [][]byte {
	return fn.Each(values, func(v driver.Value) []byte { return slices.Clone(text(nil, v)) })
}

// text returns a value as the server has sent it; nil is NULL. Integers, which
// the driver has read, are appended to buffer.
func text(buffer []byte, v driver.Value) []byte {
	switch v := v.(type) {
	case []byte:
		return v
	case int64:
		return strconv.AppendInt(buffer, v, 10)
	case uint64:
		return strconv.AppendUint(buffer, v, 10)
	case nil:
		return nil
	}
	return fmt.Append(buffer, v)
}

// failed marks that the connection is of no use after an error that is not the
// server's own answer.
func (c *session) failed(err error) {
	c.broken = c.broken || !errors.As(err, new(*mysql.MySQLError))
}

// exec runs a statement without a result.
func (c *session) exec(ctx context.Context, operation, sql string) error {
	_, err := c.query(ctx, operation, sql)
	return err
}

// snapshot opens the transaction whose statements all see one state of the
// database. It cannot write.
func (c *session) snapshot(ctx context.Context) error {
	return c.exec(ctx, "begin the read", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
}

// end closes the transaction and gives the connection back. A connection on
// which that fails is not used again.
func (c *session) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if !c.broken && c.exec(ctx, "end the read", "COMMIT") != nil {
		c.broken = true
	}
	c.release()
}

// kill ends on the server what runs on this connection, whose answer is not waited for
// any more: a server that sorts does not notice that. It is a courtesy, by another
// connection, in the background. That may have reached another server, or this one
// after a restart, where the number is another session's.
func (c *session) kill() {
	s, id, peer := c.source, strconv.FormatUint(c.conn.id, 10), c.conn.peer
	s.later(func() {
		ctx, cancel := context.WithTimeout(s.closing, killTimeout)
		defer cancel()
		_, _ = inSession(ctx, s, func(c *session) (killed bool, err error) {
			found, err := c.rows(ctx, "find a statement", "SELECT 1 FROM information_schema.processlist p WHERE p.id = "+id+" AND p.host = ?", peer)
			if err != nil || len(found) == 0 {
				return false, err
			}
			return true, c.exec(ctx, "end a statement", "KILL "+id)
		})
	})
}

package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

const (
	// programName is what a DBA sees of our connections, in
	// performance_schema.session_connect_attrs; the source's name follows it.
	programName = "observerd"
	keepAlive   = 30 * time.Second
	// slowReader is how long the server waits for a reader who takes no rows:
	// commits on our side may last, and a rate may be limited.
	slowReader = time.Hour
)

// connector opens connections whose session is set up.
type connector struct {
	driver.Connector
	gate  source.Gate
	setup []string
	era   source.Era
}

func newConnector(o Options, a address, sockets *source.Sockets) (*connector, error) {
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName = a.user, a.password, a.database
	config.Net, config.Addr = a.network, a.host
	config.TLS, config.AllowFallbackToPlaintext = a.tls, a.fallback
	config.DialFunc = dialer(sockets)
	config.Timeout = connectTimeout
	config.WriteTimeout = o.QueryTimeout
	config.InterpolateParams = true // of the catalogue's statements; see session.rows
	config.Logger = &mysql.NopLogger{}
	config.ConnectionAttributes = "program_name:" + attribute(programName+" source "+o.Name)
	if err := config.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, errors.New("prepare the connections: the settings are not accepted")
	}
	inner, err := mysql.NewConnector(config)
	if err != nil {
		return nil, errors.New("prepare the connections: the settings are not accepted")
	}
	return &connector{Connector: inner, gate: o.Gate, setup: setup(o.QueryTimeout)}, nil
}

// attribute keeps a value from being read as two.
func attribute(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == ',' || r == ':' {
			return '?'
		}
		return r
	}, text)
}

// setup is what each session is told. What a server, an account or a database
// sets must not change the text of a value, nor cut a result short: equal rows
// have equal bytes, whatever the account. The servers know different names for
// the longest time of a statement and skip the other's in its comment.
//
// The server's limit is a little less than ours: a connection survives that.
// MariaDB must keep its warnings for [session.lockWarned].
func setup(timeout time.Duration) []string {
	limit := timeout / 10 * 9
	return []string{
		fmt.Sprintf("SET time_zone = '+00:00', sql_mode = '', autocommit = 1,"+
			" sql_select_limit = 18446744073709551615, sql_auto_is_null = 0, sql_quote_show_create = 1, max_sort_length = 1024,"+
			" sql_big_selects = 1, wait_timeout = %d, net_write_timeout = %d, lock_wait_timeout = %d"+
			" /*M!100101 , max_statement_time = %.3f, max_error_count = 64 */ /*!50708 , max_execution_time = %d */",
			int(2*idleTimeout.Seconds()), int(slowReader.Seconds()), lockWait, max(limit.Seconds(), 0.001), max(limit.Milliseconds(), 1)),
		"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
	}
}

// Connect implements [driver.Connector].
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	ended, err := c.gate.Allow(ctx)
	if err != nil {
		return nil, err
	}
	caller, era := ctx, c.era.Now()
	// The pool may call with a context that never ends.
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var opened dialed
	raw, err := c.logOn(context.WithValue(ctx, dialedKey{}, &opened))
	if err != nil {
		if errors.Is(err, errPanic) && opened.socket != nil {
			_ = opened.socket.Close()
		}
		failed(caller, opened, err, ended)
		return nil, err
	}
	ended(nil)
	inner, ok := raw.(driverConn)
	if !ok {
		return nil, errors.Join(errInterface, raw.Close())
	}
	made := &conn{recoveringConn: recoveringConn{inner, opened.socket}, connector: c, era: era}
	if err := made.prepare(ctx, c.setup); err != nil {
		made.drop()
		return nil, err
	}
	return made, nil
}

var errInterface = errors.New("the driver lacks an interface")

func (c *connector) logOn(ctx context.Context) (_ driver.Conn, err error) {
	defer recovered(&err)
	return c.Connector.Connect(ctx)
}

// failed tells ended of a logon that did not go well; ctx is the caller's. One
// that was given up once there was a socket has not ended for sure: the server
// may have the password already, and take its time to refuse it.
func failed(ctx context.Context, opened dialed, err error, ended func(error)) {
	switch server, said := errors.AsType[*mysql.MySQLError](err); {
	case said && classOf(server.Number, source.Connecting) == observer.ClassCredentials:
		ended(&observer.Fault{
			Class: observer.ClassCredentials, Code: code(server.Number), Err: fmt.Errorf("connect: %w", serverError(server, source.Connecting)),
		})
	case said, opened.socket == nil, ctx.Err() == nil:
		ended(err)
	}
}

// driverConn is what the driver's connections offer beyond [driver.Conn].
type driverConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// conn is a connection whose session was set up.
type conn struct {
	recoveringConn
	connector *connector
	era       int64
	// id is the server's number of the connection, peer where it sees us. Both
	// together name it: numbers begin anew with a server, and others of a group
	// behind one address have the same.
	id      uint64
	peer    string
	mariadb bool
	// blind says that the account may not see the transactions of others.
	blind bool
}

// prepare sets the session up and learns who has answered.
func (c *conn) prepare(ctx context.Context, setup []string) error {
	for _, statement := range setup {
		if _, err := c.fetch(ctx, statement, nil); err != nil {
			return err
		}
	}
	r, err := c.fetch(ctx, "SELECT CAST(p.id AS CHAR), p.host, VERSION() FROM information_schema.processlist p WHERE p.id = CONNECTION_ID()", nil)
	if err == nil && len(r.rows) != 1 {
		err = mysql.ErrMalformPkt
	}
	if err != nil {
		return err
	}
	row := r.rows[0]
	c.peer, c.mariadb = string(row[1]), strings.Contains(strings.ToLower(string(row[2])), "mariadb")
	c.id, err = strconv.ParseUint(string(row[0]), 10, 64)
	return err
}

// ResetSession implements [driver.SessionResetter].
func (c *conn) ResetSession(ctx context.Context) error {
	if c.era != c.connector.era.Now() {
		return driver.ErrBadConn
	}
	return c.recoveringConn.ResetSession(ctx)
}

// drop ends the connection without a word to the server.
func (c *conn) drop() {
	_ = c.socket.Close()
	_ = c.Close()
}

// unlimited lets a SELECT run as long as its rows are read: the server's limit
// of a statement counts the time in which the reader is busy elsewhere.
func (c *conn) unlimited(statement string) string {
	if c.mariadb {
		return "SET STATEMENT max_statement_time = 0 FOR " + statement
	}
	return "SELECT /*+ MAX_EXECUTION_TIME(4294967295) */" + strings.TrimPrefix(statement, "SELECT")
}

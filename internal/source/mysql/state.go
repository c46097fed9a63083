package mysql

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/wait"
)

// A server is asked for its state in parts, whose rows say first what they are of. MariaDB runs
// several as one statement, one after the other: the members of UNION ALL.
var (
	settingsSQL = map[bool]string{
		true: `
SELECT 'read_only', CAST(@@global.read_only AS CHAR), NULL, NULL, NULL, NULL, NULL
UNION ALL
SELECT 'innodb_read_only', CAST(@@global.innodb_read_only AS CHAR), NULL, NULL, NULL, NULL, NULL
UNION ALL
SELECT s.variable_name, s.variable_value, NULL, NULL, NULL, NULL, NULL
FROM information_schema.global_status s
WHERE s.variable_name IN ('wsrep_cluster_state_uuid', 'wsrep_cluster_size')`,
		false: `
SHOW GLOBAL VARIABLES WHERE Variable_name IN
 ('server_uuid', 'group_replication_group_name', 'read_only', 'innodb_read_only')`,
	}

	// processSQL is run before the statement with trxSQL, and the clock is that of its beginning:
	// a statement that it does not see began later, or is a transaction by then. Sleeping
	// connections run nothing; what replication runs is judged by its delay.
	processSQL = map[bool]string{true: fmt.Sprintf(runningSQL, "p.time_ms / 1000"), false: fmt.Sprintf(runningSQL, "p.time + 1")}
)

const (
	// enginesSQL names the engines whose open transactions innodb_trx does not show, or
	// that show tables of other servers: all but those whose rows are there at the end
	// of a statement. The catalogue does not say which engines the tables behind a view or a
	// query have.
	enginesSQL = `
SELECT 'engine', e.engine, NULL, NULL, NULL, NULL, NULL
FROM information_schema.engines e
WHERE e.support IN ('YES', 'DEFAULT') AND LOWER(e.engine) NOT IN ('innodb', 'myisam', 'aria', 'memory', 'csv', 'archive',
  'mrg_myisam', 'blackhole', 'sequence', 'performance_schema')`

	runningSQL = `
SELECT 'process', CAST(UTC_TIMESTAMP(6) AS CHAR), p.id = CONNECTION_ID(), p.id, p.user, p.command, CAST(%s AS CHAR)
FROM information_schema.processlist p
WHERE p.command NOT IN ('Sleep', 'Daemon', 'Binlog Dump', 'Binlog Dump GTID')`

	// trxSQL shows the transactions, unless another node has the turn to ask. The text of our own
	// statement tells how old the answer is, see [session.freshState].
	trxSQL = `
SELECT 'transaction', t.trx_mysql_thread_id, t.trx_is_read_only, CAST(` + beganUTC + ` AS CHAR),
  IF(t.trx_mysql_thread_id = CONNECTION_ID(), LEFT(t.trx_query, 60), NULL), NULL, NULL
FROM information_schema.innodb_trx t
WHERE COALESCE(IS_USED_LOCK('` + turnLock + `'), CONNECTION_ID()) = CONNECTION_ID()`

	// beganUTC is when a transaction began. The server shows that in its system time
	// zone, whatever the session says; of two instants with one reading, in the
	// night in which the clocks go back, the earlier is taken.
	beganUTC   = `IF(CONVERT_TZ(` + startedUTC + ` - INTERVAL 1 HOUR, '+00:00', 'SYSTEM') = t.trx_started, ` + startedUTC + ` - INTERVAL 1 HOUR, ` + startedUTC + `)`
	startedUTC = `CONVERT_TZ(t.trx_started, 'SYSTEM', '+00:00')`
)

const (
	// cacheAge is how long the server answers from an earlier answer, counted
	// from the last question of any session: a session that asks more often than
	// that gets no new answer.
	cacheAge = 100 * time.Millisecond
	maxReads = 10
	// turnLock is the name of the turn to ask.
	turnLock = "observerd.horizon"
	// noThread is the thread of a prepared transaction whose session is gone, and
	// of the server's own.
	noThread = "0"
	// mysqlGrain: an age of MySQL is of whole seconds by the clock, between which a statement may
	// begin. It seems up to mysqlGrain older than it is, and never younger.
	mysqlGrain = 2 * time.Second
)

// running is a statement that runs.
type running struct {
	thread string
	// started is zero where it cannot be read. A thread that is just getting a
	// statement seems as old as the sleep that it was in.
	started time.Time
}

// transaction is one that is open.
type transaction struct {
	thread  string
	started time.Time // zero where it cannot be read
	// writes: it has written, or may do so yet. Our own do not.
	writes bool
}

// state is what a server says of itself at one moment.
type state struct {
	settings variables
	engine   string // one that does not show its transactions; empty for none
	now      time.Time
	grain    time.Duration
	running  []running
	replica  bool // threads of replication run
	open     []transaction
	// fresh says that open is of this moment: our own transaction runs the statement that asks.
	fresh bool
}

// stateSQL are the statements that ask for the state, in their order. The last, which has the
// nonce, begins when the processes are read: whoever has the server read the transactions anew
// sees it only from then on.
func (c *conn) stateSQL(nonce string) []string {
	parts := []string{processSQL[c.mariadb], settingsSQL[c.mariadb], enginesSQL, trxSQL}
	if c.blind {
		parts = parts[:3]
	}
	if c.mariadb {
		parts = []string{parts[0], strings.Join(parts[1:], "\nUNION ALL")}
	}
	parts[len(parts)-1] = "/* observerd " + nonce + " */" + parts[len(parts)-1]
	return parts
}

func (c *session) state(ctx context.Context) (state, error) {
	nonce := rand.Text()
	var rows [][][]byte
	for _, sql := range c.conn.stateSQL(nonce) {
		found, err := c.rows(ctx, "read open transactions", sql)
		if code := codeOf(err); (code == "1227" || code == "1142") && !c.conn.blind {
			c.conn.blind = true // Global rights are those of the logon.
			return c.state(ctx)
		}
		if err != nil {
			return state{}, err
		}
		rows = append(rows, found...)
	}
	s, err := stateOf(rows, nonce)
	if !c.conn.mariadb {
		s.grain = mysqlGrain
	}
	return s, err
}

// stateOf reads the rows of a state. Our own statement must be among them, as it is for any
// account.
func stateOf(rows [][][]byte, nonce string) (state, error) {
	s := state{settings: make(variables)}
	for _, row := range rows {
		switch string(row[0]) {
		case "engine":
			s.engine = string(row[1])
		case "process":
			s.addProcess(row[1:])
		case "transaction":
			s.open = append(s.open, transaction{string(row[1]), instant(row[3]), string(row[2]) != "1"})
			s.fresh = s.fresh || strings.Contains(string(row[4]), nonce)
		default:
			s.settings.add(row)
		}
	}
	if s.now.IsZero() {
		return state{}, &observer.Fault{Class: observer.ClassDriver, Err: errors.New("read running statements: our own is not among them")}
	}
	return s, nil
}

func (s *state) addProcess(row [][]byte) {
	s.now = instant(row[0])
	switch user := string(row[3]); {
	case string(row[1]) == "1", user == "unauthenticated user":
	case user == "system user", strings.HasPrefix(string(row[4]), "Slave_"):
		s.replica = true
	default:
		r := running{thread: string(row[2])}
		if age, err := strconv.ParseFloat(string(row[5]), 64); err == nil {
			r.started = s.now.Add(-time.Duration(age * float64(time.Second)))
		}
		s.running = append(s.running, r)
	}
}

// freshState asks until the answer is new. Where the first is not, the nodes that ask one server
// take turns, or none of them would ever be the first to ask for a while: a node that does not get
// a turn in time must not ask either.
func (c *session) freshState(ctx context.Context) (state, error) {
	s, err := c.state(ctx)
	if err != nil || s.fresh || c.conn.blind {
		return s, err
	}
	timeout := min(2, c.source.options.QueryTimeout.Seconds()/2)
	turn, err := c.rows(ctx, "take turns", fmt.Sprintf("SELECT CAST(GET_LOCK('%s', %.1f) AS CHAR)", turnLock, timeout))
	if err != nil || len(turn) != 1 || string(turn[0][0]) != "1" {
		return s, err
	}
	for range maxReads {
		if !wait.For(ctx, cacheAge+5*time.Millisecond+mathrand.N(cacheAge)/10) {
			err = source.Ended(ctx, "read open transactions")
			break
		}
		if s, err = c.state(ctx); err != nil || s.fresh {
			break
		}
	}
	return s, errors.Join(err, c.exec(ctx, "take turns", "DO RELEASE_LOCK('"+turnLock+"')"))
}

// prepared holds the mark where there are two-phase transactions. Those that a session
// still holds show their beginning like all others; one that was left behind
// may have been recovered by a restart. Without the right to ask, there are.
func (c *session) prepared(ctx context.Context, a *activity) error {
	rows, err := c.rows(ctx, "read prepared transactions", "XA RECOVER")
	if refused := codeOf(err) != ""; refused || len(rows) > 0 {
		a.hold("A prepared (two-phase) transaction was left open; the low-water mark does not move until it ends.")
		return nil
	}
	return err
}

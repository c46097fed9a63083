package mysql

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"time"
)

// trxSQL shows the transactions. The text of our own statement tells how old the
// answer is, see [session.transactions].
const trxSQL = `SELECT /* observerd %s */ t.trx_mysql_thread_id, t.trx_is_read_only, CAST(` + beganUTC + ` AS CHAR),
  IF(t.trx_mysql_thread_id = CONNECTION_ID(), LEFT(t.trx_query, 60), NULL)
FROM (SELECT x.trx_mysql_thread_id, x.trx_is_read_only, x.trx_query, x.trx_started AS began,
        CONVERT_TZ(x.trx_started, 'SYSTEM', '+00:00') AS utc
      FROM information_schema.innodb_trx x) t`

// beganUTC is when a transaction began. The server shows that in its system time
// zone, whatever the session says; of two instants with one reading, in the
// night in which the clocks go back, the earlier is taken.
const beganUTC = `IF(CONVERT_TZ(t.utc - INTERVAL 1 HOUR, '+00:00', 'SYSTEM') = t.began, t.utc - INTERVAL 1 HOUR, t.utc)`

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
)

var (
	errStale  = errors.New("the server answers from its memory")
	errHidden = errors.New("the account may not see the transactions")
)

// transaction is one that is open.
type transaction struct {
	thread  string
	started time.Time // zero where it cannot be read
	// writes: it has written, or may do so yet. Our own do not.
	writes bool
}

// transactions asks until the answer is new: in a new one, our own transaction runs
// the statement that asks. The nodes that ask one server take turns, or none of them
// would ever be the first to ask for a while: a node that does not get a turn in time
// must not ask either. It fails with errHidden or errStale where
// the transactions cannot be seen.
func (c *session) transactions(ctx context.Context) ([]transaction, error) {
	timeout := min(2, c.source.options.QueryTimeout.Seconds()/2)
	turn, err := c.rows(ctx, "take turns", fmt.Sprintf("SELECT CAST(GET_LOCK('%s', %.1f) AS CHAR)", turnLock, timeout))
	if err != nil {
		return nil, err
	}
	if len(turn) != 1 || string(turn[0][0]) != "1" {
		return nil, errStale
	}
	open, err := c.freshTransactions(ctx)
	if code := codeOf(err); code == "1227" || code == "1142" {
		err = errHidden
	}
	return open, errors.Join(err, c.exec(ctx, "take turns", "DO RELEASE_LOCK('"+turnLock+"')"))
}

func (c *session) freshTransactions(ctx context.Context) ([]transaction, error) {
	for range maxReads {
		nonce := rand.Text()
		rows, err := c.rows(ctx, "read open transactions", fmt.Sprintf(trxSQL, nonce))
		if err != nil {
			return nil, err
		}
		var open []transaction
		fresh := false
		for _, row := range rows {
			open = append(open, transaction{string(row[0]), instant(row[2]), string(row[1]) != "1"})
			fresh = fresh || strings.Contains(string(row[3]), nonce)
		}
		if fresh {
			return open, nil
		}
		if err := pause(ctx, cacheAge+5*time.Millisecond+mathrand.N(cacheAge)/10); err != nil {
			return nil, err
		}
	}
	return nil, errStale
}

// prepared reports whether there are two-phase transactions. Those that a session
// still holds show their beginning like all others; one that was left behind
// may have been recovered by a restart. Without the right to ask, there are.
func (c *session) prepared(ctx context.Context) (bool, error) {
	rows, err := c.rows(ctx, "read prepared transactions", "XA RECOVER")
	if codeOf(err) != "" {
		return true, nil
	}
	return len(rows) > 0, err
}

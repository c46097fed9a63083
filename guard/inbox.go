package guard

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// SQL is the table of processed events, for the migrations of the consumer's database.
func SQL() string {
	return `CREATE TABLE obs_inbox (
  consumer   text        NOT NULL,
  event_id   text        NOT NULL,
  key        text        NOT NULL,
  fence      bigint      NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (consumer, event_id)
);
CREATE INDEX obs_inbox_applied ON obs_inbox (consumer, applied_at);
`
}

const (
	checkSQL = `SELECT current_setting('transaction_read_only'), count(fence) FROM (SELECT consumer, event_id, key, fence, applied_at FROM obs_inbox LIMIT 0) AS inbox`

	// The target list is evaluated from left to right. The lock ends with the transaction, so
	// it outlives neither a dead connection nor the turn of one that a pooler shares.
	takeSQL = `SELECT current_setting('lock_timeout'), set_config('lock_timeout', $1, true), set_config('observerd.guard', $2, true), pg_advisory_xact_lock($3)::text`

	// Under READ COMMITTED it sees what the holder before has committed.
	lookSQL = `SELECT set_config('lock_timeout', $1, true), EXISTS (SELECT FROM obs_inbox WHERE consumer = $2 AND event_id = $3)`

	// A handler that has ended the transaction has ended the setting with it.
	noteSQL = `
INSERT INTO obs_inbox (consumer, event_id, key, fence)
SELECT $1::text, $2::text, $3::text, $4::bigint WHERE current_setting('observerd.guard', true) = $5
    ON CONFLICT DO NOTHING`

	sameSQL = `SELECT COALESCE(current_setting('observerd.guard', true) = $1, false)`

	sweepSQL = `
DELETE FROM obs_inbox
 WHERE (consumer, event_id) IN (
   SELECT consumer, event_id FROM obs_inbox WHERE consumer = $1 AND applied_at < now() - $2::float8 * interval '1 second' LIMIT $3)`
)

// hash is what is locked in the database for a key of a consumer. Two keys with one hash wait
// for each other, and no more.
func hash(consumer, key string) int64 {
	sum := sha256.Sum256([]byte(consumer + "\x00" + key))
	return int64(binary.BigEndian.Uint64(sum[:8])) //nolint:gosec // Any 64 bits will do.
}

// Tx is the transaction of a handler. The guard ends it.
type Tx struct {
	// SQL is that of Options.DB, and Pgx that of Options.Pgx; the other is nil.
	SQL *sql.Tx
	Pgx pgx.Tx
}

// statements are what the guard asks in a transaction, of either pool.
type statements interface {
	exec(ctx context.Context, query string, args ...any) (rows int64, err error)
	row(ctx context.Context, query string, args []any, into ...any) error
	commit(ctx context.Context) error
	rollback(ctx context.Context)
}

// errSlow is the end of a transaction in which the database did not answer in time.
var errSlow = errors.New("the database has not answered in time")

// answer bounds each call of the guard to the database, but for the wait for a key.
const answer = 10 * time.Second

// transaction is the one transaction of an attempt.
type transaction struct {
	Tx
	statements
	// ctx ends with the lease, and when the database does not answer in time. Then the
	// server rolls back.
	ctx    context.Context //nolint:containedctx // It is the transaction's.
	cancel context.CancelCauseFunc
	// mark tells it from one that the handler began.
	mark  string
	ended bool
}

// begin begins a transaction under READ COMMITTED, whatever the default is. It waits for a
// connection of the pool. The caller must end it.
func (g *Guard) begin(ctx context.Context, wait time.Duration) (*transaction, error) {
	t := &transaction{mark: uuid.NewString()}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	err := t.within(wait+answer, func() error {
		if g.opts.DB != nil {
			return t.beginSQL(g.opts.DB)
		}
		return t.beginPgx(g.opts.Pgx)
	})
	if err != nil {
		err = dbError(t.ctx, err)
		t.cancel(nil)
		return nil, err
	}
	return t, nil
}

// within ends the transaction when do takes longer.
func (t *transaction) within(limit time.Duration, do func() error) error {
	timer := time.AfterFunc(limit, func() { t.cancel(errSlow) })
	defer timer.Stop()
	return do()
}

// end rolls back what was not committed, and gives the connection back. It may be called again.
func (t *transaction) end() {
	if t.ended {
		return
	}
	t.ended = true
	_ = t.within(answer, func() error {
		t.rollback(t.ctx)
		return nil
	})
	t.cancel(nil)
}

// take waits for the key, until the transaction of an earlier holder has ended, and says
// whether the event was applied.
func (t *transaction) take(g *Guard, e event, wait time.Duration) (applied bool, err error) {
	wait = max(wait, time.Millisecond)
	err = t.within(wait+answer, func() error {
		var was, ignored, mark string
		args := []any{strconv.FormatInt(wait.Milliseconds(), 10), t.mark, hash(g.opts.Consumer, e.key)}
		if err := t.row(t.ctx, takeSQL, args, &was, &ignored, &mark, &ignored); err != nil {
			return err
		}
		return t.row(t.ctx, lookSQL, []any{was, g.opts.Consumer, e.id}, &ignored, &applied)
	})
	if err != nil {
		return false, dbError(t.ctx, err)
	}
	return applied, nil
}

// note inserts the event into the inbox; false when it is there.
func (t *transaction) note(g *Guard, e event, fence int64) (fresh bool, err error) {
	same := true
	err = t.within(answer, func() error {
		n, err := t.exec(t.ctx, noteSQL, g.opts.Consumer, e.id, e.key, fence, t.mark)
		if fresh = n == 1; err != nil || fresh {
			return err
		}
		return t.row(t.ctx, sameSQL, []any{t.mark}, &same)
	})
	switch {
	case t.ctx.Err() == nil && (!same || errors.Is(err, sql.ErrTxDone) || errors.Is(err, pgx.ErrTxClosed)):
		return false, ErrTxEnded
	case err != nil:
		return false, dbError(t.ctx, err)
	}
	return fresh, nil
}

// sqlTx are the statements of database/sql. The end of its context rolls it back.
type sqlTx struct {
	conn *sql.Conn
	tx   *sql.Tx
}

func (t *transaction) beginSQL(db *sql.DB) error {
	conn, err := db.Conn(t.ctx)
	if err != nil {
		return err
	}
	tx, err := conn.BeginTx(t.ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	t.Tx, t.statements = Tx{SQL: tx}, sqlTx{conn, tx}
	return nil
}

func (t sqlTx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	result, err := t.tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (t sqlTx) row(ctx context.Context, query string, args []any, into ...any) error {
	return t.tx.QueryRowContext(ctx, query, args...).Scan(into...)
}

func (t sqlTx) commit(context.Context) error { return t.tx.Commit() }

func (t sqlTx) rollback(context.Context) {
	_ = t.tx.Rollback()
	_ = t.conn.Close()
}

// pgxTx are the statements of pgx.
type pgxTx struct {
	conn *pgxpool.Conn
	tx   pgx.Tx
	// stop keeps the end of the context from closing the connection.
	stop func() bool
}

func (t *transaction) beginPgx(pool *pgxpool.Pool) error {
	conn, err := pool.Acquire(t.ctx)
	if err != nil {
		return err
	}
	tx, err := conn.BeginTx(t.ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		conn.Release()
		return err
	}
	// A handler that does not look at its context would keep the transaction open.
	wire := conn.Conn().PgConn().Conn()
	stop := context.AfterFunc(t.ctx, func() { _ = wire.Close() })
	t.Tx, t.statements = Tx{Pgx: tx}, pgxTx{conn, tx, stop}
	return nil
}

func (t pgxTx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	tag, err := t.tx.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}

func (t pgxTx) row(ctx context.Context, query string, args []any, into ...any) error {
	return t.tx.QueryRow(ctx, query, args...).Scan(into...)
}

func (t pgxTx) commit(ctx context.Context) error { return t.tx.Commit(ctx) }

func (t pgxTx) rollback(ctx context.Context) {
	_ = t.tx.Rollback(ctx)
	if !t.stop() { // Its connection is of no use to the pool.
		_ = t.conn.Conn().Close(ctx)
	}
	t.conn.Release()
}

// check asks whether the database can keep the inbox.
func (g *Guard) check(ctx context.Context) error {
	t, err := g.begin(ctx, 0)
	if err != nil {
		return err
	}
	defer t.end()
	var readOnly string
	var none int64
	if err := t.within(answer, func() error { return t.row(t.ctx, checkSQL, nil, &readOnly, &none) }); err != nil {
		return dbError(t.ctx, err)
	}
	if readOnly == "on" {
		return ErrReadOnly
	}
	return nil
}

// sweepOnce deletes some rows that are older than Options.Keep.
func (g *Guard) sweepOnce(ctx context.Context) (rows int64, err error) {
	t, err := g.begin(ctx, 0)
	if err != nil {
		return 0, err
	}
	defer t.end()
	err = t.within(answer, func() error {
		if rows, err = t.exec(t.ctx, sweepSQL, g.opts.Consumer, g.opts.Keep.Seconds(), sweepRows); err != nil {
			return err
		}
		return t.commit(t.ctx)
	})
	if err != nil {
		return 0, fmt.Errorf("delete old rows of obs_inbox: %w", dbError(t.ctx, err))
	}
	return rows, nil
}

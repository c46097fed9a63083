package guard

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
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
	// The target list is evaluated from left to right. The lock ends with the transaction, so
	// it outlives neither a dead connection nor the turn of one that a pooler shares.
	takeSQL = `SELECT set_config('observerd.lock_timeout', current_setting('lock_timeout'), true), set_config('lock_timeout', $1, true), set_config('observerd.guard', $2, true), pg_advisory_xact_lock($3)::text`

	sameSQL = `SELECT COALESCE(current_setting('observerd.guard', true) = $1, false)`

	inboxSQL = `SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = 'obs_inbox'::regclass`
)

// texts are the statements on the inbox. They name its schema: a handler may set another path.
type texts struct{ look, note, sweep string }

func textsFor(inbox string) texts {
	return texts{
		// Under READ COMMITTED it sees what the holder before has committed.
		look: `SELECT set_config('lock_timeout', current_setting('observerd.lock_timeout'), true), current_setting('transaction_read_only'), EXISTS (SELECT FROM ` + inbox + ` WHERE consumer = $1 AND event_id = $2)`,
		// A handler that has ended the transaction has ended the setting with it.
		note: `
INSERT INTO ` + inbox + ` (consumer, event_id, key, fence)
SELECT $1::text, $2::text, $3::text, $4::bigint WHERE current_setting('observerd.guard', true) = $5
    ON CONFLICT (consumer, event_id) DO NOTHING`,
		sweep: `DELETE FROM ` + inbox + ` WHERE (consumer, event_id) IN (
   SELECT consumer, event_id FROM ` + inbox + ` WHERE consumer = $1 AND applied_at < now() - $2::float8 * interval '1 second' LIMIT $3)`,
	}
}

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
	// ask asks one after the other, in one round trip where the driver can.
	ask(ctx context.Context, all ...question) error
	commit(ctx context.Context) error
	rollback(ctx context.Context)
}

// question is a query of one row.
type question struct {
	query      string
	args, into []any
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
// connection of the pool, a second at least. The caller must end it.
func (g *Guard) begin(ctx context.Context, until time.Time) (*transaction, error) {
	t := &transaction{mark: uuid.NewString()}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	err := t.within(max(time.Until(until), time.Second), func() error {
		if g.opts.DB != nil {
			return t.beginSQL(g.opts.DB)
		}
		return t.beginPgx(g.opts.Pgx)
	})
	if err != nil {
		t.cancel(nil)
		return nil, err
	}
	return t, nil
}

// within ends the transaction when do takes longer, and says what its error means for the bus.
func (t *transaction) within(limit time.Duration, do func() error) error {
	timer := time.AfterFunc(limit, func() { t.cancel(errSlow) })
	defer timer.Stop()
	if err := do(); err != nil {
		return dbError(t.ctx, err)
	}
	return nil
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
func (t *transaction) take(g *Guard, e event, until time.Time) (applied bool, err error) {
	wait := max(time.Until(until), time.Millisecond)
	var readOnly, ignored string
	err = t.within(wait+answer, func() error {
		return t.ask(t.ctx,
			question{takeSQL, []any{strconv.FormatInt(wait.Milliseconds(), 10), t.mark, hash(g.opts.Consumer, e.key)}, []any{&ignored, &ignored, &ignored, &ignored}},
			question{g.texts.look, []any{g.opts.Consumer, e.id}, []any{&ignored, &readOnly, &applied}})
	})
	if err == nil && readOnly == "on" {
		err = ErrReadOnly
	}
	return applied, err
}

// same returns [ErrTxEnded] if the transaction is not the one that was begun, and the error of
// a database that does not say.
func (t *transaction) same() error {
	var same bool
	err := t.within(answer, func() error { return t.ask(t.ctx, question{sameSQL, []any{t.mark}, []any{&same}}) })
	if err == nil && !same || t.isDone(err) {
		return ErrTxEnded
	}
	return err
}

// isDone reports an error of the driver: the handler has ended the transaction through it.
func (t *transaction) isDone(err error) bool {
	return t.ctx.Err() == nil && (errors.Is(err, sql.ErrTxDone) || errors.Is(err, pgx.ErrTxClosed))
}

// note inserts the event into the inbox; false when it is there.
func (t *transaction) note(g *Guard, e event, fence int64) (fresh bool, err error) {
	err = t.within(answer, func() error {
		n, err := t.exec(t.ctx, g.texts.note, g.opts.Consumer, e.id, e.key, fence, t.mark)
		fresh = n == 1
		return err
	})
	switch {
	case t.isDone(err):
		return false, ErrTxEnded
	case err == nil && !fresh:
		return false, t.same()
	}
	return fresh, err
}

// sqlTx are the statements of database/sql. The end of its context rolls it back.
type sqlTx struct{ tx *sql.Tx }

func (t *transaction) beginSQL(db *sql.DB) error {
	tx, err := db.BeginTx(t.ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	t.Tx, t.statements = Tx{SQL: tx}, sqlTx{tx}
	return nil
}

func (t sqlTx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	result, err := t.tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (t sqlTx) ask(ctx context.Context, all ...question) error {
	for _, q := range all {
		if err := t.tx.QueryRowContext(ctx, q.query, q.args...).Scan(q.into...); err != nil {
			return err
		}
	}
	return nil
}

func (t sqlTx) commit(context.Context) error { return t.tx.Commit() }

func (t sqlTx) rollback(context.Context) { _ = t.tx.Rollback() }

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

func (t pgxTx) ask(ctx context.Context, all ...question) error {
	var batch pgx.Batch
	for _, q := range all {
		batch.Queue(q.query, q.args...).QueryRow(func(row pgx.Row) error { return row.Scan(q.into...) })
	}
	return t.tx.SendBatch(ctx, &batch).Close()
}

func (t pgxTx) commit(ctx context.Context) error { return t.tx.Commit(ctx) }

func (t pgxTx) rollback(ctx context.Context) {
	_ = t.tx.Rollback(ctx)
	if !t.stop() { // Its connection is of no use to the pool.
		_ = t.conn.Conn().Close(ctx)
	}
	t.conn.Release()
}

// check asks where the inbox is, and whether it is one that the guard may write.
func (g *Guard) check(ctx context.Context) error {
	t, err := g.begin(ctx, time.Now().Add(answer))
	if err != nil {
		return err
	}
	defer t.end()
	var inbox string
	if err := t.within(answer, func() error { return t.ask(t.ctx, question{inboxSQL, nil, []any{&inbox}}) }); err != nil {
		return err
	}
	g.texts = textsFor(inbox)
	if _, err := t.take(g, event{}, time.Now().Add(answer)); err != nil {
		return err
	}
	return t.within(answer, func() error { // Neither changes a row.
		if _, err := t.exec(t.ctx, g.texts.note, "", "", "", 0, ""); err != nil {
			return err
		}
		_, err := t.exec(t.ctx, g.texts.sweep, "", 0, 0)
		return err
	})
}

// sweepOnce deletes some rows that are older than Options.Keep.
func (g *Guard) sweepOnce(ctx context.Context) (rows int64, err error) {
	t, err := g.begin(ctx, time.Now().Add(answer))
	if err != nil {
		return 0, err
	}
	defer t.end()
	err = t.within(answer, func() error {
		if rows, err = t.exec(t.ctx, g.texts.sweep, g.opts.Consumer, g.opts.Keep.Seconds(), sweepRows); err != nil {
			return err
		}
		return t.commit(t.ctx)
	})
	return rows, err
}

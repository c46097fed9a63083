package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// touchSQL makes a lease run anew if its term still holds it.
const touchSQL = `
UPDATE int_lock AS l
   SET {touch $4}
 WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND {alive l $4}`

// touchArgs are the parameters of touchSQL.
func touchArgs(g lock.Grant) []any { return []any{rowKey(g.Key), g.Region, g.Term, g.TTL.Seconds()} }

// Extend implements [lock.Extender]. The lease is renewed by its present TTL first,
// which also locks the row, and then dated for the new one.
func (l *Leases) Extend(ctx context.Context, g lock.Grant, ttl time.Duration) error {
	touch := l.db.SQL(touchSQL)
	longer := g
	longer.TTL = ttl
	extend := func(tx *sql.Tx) error {
		for _, args := range [][]any{touchArgs(g), touchArgs(longer)} {
			result, err := tx.ExecContext(ctx, touch, args...)
			if err != nil {
				return err
			}
			if n, err := result.RowsAffected(); n == 0 || err != nil {
				return errors.Join(err, lock.ErrLost)
			}
		}
		_, err := tx.ExecContext(ctx, l.db.SQL(`
			UPDATE obs_lock SET ttl_ms = $4 WHERE lock_key = $1 AND region = $2 AND term = $3`),
			rowKey(g.Key), g.Region, g.Term, ttl.Milliseconds())
		return err
	}
	if !g.Mode.Alone() {
		extend = func(tx *sql.Tx) error { return l.extendHold(ctx, tx, g, ttl) }
	}
	err := l.change(ctx, fmt.Sprintf("extend lock %s", g.Key), extend)
	if errors.Is(err, lock.ErrLost) {
		l.terms.leave(g.Term)
	}
	return err
}

// change runs a transaction that changes a lease, and tries again while another client has
// locked its row.
func (l *Leases) change(ctx context.Context, what string, step func(*sql.Tx) error) error {
	err := retryLocked(ctx, func() error {
		err := sqldb.RetryConflicts(ctx, func() error { return l.db.InTx(ctx, what, step) })
		if lockTimedOut(err) {
			return errors.Join(errLocked, err)
		}
		return err
	})
	if errors.Is(err, errLocked) {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return err
}

// GuardSQL implements [lock.Guard].
func (l *Leases) GuardSQL(g lock.Grant) (text string, args []any) {
	if !g.Mode.Alone() {
		return l.db.SQL(guardHoldSQL), []any{rowKey(g.Key), g.Region, g.Term}
	}
	return l.db.SQL(touchSQL), touchArgs(g)
}

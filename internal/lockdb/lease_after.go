package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/liveness"
)

// delayedSQL gives the row to a term that no process has. It is locked, and was ours.
const delayedSQL = `
UPDATE int_lock AS l
   SET client_id = $5, {touch $4}
 WHERE lock_key = $1 AND region = $2 AND client_id = $3 AND CAST($4 AS DOUBLE PRECISION) IS NOT NULL`

// ReleaseAfter implements [lock.Delayer]: the lock goes to a term that nobody has, whose
// TTL is the time that is left. It is of no process, so its end frees no lock. A row that
// another client has locked is tried again, as by Release.
func (l *Leases) ReleaseAfter(ctx context.Context, g lock.Grant, after time.Duration) error {
	defer l.terms.leave(g.Term)
	term := uuid.NewString()
	step := func(tx *sql.Tx) error { return l.delay(ctx, tx, g, term, after) }
	if !g.Mode.Alone() {
		step = func(tx *sql.Tx) error { return l.delayHold(ctx, tx, g, term, after) }
	}
	return l.change(ctx, fmt.Sprintf("release lock %s in %s", g.Key, after), step)
}

// delay is ReleaseAfter of a lock that one holds.
func (l *Leases) delay(ctx context.Context, tx *sql.Tx, g lock.Grant, term string, after time.Duration) error {
	row := []any{rowKey(g.Key), g.Region, g.Term}
	for _, step := range []struct {
		text string
		args []any
	}{
		{l.db.SQL(touchSQL), touchArgs(g)},
		{l.db.SQL(delayedSQL), append(row, after.Seconds(), term)},
		{l.db.SQL(`
			UPDATE obs_lock
			   SET term = $4, boot_term = $4, boot_id = '', liveness = '` + liveness.Released + `', ttl_ms = $5
			 WHERE lock_key = $1 AND region = $2 AND term = $3`), append(row, term, after.Milliseconds())},
	} {
		if err := changeOne(ctx, tx, step.text, step.args...); err != nil {
			return err
		}
	}
	return nil
}

// delayHold is ReleaseAfter of a lock that is shared.
func (l *Leases) delayHold(ctx context.Context, tx *sql.Tx, g lock.Grant, term string, after time.Duration) error {
	if err := l.extendHold(ctx, tx, g, after); err != nil {
		return err
	}
	row := []any{rowKey(g.Key), g.Region, g.Term}
	group := l.db.SQL(`
		UPDATE obs_lock
		   SET liveness = '` + liveness.Released + `'
		 WHERE lock_key = $1 AND region = $2 AND term = (SELECT group_term FROM obs_hold h WHERE h.lock_key = $1 AND h.region = $2 AND h.term = $3)`)
	if err := changeOne(ctx, tx, group, row...); err != nil {
		return err
	}
	return changeOne(ctx, tx, l.db.SQL(`
		UPDATE obs_hold SET term = $4
		 WHERE lock_key = $1 AND region = $2 AND term = $3`), append(row, term)...)
}

// changeOne runs a statement that changes the row of a term. The error is [lock.ErrLost]
// when there is none.
func changeOne(ctx context.Context, tx *sql.Tx, text string, args ...any) error {
	result, err := tx.ExecContext(ctx, text, args...)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); n == 0 || err != nil {
		return errors.Join(err, lock.ErrLost)
	}
	return nil
}

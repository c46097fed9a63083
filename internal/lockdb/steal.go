package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// stealLockedError is [errLocked] of a steal. Who holds the lock is known.
type stealLockedError struct{}

func (stealLockedError) Error() string {
	return "another transaction has locked its row; try again, and look for that transaction if it stays so"
}

func (stealLockedError) Is(target error) bool { return target == lock.ErrHeld || target == errLocked }

// ahead is the place of one who waits for nobody.
var ahead = lock.Place{Priority: math.MaxInt32, Ticket: 1}

// isVerdict reports whether a steal was refused, and has changed nothing.
func isVerdict(err error) bool {
	return errors.Is(err, lock.ErrRenewed) || errors.Is(err, lock.ErrEnded) || errors.Is(err, lock.ErrHeld)
}

// Steal implements [lock.Stealer]. It waits for a row that is locked as Acquire does, and is
// noted in obs_audit in the transaction that does it.
func (l *Leases) Steal(ctx context.Context, r lock.Request, seen lock.Held, by lock.By) (lock.Grant, error) {
	if ctx.Err() != nil {
		return lock.Grant{}, fmt.Errorf("steal lock %s: %w", r.Key, context.Cause(ctx))
	}
	act := Did(by, "steal-lock", r.Region+" "+r.Key, seen.Term)
	wanted := r
	wanted.Place = ahead
	grants, err := l.takeAll(ctx, []lock.Request{wanted}, func(ctx context.Context, grants []lock.Grant, self process) ([]acquired, error) {
		fence, err := l.steal(ctx, grants[0], seen, act, self)
		var held *lock.HeldError
		if errors.As(err, &held) {
			held.Key = r.Key
		}
		return []acquired{{fence: fence}}, err
	})
	if err != nil {
		return lock.Grant{}, err
	}
	g := grants[0]
	g.Request, g.Recovered = r, true
	l.log.Info("Lease stolen", "lock", g.Key, "name", g.Name, "from", seen.Node, "fence", g.Fence, "actor", by.Actor)
	return g, nil
}

// steal ends the lease that was seen and takes its lock, or does nothing.
func (l *Leases) steal(ctx context.Context, g lock.Grant, seen lock.Held, act Act, by process) (fence int64, err error) {
	tx, err := l.db.Acquire.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err = sqldb.EndTx(tx, err); lockTimedOut(err) {
			err = stealLockedError{}
		}
	}()
	if err := l.endSeen(ctx, tx, g, seen); err != nil {
		return 0, err
	}
	if err := l.refuses(ctx, tx, g); err != nil {
		return 0, err
	}
	taken, err := l.engine.acquireOne(ctx, tx, g, by)
	if err != nil {
		return 0, err
	}
	return taken.fence, audit(ctx, l.db, tx, act)
}

// The statements of a steal from one who holds the lock alone, $3, and from one of several.
const (
	seenAloneSQL = `
SELECT CAST(created_date AS TEXT)
  FROM int_lock
 WHERE lock_key = $1 AND region = $2 AND client_id = $3
   AND NOT EXISTS (SELECT 1 FROM obs_lock o WHERE o.lock_key = $1 AND o.region = $2 AND o.group_term = $3)`
	endAloneSQL = `DELETE FROM int_lock WHERE lock_key = $1 AND region = $2 AND client_id = $3`

	seenHoldSQL = `
SELECT {mark h.touched_at}
  FROM obs_hold h
  JOIN int_lock l ON l.lock_key = h.lock_key AND l.region = h.region AND l.client_id = h.group_term
 WHERE h.lock_key = $1 AND h.region = $2 AND h.term = $3{update}`
	endHoldSQL = `DELETE FROM obs_hold WHERE lock_key = $1 AND region = $2 AND term = $3`
)

// endSeen locks the row, and ends the lease that was seen.
func (l *Leases) endSeen(ctx context.Context, tx *sql.Tx, g lock.Grant, seen lock.Held) error {
	look, end := seenAloneSQL, endAloneSQL
	if !seen.Mode.Alone() {
		look, end = seenHoldSQL, endHoldSQL
	}
	var client sql.NullString
	row := l.db.SQL(`SELECT client_id FROM int_lock WHERE lock_key = $1 AND region = $2{update}`)
	err := tx.QueryRowContext(ctx, row, g.Key, g.Region).Scan(&client)
	if err == nil {
		var mark string
		// It reads what was renewed while the row was waited for, by a guard too.
		err = tx.QueryRowContext(ctx, l.db.SQL(look), g.Key, g.Region, seen.Term).Scan(&mark)
		if err == nil && mark != seen.Mark {
			return lock.ErrRenewed
		}
	}
	if errors.Is(err, sql.ErrNoRows) {
		return lock.ErrEnded
	}
	if err != nil {
		return err
	}
	return changeOne(ctx, tx, l.db.SQL(end), g.Key, g.Region, seen.Term)
}

// refuses returns a [lock.HeldError] when another of those who share the lock keeps out the
// grant's mode.
func (l *Leases) refuses(ctx context.Context, tx *sql.Tx, g lock.Grant) error {
	held := &lock.HeldError{}
	var touched, now time.Time
	var ttl int64
	err := tx.QueryRowContext(ctx, l.db.SQL(`
		SELECT h.node, h.touched_at, h.ttl_ms, {now}
		  FROM obs_hold h
		  JOIN int_lock l ON l.lock_key = h.lock_key AND l.region = h.region AND l.client_id = h.group_term
		 WHERE h.lock_key = $1 AND h.region = $2 AND `+liveHoldSQL+` AND `+conflictSQL("h.mode", "$3")+`
		 ORDER BY h.touched_at DESC
		 LIMIT 1`), g.Key, g.Region, modeOf(g)).
		Scan(&held.Node, sqldb.ScanTime(&touched), &ttl, sqldb.ScanTime(&now))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	held.Left = leftOf(time.Duration(ttl)*time.Millisecond, now.Sub(touched))
	return held
}

// acquireOne is acquireAll of one lock, in a transaction.
func (e *postgresEngine) acquireOne(ctx context.Context, tx *sql.Tx, g lock.Grant, by process) (a acquired, err error) {
	statements := e.claimAndGrant([]lock.Grant{g}, by)
	claim, grant := statements[0], statements[1]
	if _, err := tx.ExecContext(ctx, claim.Text, claim.Args...); err != nil {
		return a, err
	}
	var ok bool
	err = tx.QueryRowContext(ctx, grant.Text, grant.Args...).Scan(append([]any{&ok, &a.fence}, a.before.scan()...)...)
	if err == nil && !ok {
		err = errHeld
	}
	return a, err
}

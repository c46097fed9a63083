package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/pgsession"
)

// errStealLocked is [sqldb.ErrLocked] of a steal. Who holds the lock is known.
var errStealLocked = &pgsession.WordedError{
	Text: "another transaction has locked its row; try again, and find that transaction if the error persists",
	Err:  errors.Join(lock.ErrHeld, sqldb.ErrLocked),
}

// Steal implements [lock.Stealer]. It waits for a row that is locked as Acquire does, and is
// noted in obs_audit in the transaction that does it.
func (p *Provider) Steal(ctx context.Context, r lock.Request, seen lock.Held, by lock.By) (lock.Grant, error) {
	act := lockdb.Did(by, "steal-lock", r.Region+" "+r.Key, seen.Term)
	wanted := r
	wanted.Place = lock.Place{Priority: math.MaxInt32, Ticket: 1} // Of one who waits for nobody.
	grants, err := p.acquire(ctx, []lock.Request{wanted}, func(ctx context.Context, grants []lock.Grant) ([]acquired, error) {
		a, err := p.steal(ctx, grants[0], seen, act)
		if held, ok := errors.AsType[*lock.HeldError](err); ok {
			held.Key = r.Key
		}
		return []acquired{{fence: a.fence}}, err
	})
	if err != nil {
		return lock.Grant{}, err
	}
	g := grants[0]
	g.Request, g.Recovered = r, true
	p.log.Info("Lease stolen", "lock", g.Key, "name", g.Name, "from", seen.Node, "fence", g.Fence, "actor", by.Actor)
	return g, nil
}

// steal ends the lease that was seen and takes its lock, or does nothing.
func (p *Provider) steal(ctx context.Context, g lock.Grant, seen lock.Held, act lockdb.Act) (a acquired, err error) {
	tx, err := p.db.Acquire.BeginTx(ctx, nil)
	if err != nil {
		return a, err
	}
	defer func() {
		if err = sqldb.EndTx(tx, err); sqldb.LockTimedOut(err) {
			err = errStealLocked
		}
	}()
	if err := p.endSeen(ctx, tx, g, seen); err != nil {
		return a, err
	}
	if err := p.refuses(ctx, tx, g); err != nil {
		return a, err
	}
	if a, err = p.engine.acquireIn(ctx, tx, g); err != nil {
		return a, err
	}
	return a, p.node.Audit(ctx, tx, act)
}

// endSeen locks the row, and ends the lease that was seen.
func (p *Provider) endSeen(ctx context.Context, tx *sql.Tx, g lock.Grant, seen lock.Held) error {
	text := p.sql.SQL()
	look, end := text.SeenAlone, text.EndAlone
	if !seen.Mode.Alone() {
		look, end = text.SeenHold, text.EndHold
	}
	var client sql.NullString
	err := tx.QueryRowContext(ctx, text.LockRow, g.Key, g.Region).Scan(&client)
	if err == nil {
		var mark string
		// It reads what was renewed while the row was waited for, by a guard too.
		err = tx.QueryRowContext(ctx, look, g.Key, g.Region, seen.Term).Scan(&mark)
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
	return changeOne(ctx, tx, end, g.Key, g.Region, seen.Term)
}

// refuses returns a [lock.HeldError] when another of those who share the lock keeps out the
// grant's mode.
func (p *Provider) refuses(ctx context.Context, tx *sql.Tx, g lock.Grant) error {
	held := &lock.HeldError{}
	var touched, now time.Time
	var ttl int64
	err := tx.QueryRowContext(ctx, p.sql.SQL().Refusing, g.Key, g.Region, modeOf(g)).
		Scan(&held.Node, sqldb.ScanTime(&touched), &ttl, sqldb.ScanTime(&now))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	held.Left = lockdb.LeftOf(time.Duration(ttl)*time.Millisecond, now.Sub(touched))
	return held
}

// ReleaseLock ends the lease of a term for an operator, whoever holds it. The error is
// [lock.ErrLost] when the term does not hold the lock.
func (p *Provider) ReleaseLock(ctx context.Context, region, key, term string, by lock.By) error {
	act := lockdb.Did(by, "release-lock", region+" "+key, term)
	return p.db.InTx(ctx, "release lock "+key, func(tx *sql.Tx) error {
		var client sql.NullString
		err := tx.QueryRowContext(ctx, p.sql.SQL().LockRow, lockdb.RowKey(key), region).Scan(&client)
		if errors.Is(err, sql.ErrNoRows) {
			return lock.ErrLost
		}
		if err != nil {
			return err
		}
		if err := p.endTerm(ctx, tx, lockdb.RowKey(key), region, term); err != nil {
			return err
		}
		return p.node.Audit(ctx, tx, act)
	})
}

// endTerm ends the lease of one who holds the lock alone, or shares it. Its row is locked.
func (p *Provider) endTerm(ctx context.Context, tx *sql.Tx, key, region, term string) error {
	text := p.sql.SQL()
	if _, err := tx.ExecContext(ctx, text.Reap, key, region, term); err != nil {
		return err
	}
	ended := false
	for _, text := range []string{text.EndAlone, text.EndGroup, text.EndHold} {
		err := changeOne(ctx, tx, text, key, region, term)
		if err != nil && !errors.Is(err, lock.ErrLost) {
			return err
		}
		ended = ended || err == nil
	}
	if !ended {
		return fmt.Errorf("term %s: %w", term, lock.ErrLost)
	}
	return nil
}

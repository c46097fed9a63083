package lockdb

import (
	"context"
	"database/sql"
	"errors"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// acquireAll takes the locks one after the other in one transaction.
func (e *sqliteEngine) acquireAll(ctx context.Context, grants []lock.Grant, by process) (taken []acquired, err error) {
	tx, err := e.db.Acquire.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = sqldb.EndTx(tx, err) }()
	taken = make([]acquired, len(grants))
	for i, g := range grants {
		if taken[i], err = e.acquireOne(ctx, tx, g, by); errors.Is(err, errHeld) {
			return nil, refusedError{i}
		} else if err != nil {
			return nil, err
		}
	}
	return taken, nil
}

// standing is what standingSQL returns.
type standing struct{ grouped, lives, refuses, expired bool }

func (e *sqliteEngine) acquireOne(ctx context.Context, tx *sql.Tx, g lock.Grant, by process) (a acquired, err error) {
	was := e.db.SQL(sqlitePredecessorSQL)
	if err := tx.QueryRowContext(ctx, was, g.Key, g.Region).Scan(a.before.scan()...); err != nil {
		return a, err
	}
	var s standing
	var group string
	look := e.db.SQL(`
		SELECT l.client_id, ` + standingSQL("$3", "$4") + `
		  FROM int_lock l
		  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id
		 WHERE l.lock_key = $1 AND l.region = $2`)
	err = tx.QueryRowContext(ctx, look, g.Key, g.Region, modeOf(g), g.TTL.Seconds()).Scan(&group, &s.grouped, &s.lives, &s.refuses, &s.expired)
	present := !errors.Is(err, sql.ErrNoRows)
	if err != nil && present {
		return a, err
	}
	var behind bool
	if err := tx.QueryRowContext(ctx, e.db.SQL(`SELECT `+behindSQL+` FROM (`+wantedSQL+`) want`), wantedArgs(g)...).Scan(&behind); err != nil {
		return a, err
	}
	joins := s.grouped && s.lives && !s.refuses
	free := !present || s.grouped && !s.lives || !s.grouped && s.expired
	if behind || !joins && !free {
		return a, errHeld
	}
	a.before.expired = present && !joins
	if !joins {
		group = rowTerm(g)
	}
	if a.fence, err = drawFence(ctx, tx); err != nil {
		return a, err
	}
	return a, e.writeHolder(ctx, tx, g, group, a.fence, by)
}

// writeHolder makes the grant's term a holder of the lock. group is the term of the row.
func (e *sqliteEngine) writeHolder(ctx context.Context, tx *sql.Tx, g lock.Grant, group string, fence int64, by process) error {
	type statement struct {
		text string
		args []any
	}
	take := statement{e.db.SQL(`
		INSERT INTO int_lock AS l (lock_key, region, client_id, {cols})
		VALUES ($1, $2, $3, {vals $4})
		ON CONFLICT (lock_key, region) DO UPDATE SET client_id = excluded.client_id, {touch $4}`),
		[]any{g.Key, g.Region, group, g.TTL.Seconds()}}
	reap := statement{e.db.SQL(`
		DELETE FROM obs_hold AS h
		 WHERE lock_key = $1 AND region = $2 AND (group_term <> $3 OR NOT ` + liveHoldSQL + `)`), []any{g.Key, g.Region, group}}
	statements := []statement{take, reap}
	if g.Mode.Alone() {
		statements = append(statements, statement{e.db.SQL(describeSQL),
			[]any{g.Key, g.Region, g.Term, fence, g.Name, g.Node, g.Descriptor, g.TTL.Milliseconds(), by.boot, by.liveness, g.Metadata}})
	} else {
		statements = append(statements, statement{e.db.SQL(`
			INSERT INTO obs_lock AS o (lock_key, region, term, fence, name, node, descriptor, ttl_ms, acquired_at, boot_id, boot_term, liveness, metadata, group_term)
			VALUES ($1, $2, $3, $4, $5, '', '', $6, {now}, '', $3, '', '', $3)
			ON CONFLICT (lock_key, region) DO UPDATE
			   SET ttl_ms = CASE WHEN o.term = excluded.term THEN max(o.ttl_ms, excluded.ttl_ms) ELSE excluded.ttl_ms END,
			       term = excluded.term, fence = excluded.fence, name = excluded.name, node = '', descriptor = '', acquired_at = excluded.acquired_at,
			       boot_id = '', boot_term = excluded.boot_term, liveness = '', metadata = '', group_term = excluded.group_term`),
			[]any{g.Key, g.Region, group, fence, g.Name, g.TTL.Milliseconds()}},
			statement{e.db.SQL(`
			INSERT INTO obs_hold (lock_key, region, term, group_term, mode, fence, name, node, descriptor, metadata, ttl_ms, acquired_at, touched_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, {now}, {now})`),
				[]any{g.Key, g.Region, g.Term, group, modeOf(g), fence, g.Name, g.Node, g.Descriptor, g.Metadata, g.TTL.Milliseconds()}})
	}
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s.text, s.args...); err != nil {
			return err
		}
	}
	return e.come(ctx, tx, g)
}

func (e *sqliteEngine) renewHolds(ctx context.Context, grants []lock.Grant) (renewals []lock.Renewal, err error) {
	tx, err := e.db.Lease.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = sqldb.EndTx(tx, err) }()
	touch := e.db.SQL(`UPDATE int_lock SET created_date = {utc} WHERE lock_key = $1 AND region = $2`)
	for _, g := range grants {
		result, err := tx.ExecContext(ctx, e.db.SQL(guardHoldSQL), g.Key, g.Region, g.Term)
		if err != nil {
			return nil, err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return nil, err
		}
		if n == 1 {
			if _, err := tx.ExecContext(ctx, touch, g.Key, g.Region); err != nil {
				return nil, err
			}
		}
		renewals = append(renewals, renewal(n == 1, false))
	}
	return renewals, nil
}

func (e *sqliteEngine) releaseHold(ctx context.Context, g lock.Grant) (err error) {
	tx, err := e.db.Lease.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = sqldb.EndTx(tx, err) }()
	var held bool
	err = tx.QueryRowContext(ctx, e.db.SQL(`
		SELECT EXISTS (SELECT 1 FROM int_lock l JOIN obs_hold h ON h.lock_key = l.lock_key AND h.region = l.region AND h.group_term = l.client_id
		                WHERE l.lock_key = $1 AND l.region = $2 AND h.term = $3)`), g.Key, g.Region, g.Term).Scan(&held)
	if err != nil {
		return err
	}
	if !held {
		return lock.ErrLost
	}
	for _, text := range []string{
		reapSQL,
		`DELETE FROM int_lock AS l WHERE lock_key = $1 AND region = $2 AND ` + vacantSQL,
		`DELETE FROM obs_hold WHERE lock_key = $1 AND region = $2 AND term = $3`,
	} {
		if _, err := tx.ExecContext(ctx, e.db.SQL(text), g.Key, g.Region, g.Term); err != nil {
			return err
		}
	}
	return nil
}

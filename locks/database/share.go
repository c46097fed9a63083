package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// group is what a refused caller finds of a lock that several hold.
type group struct {
	// lives reports whether any holder lives, and refuses that one keeps the caller out:
	// node is its name then, left the time until its lease is over, and ahead reports
	// whether that is dated in the future.
	lives, refuses, ahead bool
	node                  string
	left                  time.Duration
}

// group looks at those who share the lock of the request; nil when nobody shares it.
func (p *Provider) group(ctx context.Context, r lock.Request) (*group, error) {
	var node, mode sql.NullString
	var touched, now time.Time
	var ttl sql.NullInt64
	err := p.db.Acquire.QueryRowContext(ctx, p.sql.SQL().Group, lockdb.RowKey(r.Key), r.Region, modeOf(lock.Grant{Request: r})).
		Scan(&node, &mode, sqldb.ScanTime(&touched), &ttl, sqldb.ScanTime(&now))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look who shares lock %s: %w", r.Key, err)
	case !ttl.Valid:
		return &group{}, nil
	}
	return &group{
		lives: true, refuses: lock.Mode(mode.String).Conflicts(r.Mode), ahead: touched.After(now),
		node: node.String, left: lockdb.LeftOf(time.Duration(ttl.Int64)*time.Millisecond, now.Sub(touched)),
	}, nil
}

// change runs the steps in a transaction, all of them or none, and tries again while another client has locked a
// row. Each try asks for the steps, since INT_LOCK may have become another table. The error is
// [lock.ErrLost] when one of them finds no row.
func (p *Provider) change(ctx context.Context, what string, steps func() []sqldb.Statement) error {
	err := sqldb.RetryLocked(ctx, func() error {
		err := p.db.InTx(ctx, what, func(tx *sql.Tx) error {
			for _, s := range steps() {
				if err := changeOne(ctx, tx, s.Text, s.Args...); err != nil {
					return err
				}
			}
			return nil
		})
		if sqldb.LockTimedOut(err) {
			return errors.Join(sqldb.ErrLocked, err)
		}
		return err
	})
	if errors.Is(err, sqldb.ErrLocked) {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return err
}

// Extend implements [lock.Extender]. A lease that one holds alone is renewed by its present
// TTL first, which also locks the row, and then dated for the new one.
func (p *Provider) Extend(ctx context.Context, g lock.Grant, ttl time.Duration) error {
	return p.change(ctx, fmt.Sprintf("extend lock %s", g.Key), func() []sqldb.Statement {
		if !g.Mode.Alone() {
			return p.extendHold(g, ttl)
		}
		longer := g
		longer.TTL = ttl
		touch, now := p.alone.GuardSQL(g)
		_, later := p.alone.GuardSQL(longer)
		return []sqldb.Statement{{Text: touch, Args: now}, {Text: touch, Args: later}, {Text: p.sql.SQL().Extend, Args: append(rowOf(g), ttl.Milliseconds())}}
	})
}

// extendHold extends a share. The row of INT_LOCK comes first, which keeps all others from
// changing who holds the lock.
func (p *Provider) extendHold(g lock.Grant, ttl time.Duration) []sqldb.Statement {
	text := p.sql.SQL()
	steps := []sqldb.Statement{{Text: text.ExtendRow, Args: append(rowOf(g), ttl.Seconds())}}
	if text.PinHold != "" {
		steps = append(steps, sqldb.Statement{Text: text.PinHold, Args: rowOf(g)})
	}
	return append(steps,
		sqldb.Statement{Text: text.ExtendGroup, Args: append(rowOf(g), ttl.Milliseconds())},
		sqldb.Statement{Text: text.ExtendHold, Args: append(rowOf(g), ttl.Milliseconds())})
}

// ReleaseAfter implements [lock.Delayer]: the lock goes to a term that nobody has, whose
// TTL is the time that is left. A row that another client has locked is tried again, as by
// Release.
func (p *Provider) ReleaseAfter(ctx context.Context, g lock.Grant, after time.Duration) error {
	term := uuid.NewString()
	return p.change(ctx, fmt.Sprintf("release lock %s in %s", g.Key, after), func() []sqldb.Statement {
		text := p.sql.SQL()
		if !g.Mode.Alone() {
			return append(p.extendHold(g, after), sqldb.Statement{Text: text.DelayGroup, Args: rowOf(g)}, sqldb.Statement{Text: text.DelayHold, Args: append(rowOf(g), term)})
		}
		touch, now := p.alone.GuardSQL(g)
		return []sqldb.Statement{
			{Text: touch, Args: now},
			{Text: text.Delay, Args: append(rowOf(g), after.Seconds(), term)},
			{Text: text.DelayLock, Args: append(rowOf(g), term, after.Milliseconds())},
		}
	})
}

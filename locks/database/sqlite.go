package database

import (
	"context"
	"database/sql"
	"errors"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// sqliteEngine runs transactions: SQLite has no statement that writes two tables.
type sqliteEngine Provider

func (e *sqliteEngine) acquireAlone(ctx context.Context, grants []lock.Grant) ([]acquired, error) {
	return e.acquireAll(ctx, grants)
}

// acquireAll takes the locks one after the other in one transaction.
func (e *sqliteEngine) acquireAll(ctx context.Context, grants []lock.Grant) (taken []acquired, err error) {
	tx, err := e.db.Acquire.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = sqldb.EndTx(tx, err) }()
	taken = make([]acquired, len(grants))
	for i, g := range grants {
		if taken[i], err = e.acquireIn(ctx, tx, g); errors.Is(err, sqldb.ErrHeld) {
			return nil, refusedError{i}
		} else if err != nil {
			return nil, err
		}
	}
	return taken, nil
}

func (e *sqliteEngine) acquireIn(ctx context.Context, tx *sql.Tx, g lock.Grant) (a acquired, err error) {
	var client sql.NullString
	var grouped, lives, refuses, expired, behind bool
	err = tx.QueryRowContext(ctx, e.sql.SQL().Standing, wantedArgs(g)...).
		Scan(&client, &grouped, &lives, &refuses, &expired, &behind, &a.released, &a.node)
	if err != nil {
		return a, err
	}
	joins := grouped && lives && !refuses
	free := !client.Valid || grouped && !lives || !grouped && expired
	if behind || !joins && !free {
		return a, sqldb.ErrHeld
	}
	a.expired = client.Valid && !joins
	group := client.String
	if !joins {
		group = rowTerm(g)
	}
	if a.fence, err = lockdb.DrawFence(ctx, tx); err != nil {
		return a, err
	}
	return a, e.writeHolder(ctx, tx, g, group, a.fence)
}

// writeHolder makes the grant's term a holder of the lock. group is the term of the row.
func (e *sqliteEngine) writeHolder(ctx context.Context, tx *sql.Tx, g lock.Grant, group string, fence int64) error {
	text, ttl := e.sql.SQL(), g.TTL.Milliseconds()
	statements := []sqldb.Statement{
		{Text: text.TakeRow, Args: []any{g.Key, g.Region, group, g.TTL.Seconds()}},
		{Text: text.ReapGroup, Args: []any{g.Key, g.Region, group}},
	}
	if g.Mode.Alone() {
		statements = append(statements,
			sqldb.Statement{Text: text.DescribeAlone, Args: []any{g.Key, g.Region, g.Term, fence, g.Name, g.Node, g.Descriptor, ttl, g.Metadata}})
	} else {
		statements = append(statements,
			sqldb.Statement{Text: text.DescribeGroup, Args: []any{g.Key, g.Region, group, fence, g.Name, ttl}},
			sqldb.Statement{Text: text.AddHold, Args: []any{g.Key, g.Region, g.Term, group, modeOf(g), fence, g.Name, g.Node, g.Descriptor, g.Metadata, ttl}})
	}
	if g.Place.ID != "" {
		statements = append(statements, sqldb.Statement{Text: text.Come, Args: []any{g.Place.ID}})
	}
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s.Text, s.Args...); err != nil {
			return err
		}
	}
	return nil
}

func (e *sqliteEngine) wait(ctx context.Context, wanted []lock.Grant) (turns []lock.Turn, err error) {
	tx, err := e.db.Acquire.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = sqldb.EndTx(tx, err) }()
	text, given := e.sql.SQL(), make(map[string]int64)
	for _, g := range wanted {
		if g.Place.Ticket == 0 {
			g.Place.Ticket = given[g.Place.ID]
		}
		if g.Place.Ticket == 0 {
			if g.Place.Ticket, err = lockdb.DrawFence(ctx, tx); err != nil {
				return nil, err
			}
			given[g.Place.ID] = g.Place.Ticket
		}
		if _, err := tx.ExecContext(ctx, text.NoteOne, g.Place.ID, g.Key, g.Region, modeOf(g), g.Place.Priority, g.Place.Ticket, g.Node); err != nil {
			return nil, err
		}
		turn := lock.Turn{Ticket: g.Place.Ticket}
		if err := tx.QueryRowContext(ctx, text.Wait, wantedArgs(g)...).Scan(&turn.Come); err != nil {
			return nil, err
		}
		turns = append(turns, turn)
	}
	return turns, nil
}

func (e *sqliteEngine) renewHolds(ctx context.Context, grants []lock.Grant) (renewals []lock.Renewal, err error) {
	tx, err := e.db.Lease.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = sqldb.EndTx(tx, err) }()
	for _, g := range grants {
		err := changeOne(ctx, tx, e.sql.SQL().GuardHold, rowOf(g)...)
		switch {
		case errors.Is(err, lock.ErrLost):
			renewals = append(renewals, lock.Lost)
			continue
		case err != nil:
			return nil, err
		}
		if _, err := tx.ExecContext(ctx, e.sql.SQL().Prolong, g.Key, g.Region); err != nil {
			return nil, err
		}
		renewals = append(renewals, lock.Renewed)
	}
	return renewals, nil
}

func (e *sqliteEngine) releaseHold(ctx context.Context, g lock.Grant) (err error) {
	tx, err := e.db.Lease.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = sqldb.EndTx(tx, err) }()
	text, held := e.sql.SQL(), false
	if err := tx.QueryRowContext(ctx, text.Shares, rowOf(g)...).Scan(&held); err != nil {
		return err
	}
	if !held {
		return lock.ErrLost
	}
	for _, text := range []string{text.Reap, text.EndGroup, text.EndHold} {
		if _, err := tx.ExecContext(ctx, text, rowOf(g)...); err != nil {
			return err
		}
	}
	return nil
}

// changeOne runs a statement that changes the row of a term. The error is [lock.ErrLost]
// when there is none.
func changeOne(ctx context.Context, tx *sql.Tx, text string, args ...any) error {
	n, err := sqldb.Affected(tx.ExecContext(ctx, text, args...))
	if err == nil && n == 0 {
		err = lock.ErrLost
	}
	return err
}

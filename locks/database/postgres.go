package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// postgresEngine sends one or several statements in one round trip.
type postgresEngine Provider

func (e *postgresEngine) acquireAlone(ctx context.Context, grants []lock.Grant) ([]acquired, error) {
	g, a := grants[0], acquired{}
	err := e.db.Acquire.QueryRowContext(ctx, e.sql.SQL().Acquire,
		g.Key, g.Region, g.Term, g.TTL.Seconds(), g.Name, g.Node, g.Descriptor, g.Metadata,
		g.Place.ID, g.Place.Priority, ticketOf(g), holdsOf(g)).Scan(a.scan()...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, sqldb.ErrHeld
	case sqldb.LockTimedOut(err):
		return nil, sqldb.ErrLocked
	}
	return []acquired{a}, err
}

// claimAndGrant are Claim and Grant for these grants.
func (e *postgresEngine) claimAndGrant(grants []lock.Grant) []sqldb.Statement {
	claim := []any{
		fn.Each(grants, func(g lock.Grant) string { return g.Key }),
		fn.Each(grants, func(g lock.Grant) string { return g.Region }),
		fn.Each(grants, rowTerm),
		fn.Each(grants, seconds),
	}
	grant := append(slices.Clone(claim),
		fn.Each(grants, func(g lock.Grant) string { return g.Term }),
		fn.Each(grants, modeOf),
		fn.Each(grants, func(g lock.Grant) string { return g.Name }),
		fn.Each(grants, func(g lock.Grant) string { return g.Node }),
		fn.Each(grants, func(g lock.Grant) string { return g.Descriptor }),
		fn.Each(grants, func(g lock.Grant) string { return g.Metadata }),
		fn.Each(grants, placeOf), fn.Each(grants, priorityOf), fn.Each(grants, ticketOf), fn.Each(grants, holdsOf))
	text := e.sql.SQL()
	return []sqldb.Statement{{Text: text.Claim, Args: claim}, {Text: text.Grant, Args: grant}}
}

func (e *postgresEngine) acquireAll(ctx context.Context, grants []lock.Grant) ([]acquired, error) {
	taken := make([]acquired, 0, len(grants))
	refused := -1
	err := e.db.Pipeline(ctx, e.claimAndGrant(grants), func(scan func(...any) error) error {
		var a acquired
		var ok bool
		err := scan(append([]any{&ok}, a.scan()...)...)
		if !ok && refused < 0 {
			refused = len(taken)
		}
		taken = append(taken, a)
		return err
	})
	switch {
	case sqldb.LockTimedOut(err):
		return nil, sqldb.ErrLocked
	case err != nil:
		return nil, err
	case refused >= 0:
		return nil, refusedError{refused}
	case len(taken) != len(grants):
		return nil, fmt.Errorf("%d of %d locks answered", len(taken), len(grants))
	}
	return taken, nil
}

func (e *postgresEngine) acquireIn(ctx context.Context, tx *sql.Tx, g lock.Grant) (a acquired, err error) {
	statements := e.claimAndGrant([]lock.Grant{g})
	claim, grant := statements[0], statements[1]
	if _, err := tx.ExecContext(ctx, claim.Text, claim.Args...); err != nil {
		return a, err
	}
	var ok bool
	err = tx.QueryRowContext(ctx, grant.Text, grant.Args...).Scan(append([]any{&ok}, a.scan()...)...)
	if err == nil && !ok {
		err = sqldb.ErrHeld
	}
	return a, err
}

func (e *postgresEngine) wait(ctx context.Context, wanted []lock.Grant) ([]lock.Turn, error) {
	ids, modes, priorities := fn.Each(wanted, placeOf), fn.Each(wanted, modeOf), fn.Each(wanted, priorityOf)
	keys := fn.Each(wanted, func(g lock.Grant) string { return g.Key })
	regions := fn.Each(wanted, func(g lock.Grant) string { return g.Region })
	text := e.sql.SQL()
	turns := make([]lock.Turn, 0, len(wanted))
	err := e.db.Pipeline(ctx, []sqldb.Statement{
		{Text: text.Note, Args: []any{
			ids, keys, regions, modes, priorities,
			fn.Each(wanted, func(g lock.Grant) int64 { return g.Place.Ticket }),
			fn.Each(wanted, func(g lock.Grant) string { return g.Node }),
		}},
		{Text: text.Wait, Args: []any{ids, keys, regions, modes, fn.Each(wanted, seconds), priorities, fn.Each(wanted, holdsOf)}},
	}, func(scan func(...any) error) error {
		var turn lock.Turn
		err := scan(&turn.Ticket, &turn.Come)
		turns = append(turns, turn)
		return err
	})
	if err == nil && len(turns) != len(wanted) {
		err = fmt.Errorf("%d of %d answered", len(turns), len(wanted))
	}
	return turns, err
}

func (e *postgresEngine) renewHolds(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
	return lockdb.Renewals(ctx, e.db, len(grants), e.sql.SQL().RenewHolds,
		fn.Each(grants, func(g lock.Grant) string { return g.Key }),
		fn.Each(grants, func(g lock.Grant) string { return g.Region }),
		fn.Each(grants, func(g lock.Grant) string { return g.Term }))
}

func (e *postgresEngine) releaseHold(ctx context.Context, g lock.Grant) error {
	held := false
	text, row := e.sql.SQL(), rowOf(g)
	err := e.db.Pipeline(ctx, []sqldb.Statement{
		{Text: text.LockRow, Args: row[:2]}, {Text: text.PinHold, Args: row}, {Text: text.Reap, Args: row}, {Text: text.ReleaseHold, Args: row},
	}, func(scan func(...any) error) error { return scan(&held) })
	switch {
	case sqldb.LockTimedOut(err):
		return errors.Join(sqldb.ErrLocked, err)
	case err != nil:
		return err
	case !held:
		return lock.ErrLost
	}
	return nil
}

func placeOf(g lock.Grant) string { return g.Place.ID }

func priorityOf(g lock.Grant) int32 { return int32(g.Place.Priority) } //nolint:gosec // The manager bounds it.

func seconds(g lock.Grant) float64 { return g.TTL.Seconds() }

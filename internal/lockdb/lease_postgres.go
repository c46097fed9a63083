package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

func (e *postgresEngine) acquire(ctx context.Context, g lock.Grant, by process) (fence int64, before previousHolder, err error) {
	err = e.db.Acquire.QueryRowContext(ctx, e.sql.SQL().Lease.Acquire,
		g.Key, g.Region, g.Term, g.TTL.Seconds(), g.Name, g.Node, g.Descriptor, by.boot, by.liveness, g.Metadata).
		Scan(&fence, &before.expired, &before.liveness, &before.node)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, previousHolder{}, sqldb.ErrHeld
	case sqldb.LockTimedOut(err):
		return 0, previousHolder{}, sqldb.ErrLocked
	}
	return fence, before, err
}

func (e *postgresEngine) renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error) {
	n := len(grants)
	keys, regions, terms, ttls := make([]string, n), make([]string, n), make([]string, n), make([]float64, n)
	for i, g := range grants {
		keys[i], regions[i], terms[i], ttls[i] = g.Key, g.Region, g.Term, g.TTL.Seconds()
	}
	return Renewals(ctx, e.db, n, e.sql.SQL().Lease.Renew, keys, regions, terms, ttls)
}

// Renewals runs a statement of PostgreSQL that renews that many leases, and reads its answers.
func Renewals(ctx context.Context, db *sqldb.DB, leases int, text string, args ...any) ([]lock.Renewal, error) {
	renewals := make([]lock.Renewal, 0, leases)
	err := sqldb.Each(ctx, db.Lease, text, func(scan sqldb.Scan) error {
		var renewed, present bool
		err := scan(&renewed, &present)
		renewals = append(renewals, renewal(renewed, present))
		return err
	}, args...)
	if err != nil {
		return nil, err
	}
	if len(renewals) != leases {
		return nil, fmt.Errorf("%d of %d leases answered", len(renewals), leases)
	}
	return renewals, nil
}

// renewal reads the two facts of a row: a lease that is present and alive but
// was not renewed was locked by another client.
func renewal(renewed, present bool) lock.Renewal {
	switch {
	case renewed:
		return lock.Renewed
	case present:
		return lock.Unknown
	}
	return lock.Lost
}

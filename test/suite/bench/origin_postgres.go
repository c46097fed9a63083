package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/source/postgres"
	"github.com/observerd/observerd/test/kit/testbed"
)

// postgresOrigin is a database of the cluster.
type postgresOrigin struct{ where string }

func openPostgres(ctx context.Context, s *suite) (origin, error) {
	where, err := s.cluster.database(ctx, "origin")
	return postgresOrigin{where}, err
}

func (postgresOrigin) kind() string  { return kindPostgres }
func (postgresOrigin) name() string  { return "PostgreSQL" }
func (o postgresOrigin) url() string { return o.where }
func (postgresOrigin) close()        {}

func (o postgresOrigin) fill(ctx context.Context, sizes []int) error {
	for _, rows := range sizes {
		table := tableOf(rows)
		err := testbed.Execute(ctx, o.where, "CREATE TABLE "+table+ordersColumns, "INSERT INTO "+table+ordersOf(rows),
			"CREATE INDEX "+table+"_updated ON "+table+" (updated_at, id)", "VACUUM (FREEZE, ANALYZE) "+table)
		if err != nil {
			return fmt.Errorf("fill %s: %w", table, err)
		}
	}
	return nil
}

func (o postgresOrigin) counted(ctx context.Context) (counted, error) {
	return countRequests(ctx, o.where)
}

func openPostgresSource(where string) (pollable, error) {
	return postgres.Open(postgres.Options{URL: where})
}

// loopPostgres is the bare loop over pgx.
func loopPostgres(ctx context.Context, where, table string, watch *stopwatch) (n int64, err error) {
	conn, err := pgx.Connect(ctx, where)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	watch.start()
	defer watch.stop()
	rows, err := conn.Query(ctx, fmt.Sprintf(bareOrdersSQL, "total::text", table))
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var o bareOrder
	targets := o.targets()
	for ; rows.Next(); n++ {
		if err := rows.Scan(targets...); err != nil {
			return n, err
		}
	}
	return n, rows.Err()
}

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib" // It is the driver of the leases, too.

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/test/kit/testbed"
)

// bareSQL makes a table like INT_LOCK, so that the two sides do not share an
// index.
const bareSQL = `CREATE TABLE bare_lock (LIKE int_lock INCLUDING ALL)`

const (
	insertSQL = `
		INSERT INTO bare_lock (lock_key, region, client_id, created_date)
		VALUES ($1, 'DEFAULT', $2, clock_timestamp() AT TIME ZONE 'UTC')`
	deleteSQL = `
		DELETE FROM bare_lock
		 WHERE lock_key = $1 AND region = 'DEFAULT' AND client_id = $2`
)

// lockers are the connections of both sides, each in a pool of its own, as
// nodes have them. Both sides use database/sql over pgx, whose statements are
// prepared once per connection.
type lockers struct {
	plain []*sql.DB
	nodes []*lockdb.DB
}

func openLockers(ctx context.Context, where string) (*lockers, error) {
	l := &lockers{}
	if err := testbed.Execute(ctx, where, bareSQL); err != nil {
		return nil, err
	}
	for range crowd {
		plain, err := sql.Open("pgx", where)
		if err != nil {
			return nil, errors.Join(err, l.closeAll())
		}
		plain.SetMaxIdleConns(2)
		l.plain = append(l.plain, plain)
		node, err := openStore(ctx, where)
		if err != nil {
			return nil, errors.Join(err, l.closeAll())
		}
		l.nodes = append(l.nodes, node)
	}
	return l, nil
}

func (l *lockers) close() { _ = l.closeAll() } // Nothing is left to lose.

func (l *lockers) closeAll() error {
	var errs []error
	for _, db := range l.plain {
		errs = append(errs, db.Close())
	}
	for _, db := range l.nodes {
		errs = append(errs, db.Close())
	}
	return errors.Join(errs...)
}

func key(i int) string { return fmt.Sprintf("bench-lock-%d", i) }

// bare is the INSERT and the DELETE alone, on keys of their own.
func (l *lockers) bare(n int) side {
	s := make(side, n)
	for i := range s {
		s[i] = bareCycle(l.plain[i], insertSQL, key(i))
	}
	return s
}

// bareContenders all want the same key.
func (l *lockers) bareContenders(n int) side {
	s := make(side, n)
	for i := range s {
		s[i] = bareCycle(l.plain[i], insertSQL+` ON CONFLICT DO NOTHING`, key(0))
	}
	return s
}

func bareCycle(db *sql.DB, insert, key string) cycle {
	return func(ctx context.Context) (bool, error) {
		term := uuid.NewString()
		result, err := db.ExecContext(ctx, insert, key, term)
		if err != nil {
			return false, err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return false, err
		}
		_, err = db.ExecContext(ctx, deleteSQL, key, term)
		return true, err
	}
}

// leases are ours, on keys of their own.
func (l *lockers) leases(n int) side {
	s := make(side, n)
	for i := range s {
		s[i] = leaseCycle(l.nodes[i].Leases(), key(i))
	}
	return s
}

// contenders all want the same key.
func (l *lockers) contenders(n int) side {
	s := make(side, n)
	for i := range s {
		s[i] = leaseCycle(l.nodes[i].Leases(), key(0))
	}
	return s
}

func leaseCycle(leases lock.Provider, key string) cycle {
	wanted := request(key)
	return func(ctx context.Context) (bool, error) {
		g, err := leases.Acquire(ctx, wanted)
		if errors.Is(err, lock.ErrHeld) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return true, leases.Release(ctx, g)
	}
}

package lockdb

import (
	"context"
	"database/sql"
	"errors"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// Settings returns a setting of a session of each pool.
func (db *DB) Settings(ctx context.Context, name string) (main, lease, acquire string, err error) {
	for pool, value := range map[*sql.DB]*string{db.db.Main: &main, db.db.Lease: &lease, db.db.Acquire: &acquire} {
		err = errors.Join(err, pool.QueryRowContext(ctx, `SELECT current_setting($1)`, name).Scan(value))
	}
	return main, lease, acquire, err
}

// Plans returns how often the main pool has planned this very statement anew, and how often it
// has taken a plan that was there. Both are 0 for one that is not prepared.
func (db *DB) Plans(ctx context.Context) (custom, generic int, err error) {
	err = db.db.Query(ctx, "look at plans", `
		SELECT coalesce(sum(custom_plans), 0), coalesce(sum(generic_plans), 0) FROM pg_prepared_statements WHERE statement LIKE $1`,
		func(scan sqldb.Scan) error { return scan(&custom, &generic) }, "%sum(custom_plans)%")
	return custom, generic, err
}

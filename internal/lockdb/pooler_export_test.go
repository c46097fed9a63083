package lockdb

import (
	"context"
	"database/sql"
	"errors"
)

// Settings returns a setting of a session of each pool.
func (db *DB) Settings(ctx context.Context, name string) (main, lease, acquire string, err error) {
	for pool, value := range map[*sql.DB]*string{db.db.Main: &main, db.db.Lease: &lease, db.db.Acquire: &acquire} {
		err = errors.Join(err, pool.QueryRowContext(ctx, `SELECT current_setting($1)`, name).Scan(value))
	}
	return main, lease, acquire, err
}

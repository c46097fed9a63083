package springtest

import (
	"context"
	"database/sql"
	"fmt"
)

// Repository is a DefaultLockRepository. It is safe for concurrent use.
type Repository struct {
	options Options
	sql     statements
	pool    *sql.DB
}

// NewRepository connects to nothing yet. Close it with [Repository.Disconnect].
func NewRepository(o Options) (*Repository, error) {
	o.setDefaults()
	pool, err := openPool(o.URL, o.Connections)
	if err != nil {
		return nil, fmt.Errorf("open the lock repository: %w", err)
	}
	return &Repository{options: o, sql: o.Generation.statements(), pool: pool}, nil
}

// Disconnect closes the connections and leaves all rows, as the death of an
// application does.
func (r *Repository) Disconnect() error { return r.pool.Close() }

// ID is the client id.
func (r *Repository) ID() string { return r.options.ID }

// Start does the check of the table at the start of an application.
func (r *Repository) Start(ctx context.Context) error {
	_, err := r.once(ctx, "BEGIN", countAllSQL)
	return err
}

// Acquire takes the lock of that key, or takes it again: whoever has the same
// client id has it too. An error of data, such as a value that is missing or
// too long, looks like a lock that another holds.
func (r *Repository) Acquire(ctx context.Context, key string) (acquired bool, err error) {
	err = r.tx(ctx, r.sql.beginAcquire, func(s session) error {
		n, err := s.exec(r.sql.update, r.updateParams(key)...)
		if acquired = n > 0; acquired || err != nil {
			return err
		}
		n, err = s.exec(r.sql.insert, r.insertParams(key)...)
		acquired = n > 0
		if r.swallows(err) {
			return nil
		}
		return err
	})
	return acquired && err == nil, err
}

func (r *Repository) updateParams(key string) []param {
	now := r.options.Clock()
	id, region := text(r.options.ID), text(r.options.Region)
	if r.options.Generation == Spring7 {
		return []param{id, r.stamp(now.Add(r.options.TTL)), region, text(key), id, r.stamp(now)}
	}
	return []param{id, r.stamp(now), region, text(key), id, r.stamp(now.Add(-r.options.TTL))}
}

func (r *Repository) insertParams(key string) []param {
	now := r.options.Clock()
	params := []param{text(r.options.Region), text(key), text(r.options.ID), r.stamp(now)}
	if r.options.Generation == Spring7 {
		params = append(params, r.stamp(now.Add(r.options.TTL)))
	}
	return params
}

// Renew reports whether the lock is still there; it revives an expired one.
func (r *Repository) Renew(ctx context.Context, key string) (bool, error) {
	until := r.options.Clock()
	if r.options.Generation == Spring7 {
		until = until.Add(r.options.TTL)
	}
	n, err := r.once(ctx, "BEGIN", r.sql.renew, r.stamp(until), text(r.options.Region), text(key), text(r.options.ID))
	return n == 1, err
}

// IsAcquired reports whether this application holds the lock.
func (r *Repository) IsAcquired(ctx context.Context, key string) (bool, error) {
	n, err := r.once(ctx, "BEGIN READ ONLY", r.sql.count, text(r.options.Region), text(key), text(r.options.ID), r.expiry())
	return n == 1, err
}

// Delete gives the lock back; false when it was not there any more.
func (r *Repository) Delete(ctx context.Context, key string) (bool, error) {
	n, err := r.once(ctx, "BEGIN", deleteSQL, text(r.options.Region), text(key), text(r.options.ID))
	return n == 1, err
}

// DeleteExpired removes all locks of the region that have expired by this
// application's clock and, but for Spring 7, by its TTL.
func (r *Repository) DeleteExpired(ctx context.Context) (int64, error) {
	return r.once(ctx, "BEGIN", r.sql.deleteExpired, text(r.options.Region), r.expiry())
}

// Close gives all locks of this application back, as a graceful stop does.
func (r *Repository) Close(ctx context.Context) error {
	_, err := r.once(ctx, "BEGIN", deleteAllSQL, text(r.options.Region), text(r.options.ID))
	return err
}

// expiry is what the column that decides is compared with.
func (r *Repository) expiry() param {
	now := r.options.Clock()
	if r.options.Generation == Spring7 {
		return r.stamp(now)
	}
	return r.stamp(now.Add(-r.options.TTL))
}

// once runs one statement in a transaction.
func (r *Repository) once(ctx context.Context, begin, statement string, params ...param) (n int64, err error) {
	err = r.tx(ctx, begin, func(s session) (err error) {
		n, err = s.exec(statement, params...)
		return err
	})
	return n, err
}

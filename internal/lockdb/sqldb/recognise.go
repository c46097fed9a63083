package sqldb

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
)

// lockTableLook is when INT_LOCK was looked at.
type lockTableLook struct {
	// looked is when the catalogue was last found in order, in Unix nanoseconds;
	// 0 when it was not. looking lets those wait who come during a look.
	looked  atomic.Int64
	looking singleflight.Group
}

// relook is how long a look at the catalogue counts. A column that may be NULL,
// or has a default, can be added without any statement of ours failing.
const relook = 10 * time.Second

// Fits looks at the catalogue again when the last look is old. The error is
// [ErrMixedTable] when INT_LOCK has become a table that cannot be shared.
func (db *DB) Fits(ctx context.Context) error {
	if time.Duration(time.Now().UnixNano()-db.table.looked.Load()).Abs() < relook {
		return nil
	}
	return db.Recognise(ctx)
}

// Recognise looks in the catalogue which generation of Spring's table INT_LOCK is.
// The error is [ErrMixedTable] for one that nodes of both generations could use
// without noticing each other. Until a look has found the table in order, no caller
// goes on by an earlier one. A look that ended with the context of another caller has
// found nothing.
func (db *DB) Recognise(ctx context.Context) error {
	if db.readLockTable == nil {
		return nil
	}
	for {
		own := false
		_, err, _ := db.table.looking.Do("", func() (any, error) {
			own = true
			err := db.recognise(ctx)
			if err != nil {
				db.table.looked.Store(0)
			}
			return nil, err
		})
		interrupted := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
		if own || !interrupted || ctx.Err() != nil {
			return err
		}
	}
}

func (db *DB) recognise(ctx context.Context) error {
	t, err := db.readLockTable(ctx)
	if err != nil {
		return err
	}
	if err := t.check(); err != nil {
		return err
	}
	_, perRow := t.column("expired_after")
	db.renderings.change(func(r *Rendering) { r.perRow = perRow })
	db.table.looked.Store(time.Now().UnixNano())
	return nil
}

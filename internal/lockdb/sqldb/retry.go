package sqldb

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/observerd/observerd/internal/wait"
)

// conflicted reports whether the server undid a statement only because others
// were in its way: a failed serialization or a deadlock. Other users of the table may
// work under SERIALIZABLE and lock rows in any order.
func conflicted(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}

// RetryConflicts runs f again while it is conflicted, for a second or two. Nothing
// of an attempt that was is left.
func RetryConflicts(ctx context.Context, f func() error) error {
	for range 20 {
		if err := f(); !conflicted(err) {
			return err
		}
		if !wait.For(ctx, 5*time.Millisecond+rand.N(90*time.Millisecond)) {
			break
		}
	}
	return f()
}

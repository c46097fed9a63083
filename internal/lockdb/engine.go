package lockdb

import (
	"context"
	"database/sql"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/observer"
)

// engine is what PostgreSQL and SQLite cannot share.
type engine interface {
	// recognise looks at the catalogue for what the statements depend on.
	recognise(ctx context.Context) error
	// owner is the other role to which INT_LOCK belongs, and hangers are the code that
	// hangs on it; see WarnOfStrangers.
	owner(ctx context.Context) (string, error)
	hangers(ctx context.Context) (strangers, pathless []string, err error)
	// acquire tries once to take the lock under a new term; errHeld when
	// another has it.
	acquire(ctx context.Context, term string, r lock.Request) (fence int64, before predecessor, err error)
	renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error)
	// commit does all of the chunk or nothing. The error is lock.ErrFenced,
	// observer.ErrConflict, or one for which outcomeUnknown may hold.
	commit(ctx context.Context, g lock.Grant, ch *observer.Chunk) error
	// lookUpSQL finds what was observed of the keys in keyList, $2.
	lookUpSQL() string
	keyList(keys []string) (any, error)
	// buriedSQL finds the poison rows of stream $1 whose digests, in hexadecimal,
	// are in keyList, $2; and which of them were noted in the last $3 seconds.
	buriedSQL() string
	// rename gives those keys of a stream that are on a page others.
	rename(ctx context.Context, tx *sql.Tx, stream string, p page, from, to []string) error
	// noteStream notes an observer's turn and adds it to the history of polls,
	// both or, when the lease has ended, neither: lock.ErrFenced.
	noteStream(ctx context.Context, note, poll []any) error
}

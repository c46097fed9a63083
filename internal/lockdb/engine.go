package lockdb

import (
	"context"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/liveness"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
)

// engine has the steps that PostgreSQL and SQLite cannot share.
type engine interface {
	// acquire tries once to take the lock under the term of the grant; the error is
	// [sqldb.ErrHeld] when another has it.
	acquire(ctx context.Context, g lock.Grant, by process) (fence int64, before previousHolder, err error)
	renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error)
	// commit does all of the chunk or nothing. The error is lock.ErrFenced,
	// observer.ErrConflict, or one for which sqldb.OutcomeUnknown may hold.
	commit(ctx context.Context, g lock.Grant, ch *observer.Chunk) error
}

// previousHolder is the holder that an acquisition found in the place of its own rows, before
// the statement or the transaction. On PostgreSQL the rows may have changed since, and then a
// takeover goes unnoticed, or is logged twice.
type previousHolder struct {
	// expired says that a row stood in INT_LOCK whose lease had ended.
	expired bool
	// liveness is empty where nobody sees whether the holder lives, node where it is not ours.
	liveness, node string
}

// rule returns by which rule the lease was taken over. It is empty when the lock was free.
func (p previousHolder) rule() string {
	switch {
	case p.expired:
		return RuleTTL
	case p.liveness == liveness.FoundDead:
		return liveness.RuleSessionGone
	}
	return ""
}

// process is the process that acquires: its boot id, and how others see whether it lives.
type process struct{ boot, liveness string }

// postgresEngine holds the statements of PostgreSQL.
type postgresEngine struct {
	db  *sqldb.DB
	sql *sqldb.Statements[partSQL]
	// stalled is the age from which a COPY counts as stalled. ended notes how many
	// stalled sessions were ended.
	stalled time.Duration
	ended   func(sessions int)
}

// sqliteEngine holds the transactions of SQLite, which has no statement that
// writes two tables.
type sqliteEngine struct {
	db  *sqldb.DB
	sql *sqldb.Statements[partSQL]
}

package lockdb

import (
	"context"
	"database/sql"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
)

// engine has the statements that PostgreSQL and SQLite cannot share.
type engine interface {
	// acquire tries once to take the lock under the term of the grant; errHeld when
	// another has it.
	acquire(ctx context.Context, g lock.Grant, by process) (fence int64, before previousHolder, err error)
	// acquireAll takes all locks or none, in any mode. The error is a refusedError when
	// another has one of them.
	acquireAll(ctx context.Context, grants []lock.Grant, by process) ([]acquired, error)
	// acquireOne takes one lock, in any mode, in a transaction in which its row was locked.
	// The error is errHeld when another has it.
	acquireOne(ctx context.Context, tx *sql.Tx, g lock.Grant, by process) (acquired, error)
	// wait notes those who wait, and says whose turn has come.
	wait(ctx context.Context, wanted []lock.Grant) ([]lock.Turn, error)
	renew(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error)
	// renewHolds renews locks that are shared, and releaseHold gives one back: errLocked
	// when another client has locked its row, lock.ErrLost when the term held it no more.
	renewHolds(ctx context.Context, grants []lock.Grant) ([]lock.Renewal, error)
	releaseHold(ctx context.Context, g lock.Grant) error
	// commit does all of the chunk or nothing. The error is lock.ErrFenced,
	// observer.ErrConflict, or one for which sqldb.OutcomeUnknown may hold.
	commit(ctx context.Context, g lock.Grant, ch *observer.Chunk) error
	// lookUpSQL finds the observed rows of the keys in a list, $2.
	lookUpSQL() string
	// buriedSQL finds the poison rows of stream $1 whose digests, in hexadecimal,
	// are in a list, $2; and which of them were noted in the last $3 seconds.
	buriedSQL() string
	// noteStream notes an observer's turn and adds it to the history of polls,
	// both or, when the lease has ended, neither: lock.ErrFenced.
	noteStream(ctx context.Context, note, poll []any) error
}

// process is the process that acquires: its boot id, and how others see whether it lives.
type process struct{ boot, liveness string }

// postgresEngine holds the statements of PostgreSQL.
type postgresEngine struct {
	db *sqldb.DB
	// stalled is the age from which a COPY counts as stalled. ended notes how many
	// stalled sessions were ended.
	stalled time.Duration
	ended   func(sessions int)
}

// sqliteEngine holds the transactions of SQLite, which has no statement that
// writes two tables.
type sqliteEngine struct{ db *sqldb.DB }

package lockdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// DefaultStalledCopy is the default of [Options].StalledCopy. A chunk is at
// most some megabytes; a copy of one that has lasted so long is not coming
// to an end.
const DefaultStalledCopy = 15 * time.Second

// unblocked runs f, and once more if it met a lock that a stalled session held and no longer
// holds: one of ours whose client has stopped in the middle of a COPY. The server never ends
// it: while it waits for the rest of the rows it heeds neither statement_timeout nor
// idle_in_transaction_session_timeout, and the kernel of a host whose process is stopped keeps
// the connection alive. What the ended session had written is undone, and its client, should
// it wake, finds its commit not done.
func (e *postgresEngine) unblocked(ctx context.Context, f func() error) error {
	err := f()
	if !sqldb.LockTimedOut(err) {
		return err
	}
	var ended int
	sweep := e.db.Lease.QueryRowContext(ctx, e.sql.SQL().Commit.EndStalled, e.stalled.Seconds(), e.db.TablePrefix()).Scan(&ended)
	if sweep != nil {
		return errors.Join(err, fmt.Errorf("look for stalled sessions: %w", sweep))
	}
	if ended == 0 {
		return err
	}
	e.ended(ended)
	return f()
}

// endedSessions notes that stalled sessions were ended.
func (db *DB) endedSessions(sessions int) {
	db.metrics.endedSessions.Add(float64(sessions))
	db.log.Warn("Ended sessions of a node that has stopped in the middle of a commit", "sessions", sessions)
}

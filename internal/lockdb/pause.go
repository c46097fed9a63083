package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

// pausedSQL reports whether the stream of a row of obs_cursor, c, is paused: a pause with
// an end is over at that time by the database's clock, whether or not a node has cleared
// the column since. Commits look at the column alone, which [endPauses] clears before a
// poll.
const pausedSQL = `(c.paused AND (c.paused_until IS NULL OR c.paused_until > {now}))`

// PauseOptions say for how long a stream is paused, and why.
type PauseOptions struct {
	// For is the time after which it goes on by itself; 0 is never.
	For time.Duration
	// Reason is for people, and may be empty.
	Reason string
}

// detail is the text for the audit table.
func (o PauseOptions) detail() string {
	if o.For == 0 {
		return o.Reason
	}
	return joined("for "+o.For.String(), o.Reason)
}

// joined adds a reason to what was done.
func joined(done, reason string) string {
	switch {
	case done == "":
		return reason
	case reason == "":
		return done
	}
	return done + ": " + reason
}

const pauseSQL = `
INSERT INTO obs_cursor AS c (stream, paused, paused_at, paused_until, paused_by, pause_reason)
VALUES ($1, TRUE, {now}, CASE WHEN CAST($2 AS DOUBLE PRECISION) > 0 THEN {in $2} END, $3, $4)
ON CONFLICT (stream) DO UPDATE
   SET paused = TRUE, version = c.version + 1, paused_at = CASE WHEN c.paused THEN c.paused_at ELSE excluded.paused_at END,
       paused_until = excluded.paused_until, paused_by = excluded.paused_by, pause_reason = excluded.pause_reason
 WHERE NOT c.paused OR c.paused_until IS NOT NULL AND (excluded.paused_until IS NULL OR excluded.paused_until > c.paused_until)`

// Pause stops the polls of a stream on every node, until its time is over or
// [Operations.Resume]. A poll that runs is refused its next commit. A stream that was never
// polled can be paused too. A pause of before is made longer, and never shorter: it is
// somebody else's. Pause reports false when that one lasts as long.
func (t *Operations) Pause(ctx context.Context, stream, actor string, o PauseOptions) (changed bool, err error) {
	list, err := t.db.List([]string{stream})
	if err != nil {
		return false, err
	}
	err = t.db.InTx(ctx, "pause "+stream, func(tx *sql.Tx) error {
		if err := endPauses(ctx, t.db, tx, actor, list); err != nil {
			return err
		}
		n, err := affected(tx.ExecContext(ctx, t.db.SQL(pauseSQL), stream, o.For.Seconds(), sqldb.Storable(actor), sqldb.Storable(o.Reason)))
		if changed = n > 0; err != nil || !changed {
			return err
		}
		return audit(ctx, t.db, tx, Act{Actor: actor, Action: "pause", Subject: stream, Detail: o.detail()})
	})
	return changed && err == nil, err
}

// ResumeOptions say what is resumed beside the polls of a stream, and why.
type ResumeOptions struct {
	// Account is the account of the stream's source, whose refusals are forgotten: every
	// node may try the secret that it has. Empty for none.
	Account string
	// Reason is for people, and may be empty.
	Reason string
}

// Resume lets a paused stream be polled again, from its next turn on, and ends
// a backoff. It reports false when there was nothing to end.
func (t *Operations) Resume(ctx context.Context, stream, actor string, o ResumeOptions) (changed bool, err error) {
	err = t.db.InTx(ctx, "resume "+stream, func(tx *sql.Tx) error {
		ended, err := affected(tx.ExecContext(ctx, t.db.SQL(`
			UPDATE obs_cursor SET paused = FALSE, failures = 0, retry_at = NULL WHERE stream = $1 AND (paused OR failures > 0)`), stream))
		if err != nil {
			return err
		}
		forgotten, err := affected(tx.ExecContext(ctx, t.db.SQL(`DELETE FROM obs_account WHERE account = $1`), o.Account))
		if changed = ended+forgotten > 0; err != nil || !changed {
			return err
		}
		act := Act{Actor: actor, Action: "resume", Subject: stream, Detail: o.Reason}
		if forgotten > 0 {
			act.Detail = joined("the refused account "+o.Account+" may be tried again", o.Reason)
		}
		return audit(ctx, t.db, tx, act)
	})
	return changed && err == nil, err
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// endPauses clears those pauses of the streams in a list that are over, and notes it. The
// streams have gone on by the database's clock, whichever process notices it.
func endPauses(ctx context.Context, db *sqldb.DB, tx *sql.Tx, actor string, streams any) error {
	rows, err := tx.QueryContext(ctx, db.SQL(`
		UPDATE obs_cursor SET paused = FALSE WHERE stream {among $1} AND paused AND paused_until <= {now}
		RETURNING stream, paused_by, paused_until`), streams)
	if err != nil {
		return err
	}
	var over []Act
	for rows.Next() {
		act := Act{Actor: actor, Action: "resume"}
		var by string
		var until time.Time
		if err := rows.Scan(&act.Subject, &by, sqldb.ScanTime(&until)); err != nil {
			return fmt.Errorf("read pauses that are over: %w", joinClose(err, rows))
		}
		act.Detail = fmt.Sprintf("the pause of %s was until %s", by, until.Format(time.RFC3339))
		over = append(over, act)
	}
	if err := joinClose(rows.Err(), rows); err != nil {
		return err
	}
	for _, act := range over {
		if err := audit(ctx, db, tx, act); err != nil {
			return err
		}
	}
	return nil
}

func joinClose(err error, rows *sql.Rows) error { return errors.Join(err, rows.Close()) }

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

// Pause stops the polls of a stream on every node, until its time is over or
// [Operations.Resume]; a time of 0 is never over. A poll that runs is refused its next commit. A stream that was never
// polled can be paused too. A pause of before is made longer, and never shorter: it is
// somebody else's. Pause reports false when that one lasts as long.
func (t *Operations) Pause(ctx context.Context, stream string, by By, lasts time.Duration) (changed bool, err error) {
	list, err := t.db.List([]string{stream})
	if err != nil {
		return false, err
	}
	err = t.db.InTx(ctx, "pause "+stream, func(tx *sql.Tx) error {
		if err := endPauses(ctx, tx, t.sql.SQL(), by.Actor, list); err != nil {
			return err
		}
		n, err := affected(tx.ExecContext(ctx, t.sql.SQL().Pauses.Pause, stream, lasts.Seconds(), sqldb.Storable(by.Actor), sqldb.Storable(by.Reason)))
		if changed = n > 0; err != nil || !changed {
			return err
		}
		detail := ""
		if lasts > 0 {
			detail = "for " + lasts.String()
		}
		return audit(ctx, tx, t.sql.SQL(), Did(by, "pause", stream, detail))
	})
	return changed && err == nil, err
}

// Resume lets a paused stream be polled again, from its next turn on, and ends
// a backoff. The refusals of the account, which is that of its source, are forgotten: every
// node may try the secret that it has. An empty account is none. Resume reports false when
// there was nothing to end.
func (t *Operations) Resume(ctx context.Context, stream string, by By, account string) (changed bool, err error) {
	err = t.db.InTx(ctx, "resume "+stream, func(tx *sql.Tx) error {
		ended, err := affected(tx.ExecContext(ctx, t.sql.SQL().Pauses.Resume, stream))
		if err != nil {
			return err
		}
		forgotten, err := affected(tx.ExecContext(ctx, t.sql.SQL().Pauses.ForgetAccount, account))
		if changed = ended+forgotten > 0; err != nil || !changed {
			return err
		}
		detail := ""
		if forgotten > 0 {
			detail = "the refused account " + account + " may be tried again"
		}
		return audit(ctx, tx, t.sql.SQL(), Did(by, "resume", stream, detail))
	})
	return changed && err == nil, err
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// endPauses clears those pauses of the streams in a list that are over, by EndPauses, and notes it. The
// streams have gone on by the database's clock, whichever process notices it.
func endPauses(ctx context.Context, tx *sql.Tx, text *partSQL, actor string, streams any) error {
	rows, err := tx.QueryContext(ctx, text.Pauses.EndPauses, streams)
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
		if err := audit(ctx, tx, text, act); err != nil {
			return err
		}
	}
	return nil
}

func joinClose(err error, rows *sql.Rows) error { return errors.Join(err, rows.Close()) }

// pauseSQL are the statements that pause streams and let them go on; ForgetAccount is run
// by Resume.
type pauseSQL struct{ Pause, Resume, ForgetAccount, EndPauses string }

var pauseTexts = pauseSQL{
	Pause: `
INSERT INTO obs_cursor AS c (stream, paused, paused_at, paused_until, paused_by, pause_reason)
VALUES ($1, TRUE, {now}, CASE WHEN CAST($2 AS DOUBLE PRECISION) > 0 THEN {in $2} END, $3, $4)
ON CONFLICT (stream) DO UPDATE
   SET paused = TRUE, version = c.version + 1, paused_at = CASE WHEN c.paused THEN c.paused_at ELSE excluded.paused_at END,
       paused_until = excluded.paused_until, paused_by = excluded.paused_by, pause_reason = excluded.pause_reason
 WHERE NOT c.paused OR c.paused_until IS NOT NULL AND (excluded.paused_until IS NULL OR excluded.paused_until > c.paused_until)`,
	Resume:        `UPDATE obs_cursor SET paused = FALSE, failures = 0, retry_at = NULL WHERE stream = $1 AND (paused OR failures > 0)`,
	ForgetAccount: `DELETE FROM obs_account WHERE account = $1`,
	EndPauses: `
UPDATE obs_cursor SET paused = FALSE WHERE stream {among $1} AND paused AND paused_until <= {now}
RETURNING stream, paused_by, paused_until`,
}

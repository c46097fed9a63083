package lockdb

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

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
		n, err := sqldb.Affected(tx.ExecContext(ctx, t.sql.SQL().Pause.Pause, stream, lasts.Seconds(), sqldb.Storable(by.Actor), sqldb.Storable(by.Reason)))
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
		ended, err := sqldb.Affected(tx.ExecContext(ctx, t.sql.SQL().Pause.Resume, stream))
		if err != nil {
			return err
		}
		forgotten, err := sqldb.Affected(tx.ExecContext(ctx, t.sql.SQL().Pause.ForgetAccount, account))
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

// endPauses clears those pauses of the streams in a list that are over, by EndPauses, and notes it. The
// streams have gone on by the database's clock, whichever process notices it.
func endPauses(ctx context.Context, tx *sql.Tx, text *partSQL, actor string, streams any) error {
	var over []Act
	err := sqldb.Each(ctx, tx, text.Pause.EndPauses, func(scan sqldb.Scan) error {
		act := Act{Actor: actor, Action: "resume"}
		var by string
		var until time.Time
		err := scan(&act.Subject, &by, sqldb.ScanTime(&until))
		act.Detail = fmt.Sprintf("the pause of %s was until %s", by, until.Format(time.RFC3339))
		over = append(over, act)
		return err
	}, streams)
	if err != nil {
		return err
	}
	for _, act := range over {
		if err := audit(ctx, tx, text, act); err != nil {
			return err
		}
	}
	return nil
}

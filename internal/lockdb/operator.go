package lockdb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/status"
)

var (
	// ErrUnknownStream reports that no cursor has that name.
	ErrUnknownStream = errors.New("no such stream")
	// ErrRefusalMoved reports that the stream has another refusal by now, or none.
	ErrRefusalMoved = errors.New("what the stream has refused is something else by now; look again")
)

// Operations change a stream for an operator, and note it in obs_audit.
type Operations DB

// Operations returns the operations of an operator.
func (db *DB) Operations() *Operations { return (*Operations)(db) }

// By is who does something, and why, for the audit table.
type By = lock.By

// Act is an action of an operator, for the audit table, see package status.
type Act = status.Act

// Did returns the act of one who did that to the subject.
func Did(by By, action, subject, detail string) Act {
	switch {
	case detail == "":
		detail = by.Reason
	case by.Reason != "":
		detail += ": " + by.Reason
	}
	return Act{Actor: by.Actor, Action: action, Subject: subject, Detail: detail}
}

// ResetOptions say how much a reset forgets.
type ResetOptions struct {
	// Forget also forgets which rows were observed, so that every row becomes
	// an event again, as version 1, under an id of its own: a new epoch of the
	// stream begins. Without it the source is read from its beginning and only
	// what was missed becomes an event.
	Forget bool
	// KeepCursor keeps the marks as well, and sweeps that run: the stream goes on
	// where it is, with the query, the columns and the source that it has now.
	// Forget excludes it.
	KeepCursor bool
	// FromStart sets the marks back to [Streams.Start] instead of the beginning of
	// the source: for an observer that starts now, whose start would otherwise
	// be the time of its next poll, and all earlier rows be lost.
	FromStart bool
}

// Reset sets the cursor of a stream back to the beginning, unless it is kept,
// and cancels the sweeps of the stream. The event log and its sequence stay. A
// poll that runs is refused its next commit.
func (t *Operations) Reset(ctx context.Context, stream string, by By, o ResetOptions) error {
	detail, from := "", "beginning"
	text := t.sql.SQL().Operator
	var more []string
	switch {
	case o.Forget && o.KeepCursor:
		return fmt.Errorf("reset %s: the cursor cannot be kept when the rows are forgotten", stream)
	case o.KeepCursor:
		detail, from = "keep-cursor", "cursor"
	case o.FromStart:
		from = "start"
	}
	if !o.KeepCursor {
		more = append(more, text.CancelSweeps, text.ForgetGeneration)
	}
	if o.Forget {
		detail, more = "forget", append(more, text.ForgetRows, text.ForgetObserved)
	}
	return t.db.InTx(ctx, "reset "+stream, func(tx *sql.Tx) error {
		marks, err := t.marks(ctx, tx, stream)
		if err != nil {
			return err
		}
		marks = marks.Reset(!o.KeepCursor, o.Forget)
		if _, err := tx.ExecContext(ctx, text.Reset, stream, marks.Encode(), from); err != nil {
			return err
		}
		for _, text := range more {
			if _, err := tx.ExecContext(ctx, text, stream); err != nil {
				return err
			}
		}
		return audit(ctx, tx, t.sql.SQL(), Did(by, "reset", stream, detail))
	})
}

// marks reads those of a stream that is about to be changed. The error is
// [ErrUnknownStream] for one that was never polled.
func (t *Operations) marks(ctx context.Context, tx *sql.Tx, stream string) (observer.Marks, error) {
	var text string
	err := tx.QueryRowContext(ctx, t.sql.SQL().Operator.Marks, stream).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("%w: %s has never been polled", ErrUnknownStream, stream)
	}
	if err != nil {
		return observer.Marks{}, err
	}
	return observer.DecodeMarks(text)
}

// Accept lets the next poll of a stream accept the last refusal, and ends
// its backoff. refusal is what [Streams.Refused] returned; the error is
// [ErrRefusalMoved] when a poll has refused something else since. A poll that runs is
// refused its next commit.
func (t *Operations) Accept(ctx context.Context, stream string, by By, refusal, detail string) error {
	return t.db.InTx(ctx, "accept what "+stream+" refused", func(tx *sql.Tx) error {
		n, err := sqldb.Affected(tx.ExecContext(ctx, t.sql.SQL().Operator.Accept, stream, refusal))
		switch {
		case err != nil:
			return err
		case n == 0:
			return ErrRefusalMoved
		}
		return audit(ctx, tx, t.sql.SQL(), Did(by, "accept", stream, detail))
	})
}

// change runs a statement for its act, which it notes if rows have changed, and returns how many.
func (t *Operations) change(ctx context.Context, act Act, text string, args ...any) (n int64, err error) {
	err = t.db.InTx(ctx, act.Action+" of "+act.Subject, func(tx *sql.Tx) error {
		if n, err = sqldb.Affected(tx.ExecContext(ctx, text, args...)); err != nil || n == 0 {
			return err
		}
		return audit(ctx, tx, t.sql.SQL(), act)
	})
	return n, err
}

// Note notes an act that is done in other transactions, before they begin.
func (t *Operations) Note(ctx context.Context, act Act) error {
	return t.db.InTx(ctx, "note "+act.Action+" of "+act.Subject, func(tx *sql.Tx) error { return audit(ctx, tx, t.sql.SQL(), act) })
}

// Audit notes an act in the transaction that does it.
func (db *DB) Audit(ctx context.Context, tx *sql.Tx, act Act) error {
	return audit(ctx, tx, db.sql.SQL(), act)
}

// audit is Audit. Actor and detail are texts that people write, of any bytes.
func audit(ctx context.Context, tx *sql.Tx, text *partSQL, act Act) error {
	_, err := tx.ExecContext(ctx, text.Operator.Audit,
		sqldb.Storable(act.Actor), act.Action, act.Subject, sqldb.Storable(act.Detail))
	return err
}

// ActFilter says which acts are meant. An empty field means any.
type ActFilter struct {
	// Since is by the database's clock.
	Since time.Duration
	// Action and Actor are exact; Subject is a stream or a lock, with or without its
	// region.
	Action, Actor, Subject string
	// Limit is the most that are returned; 0 means all.
	Limit int
}

// Acts returns the acts of operators, newest first.
func (t *Operations) Acts(ctx context.Context, f ActFilter) ([]Act, error) {
	return sqldb.All(ctx, t.db, "read the audit table", t.sql.SQL().Operator.Acts,
		func(scan sqldb.Scan, a *Act) error {
			return scan(sqldb.ScanTime(&a.At), &a.Actor, &a.Action, &a.Subject, &a.Detail)
		}, f.Since.Seconds(), f.Action, sqldb.Storable(f.Actor), f.Subject, cmp.Or(f.Limit, math.MaxInt32))
}

// Pause stops the polls of a stream on every node, until its time is over or
// [Operations.Resume]; a time of 0 is never over. A poll that runs is refused its next commit. A stream that was never
// polled can be paused too. A pause of before is made longer, and never shorter: it is
// somebody else's. Pause reports false when that one lasts as long.
func (t *Operations) Pause(ctx context.Context, stream string, by By, lasts time.Duration) (changed bool, err error) {
	err = t.db.InTx(ctx, "pause "+stream, func(tx *sql.Tx) error {
		if err := endPauses(ctx, tx, t.sql.SQL(), by.Actor, t.db.List([]string{stream})); err != nil {
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

package lockdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
	"github.com/observerd/observerd/internal/turn"
)

// Turns remembers which turns were taken, of types (obs_schedule) and of observers
// (obs_cursor), and the polls (obs_poll).
type Turns DB

// Turns returns the turns.
func (db *DB) Turns() *Turns { return (*Turns)(db) }

// Schedule is all that a scheduler asks of the database.
type Schedule struct {
	*Turns
	*members
}

type members = Nodes // The type has a method of that name.

// Schedule returns turns and nodes together.
func (db *DB) Schedule() Schedule { return Schedule{db.Turns(), db.Nodes()} }

// Now returns the database's clock.
func (t *Turns) Now(ctx context.Context) (time.Time, error) { return t.db.Now(ctx) }

// Turn returns the state of the type's turns, and whether a node holds the lock of
// that request. It uses the connections of the polls: there are as many reads as
// types are due, and they must not delay a release; and while polls keep all
// connections busy, no node needs the answer.
func (t *Turns) Turn(ctx context.Context, typ string, r lock.Request) (turn.State, error) {
	var s turn.State
	var ahead bool
	err := t.db.Read.QueryRowContext(ctx, t.sql.SQL().Turn.Turn, t.db.Prepared(typ, RowKey(r.Key), r.Region, r.TTL.Seconds())...).
		Scan(sqldb.ScanTime(&s.Now), sqldb.ScanTime(&s.At), &s.Held, &s.Holder, &s.HolderBoot, &ahead)
	if err != nil {
		return turn.State{}, fmt.Errorf("read the turn of %s: %w", typ, sqldb.BusyPool(t.db.Read, err))
	}
	if !s.Held { // What the row says is of a lease that has ended.
		s.Holder, s.HolderBoot = "", ""
	} else if ahead {
		(*DB)(t).Leases().Redate(ctx, r)
	}
	return s, nil
}

// TakeTurn notes that a turn was taken. It is refused with lock.ErrFenced when
// the lease has ended, or a later turn was taken. A time in the future,
// left by a clock that went back, is overwritten.
func (t *Turns) TakeTurn(ctx context.Context, g lock.Grant, taken turn.Taken) error {
	args := fencedArgs(g, taken.Type, t.db.TimeArg(taken.At), taken.Node, t.db.TimeArg(taken.Started), t.db.TimeArg(taken.Finished), string(taken.Outcome))
	err := wrote(t.db.Main.ExecContext(ctx, t.sql.SQL().Turn.TakeTurn, t.db.Prepared(args...)...))
	if err != nil {
		return fmt.Errorf("take the turn of %s: %w", taken.Type, sqldb.BusyPool(t.db.Main, err))
	}
	return nil
}

// Streams returns the turns of these observers, as [Turns.TurnAndStreams] does.
func (t *Turns) Streams(ctx context.Context, ids []string) (map[string]turn.Stream, error) {
	_, found, err := t.TurnAndStreams(ctx, "", ids)
	return found, err
}

// TurnAndStreams returns when the type last had its turn, for the holder of its lock, and the
// turns of these observers at the same time. An observer that was never polled is
// missing from the result. A pause whose time is over is cleared before TurnAndStreams returns,
// so that the commits of a poll are accepted.
func (t *Turns) TurnAndStreams(ctx context.Context, typ string, ids []string) (last turn.State, found map[string]turn.Stream, err error) {
	list := t.db.List(ids)
	found, over := make(map[string]turn.Stream, len(ids)), false
	err = t.db.Query(ctx, "read the turns of observers", t.sql.SQL().Turn.Streams,
		func(scan func(...any) error) error {
			var s turn.Stream
			var marked bool
			var lag int64
			var now time.Time
			err := scan(&s.Stream, sqldb.ScanTime(&now), sqldb.ScanTime(&s.At), &marked, &s.Paused, sqldb.ScanTime(&s.PausedUntil), &s.Failures, &s.FailureClass, sqldb.ScanTime(&s.RetryAt),
				sqldb.ScanTime(&s.OKAt), &lag, &s.Unread)
			if s.Stream == "" {
				last = turn.State{At: s.At, Now: now}
				return err
			}
			over = over || marked && !s.Paused
			s.Lag = time.Duration(lag) * time.Millisecond
			found[s.Stream] = s
			return err
		}, typ, list)
	if err != nil || !over {
		return last, found, err
	}
	return last, found, t.db.InTx(ctx, "end the pauses that are over", func(tx *sql.Tx) error {
		return endPauses(ctx, tx, t.sql.SQL(), t.name, list)
	})
}

// NoteStream notes one observer's part of a turn, and adds it to the history
// of polls. It is refused with lock.ErrFenced when the lease has ended.
func (t *Turns) NoteStream(ctx context.Context, g lock.Grant, taken turn.StreamTaken) error {
	var at, retry any
	if !taken.Left {
		at = t.db.TimeArg(taken.At)
	}
	if !taken.RetryAt.IsZero() {
		retry = t.db.TimeArg(taken.RetryAt)
	}
	reason := sqldb.Storable(taken.Reason)
	err := t.noteStream(ctx, fencedArgs(g, taken.Stream, at, taken.Failures, retry, reason, string(taken.Outcome), taken.Lag.Milliseconds(), taken.FailureClass), []any{
		taken.Type, taken.Stream, taken.Node, t.db.TimeArg(taken.At), t.db.TimeArg(taken.Started), t.db.TimeArg(taken.Finished),
		string(taken.Outcome), reason, taken.Rows, taken.Events, taken.Poison,
	})
	if errors.Is(err, lock.ErrFenced) {
		t.metrics.staleCommits.Inc()
	}
	if err != nil {
		return fmt.Errorf("note the turn of %s: %w", taken.Stream, sqldb.BusyPool(t.db.Main, err))
	}
	return nil
}

// noteStream notes an observer's turn and adds it to the history of polls, both or, when
// the lease has ended, neither: lock.ErrFenced. On PostgreSQL that is one statement and one
// commit.
func (t *Turns) noteStream(ctx context.Context, note, poll []any) (err error) {
	texts := t.sql.SQL().Turn
	if texts.AddPoll == "" {
		return wrote(t.db.Main.ExecContext(ctx, texts.NoteStream, t.db.Prepared(append(note, poll...)...)...))
	}
	tx, err := t.db.Main.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = sqldb.EndTx(tx, err) }()
	if err := wrote(tx.ExecContext(ctx, texts.NoteStream, note...)); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, texts.AddPoll, poll...)
	return err
}

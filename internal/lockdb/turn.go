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
type Turns struct {
	db      *sqldb.DB
	sql     *sqldb.Statements[partSQL]
	metrics *metrics
	leases  *Leases
	node    string
}

// Turns returns the turns.
func (db *DB) Turns() *Turns { return &Turns{db.db, db.sql, db.metrics, db.Leases(), db.node} }

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
	var term, holder, boot string
	var ahead bool
	err := t.db.Read.QueryRowContext(ctx, t.sql.SQL().Turns.Turn, typ, rowKey(r.Key), r.Region, r.TTL.Seconds()).
		Scan(sqldb.ScanTime(&s.Now), sqldb.ScanTime(&s.At), sqldb.ScanText(&term), sqldb.ScanText(&holder), sqldb.ScanText(&boot), &ahead)
	if err != nil {
		return turn.State{}, fmt.Errorf("read the turn of %s: %w", typ, sqldb.BusyPool(t.db.Read, err))
	}
	s.Held, s.Holder, s.HolderBoot = term != "", holder, boot
	if ahead {
		t.leases.Redate(ctx, r)
	}
	return s, nil
}

// TakeTurn notes that a turn was taken. It is refused with lock.ErrFenced when
// the lease has ended, or a later turn was taken. A time in the future,
// left by a clock that went back, is overwritten.
func (t *Turns) TakeTurn(ctx context.Context, g lock.Grant, taken turn.Taken) error {
	err := wrote(t.db.Main.ExecContext(ctx, t.sql.SQL().Turns.TakeTurn, fencedArgs(g, taken.Type, t.db.TimeArg(taken.At), taken.Node,
		t.db.TimeArg(taken.Started), t.db.TimeArg(taken.Finished), string(taken.Outcome))...))
	if err != nil {
		return fmt.Errorf("take the turn of %s: %w", taken.Type, sqldb.BusyPool(t.db.Main, err))
	}
	return nil
}

// Streams returns the turns of these observers. An observer that was never polled is
// missing from the result. A pause whose time is over is cleared before Streams returns,
// so that the commits of a poll are accepted.
func (t *Turns) Streams(ctx context.Context, ids []string) (map[string]turn.Stream, error) {
	list, err := t.db.List(ids)
	if err != nil {
		return nil, fmt.Errorf("read the turns of observers: %w", err)
	}
	found, over := make(map[string]turn.Stream, len(ids)), false
	err = t.db.Query(ctx, "read the turns of observers", t.sql.SQL().Turns.Streams,
		func(scan func(...any) error) error {
			var s turn.Stream
			var marked bool
			var lag int64
			err := scan(&s.Stream, sqldb.ScanTime(&s.At), &marked, &s.Paused, sqldb.ScanTime(&s.PausedUntil), &s.Failures, &s.FailureClass, sqldb.ScanTime(&s.RetryAt),
				sqldb.ScanTime(&s.OKAt), &lag, &s.Unread)
			over = over || marked && !s.Paused
			s.Lag = time.Duration(lag) * time.Millisecond
			found[s.Stream] = s
			return err
		}, list)
	if err != nil || !over {
		return found, err
	}
	return found, t.db.InTx(ctx, "end the pauses that are over", func(tx *sql.Tx) error {
		return endPauses(ctx, tx, t.sql.SQL(), t.node, list)
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
	texts := t.sql.SQL().Turns
	if texts.AddPoll == "" {
		return wrote(t.db.Main.ExecContext(ctx, texts.NoteStream, append(note, poll...)...))
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

// All returns the last turn of every type, sorted by type.
func (t *Turns) All(ctx context.Context) ([]turn.Taken, error) {
	var all []turn.Taken
	err := t.db.Query(ctx, "read the turns", t.sql.SQL().Turns.All,
		func(scan func(...any) error) error {
			var one turn.Taken
			err := scan(&one.Type, sqldb.ScanTime(&one.At), sqldb.ScanTime(&one.Started), sqldb.ScanTime(&one.Finished), &one.Node, &one.Outcome)
			all = append(all, one)
			return err
		})
	return all, err
}

// Polls returns the last polls of all streams, newest first.
func (t *Turns) Polls(ctx context.Context, limit int) ([]turn.StreamTaken, error) {
	return t.polls(ctx, t.sql.SQL().Turns.Polls, limit)
}

// PollsOf returns the last polls of a stream, newest first.
func (t *Turns) PollsOf(ctx context.Context, stream string, limit int) ([]turn.StreamTaken, error) {
	return t.polls(ctx, t.sql.SQL().Turns.PollsOf, limit, stream)
}

func (t *Turns) polls(ctx context.Context, text string, args ...any) ([]turn.StreamTaken, error) {
	var all []turn.StreamTaken
	err := t.db.Query(ctx, "read the history of polls", text,
		func(scan func(...any) error) error {
			var one turn.StreamTaken
			err := scan(&one.Type, &one.Stream, &one.Node, sqldb.ScanTime(&one.At), sqldb.ScanTime(&one.Started), sqldb.ScanTime(&one.Finished),
				&one.Outcome, &one.Reason, &one.Rows, &one.Events, &one.Poison)
			all = append(all, one)
			return err
		}, args...)
	return all, err
}

// turnSQL are the statements of [Turns]. AddPoll is empty where NoteStream adds the poll too.
type turnSQL struct{ Turn, TakeTurn, Streams, NoteStream, AddPoll, All, Polls, PollsOf string }

// Streams counts rows as unread where a poll ended behind its source, or within a reading of
// all rows.
var turnTexts = turnSQL{
	Turn: `
SELECT {now}, s.turn_at, l.client_id, o.node, o.boot_id, COALESCE(o.term IS NOT NULL AND l.created_date > {utc}, FALSE)
  FROM (SELECT 1 AS one) x
  LEFT JOIN obs_schedule s ON s.type = $1
  LEFT JOIN int_lock l ON l.lock_key = $2 AND l.region = $3 AND {unexpired l $4}
  LEFT JOIN obs_lock o ON o.lock_key = l.lock_key AND o.region = l.region AND o.term = l.client_id`,
	TakeTurn: `
INSERT INTO obs_schedule AS s (type, turn_at, last_node, last_started, last_finished, last_outcome)
SELECT $5, $6, $7, $8, $9, $10 WHERE ` + underLease + `
ON CONFLICT (type) DO UPDATE
   SET turn_at = excluded.turn_at, last_node = excluded.last_node, last_started = excluded.last_started,
       last_finished = excluded.last_finished, last_outcome = excluded.last_outcome
 WHERE s.turn_at < excluded.turn_at OR s.turn_at > {now}`,
	Streams: `
SELECT c.stream, c.turn_at, c.paused, ` + pausedSQL + `, CASE WHEN ` + pausedSQL + ` THEN c.paused_until END, c.failures, c.failure_class, c.retry_at,
       CASE WHEN c.query_fingerprint <> '' AND NOT c.first_reading THEN c.last_ok_at END, c.lag_ms,
       c.lag_ms > 0 OR coalesce((SELECT g.finished_at IS NULL FROM obs_generation g WHERE g.stream_id = c.stream_id), FALSE)
  FROM obs_cursor c
 WHERE c.stream {among $1}`,
	NoteStream: noteStreamPostgres,
	All:        `SELECT type, turn_at, last_started, last_finished, last_node, last_outcome FROM obs_schedule ORDER BY type`,
	Polls: `
SELECT type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count
  FROM obs_poll
 ORDER BY finished_at DESC, id DESC
 LIMIT $1`,
	PollsOf: `
SELECT type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count
  FROM obs_poll
 WHERE stream = $2
 ORDER BY finished_at DESC, id DESC
 LIMIT $1`,
}

const (
	noteStreamPostgres = `
WITH noted AS (
  INSERT INTO obs_cursor AS c (stream, turn_at, failures, retry_at, last_error, last_ok_at, lag_ms, failure_class)
  SELECT $5, $6, $7, $8, $9, CASE WHEN $10 = 'ok' THEN {now} END, $11, $12 WHERE ` + underLease + `
  ON CONFLICT (stream) DO UPDATE
     SET turn_at = coalesce(excluded.turn_at, c.turn_at), failures = excluded.failures, failure_class = excluded.failure_class, retry_at = excluded.retry_at,
         last_error = CASE WHEN excluded.last_error = '' AND excluded.last_ok_at IS NULL THEN c.last_error ELSE excluded.last_error END, last_ok_at = coalesce(excluded.last_ok_at, c.last_ok_at),
         lag_ms = CASE WHEN excluded.last_ok_at IS NULL THEN c.lag_ms ELSE excluded.lag_ms END
  RETURNING 1
)
INSERT INTO obs_poll (type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count)
SELECT $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23 FROM noted`
	noteStreamSQLite = `
INSERT INTO obs_cursor AS c (stream, turn_at, failures, retry_at, last_error, last_ok_at, lag_ms, failure_class)
SELECT $5, $6, $7, $8, $9, CASE WHEN $10 = 'ok' THEN {now} END, $11, $12 WHERE ` + underLease + `
ON CONFLICT (stream) DO UPDATE
   SET turn_at = coalesce(excluded.turn_at, c.turn_at), failures = excluded.failures, failure_class = excluded.failure_class, retry_at = excluded.retry_at,
       last_error = CASE WHEN excluded.last_error = '' AND excluded.last_ok_at IS NULL THEN c.last_error ELSE excluded.last_error END, last_ok_at = coalesce(excluded.last_ok_at, c.last_ok_at),
       lag_ms = CASE WHEN excluded.last_ok_at IS NULL THEN c.lag_ms ELSE excluded.lag_ms END`
	addPollSQLite = `
INSERT INTO obs_poll (type, stream, node, turn_at, started_at, finished_at, outcome, reason, row_count, event_count, poison_count)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
)
